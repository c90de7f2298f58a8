/* What happens to files while they are open: cut short, replaced, written to; and readers of all kinds
 * over them. */
#include "source/hdf5/chunk_cache.h"
#include "st_config.h"

#include "base/threads.h"
#include "pieces.h"
#include "tap.h"
#include "tree.h"

#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>
#if ST_HAVE_LMDB
#include <lmdb.h>
#endif

static const char *fixtures;

/* A copy of a file of tests/data in the tree. */
static const char *copy_of(const char *file)
{
    static char bytes[1 << 20];
    char from[4096];
    snprintf(from, sizeof from, "%s/%s", fixtures, file);
    const char *to = at("%s", strrchr(file, '/') + 1);
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    if (!in || !out)
        abort();
    const size_t size = fread(bytes, 1, sizeof bytes, in);
    fwrite(bytes, 1, size, out);
    fclose(in);
    fclose(out);
    return to;
}

static char *words_of_sample(struct stoker_dataset *data, uint64_t sample)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    sample_print(out, data, sample);
    fclose(out);
    return text;
}

static void changed_while_open(const char *scheme, const char *file)
{
    struct stoker_dataset *data = NULL;
    struct stoker_error err;
    const char *path = copy_of(file);
    char uri[4200];
    snprintf(uri, sizeof uri, "%s:%s", scheme, path);
    if (!ok(!st_dataset_open(&data, uri, NULL, &err), "%s", scheme))
        return;
    const uint64_t last = st_dataset_count(data) - 1;
    char *before = words_of_sample(data, last);
    char *other = strdup(at("other"));
    tree_file(other, 5000, 1);
    rename(other, path);
    char *replaced = words_of_sample(data, last);
    ok(!strcmp(before, replaced), "%s: with another in its place the bytes stay the old ones", scheme);
    st_dataset_drop(data);
    path = copy_of(file);
    ok(!st_dataset_open(&data, uri, NULL, &err), "%s again", scheme);
    ok(truncate(path, 100) == 0, "cut short");
    char *cut = words_of_sample(data, last);
    ok(strstr(cut, "error -3") && strstr(cut, path), "%s: says so, and does not die: %.150s", scheme,
       strstr(cut, "error") ? strstr(cut, "error") : cut);
    st_dataset_drop(data);
    free(before);
    free(replaced);
    free(cut);
    free(other);
}

/* ---- readers ------------------------------------------------------------------------------------ */

static uint64_t in_order(void *context, uint64_t ticket)
{
    (void)context;
    return ticket;
}

static void through_reader(const char *uri, enum st_reader_backend backend, const char *name)
{
    struct stoker_dataset *data = NULL;
    struct st_reader *reader = NULL;
    struct stoker_error err;
    char path[4200];
    snprintf(path, sizeof path, "%.*s:%s/%s", (int)strcspn(uri, ":"), uri, fixtures,
             strchr(uri, ':') + 1);
    int rc = st_dataset_open(&data, path, NULL, &err);
    if (!rc)
        rc = st_reader_open(&reader, data, backend, 4, &err);
    if (rc && backend == ST_READER_URING) {
        skip(name, err.message);
        st_dataset_drop(data);
        return;
    }
    const uint64_t count = rc ? 0 : st_dataset_count(data);
    bool same = !rc && !st_reader_start(reader, count, in_order, NULL, &err);
    for (uint64_t i = 0; i < count; i++) {
        struct st_buffer buffer = {0}, scratch = {0}, scratch2 = {0};
        struct st_bytes raw, want;
        struct st_piece a[ST_FIELDS_MAX], b[ST_FIELDS_MAX];
        same = !st_reader_get(reader, i, &raw, &err) && !st_read_sample(data, i, &buffer, &want, &err) &&
               !data->source->split(data->self, i, raw, &scratch, a, &err) &&
               !data->source->split(data->self, i, want, &scratch2, b, &err) &&
               a[0].bytes.size == b[0].bytes.size &&
               !memcmp(a[0].bytes.data, b[0].bytes.data, b[0].bytes.size) && same;
        st_reader_done(reader, i);
        st_buffer_free(&buffer);
        st_buffer_free(&scratch);
        st_buffer_free(&scratch2);
    }
    ok(same && count, "%s by %s%s%s", uri, name, same ? "" : ": ", same ? "" : err.message);
    st_reader_close(reader);
    st_dataset_drop(data);
}

/* ---- LMDB and a writer -------------------------------------------------------------------------- */

#if ST_HAVE_LMDB
enum { ENTRIES = 300 };

/* In a process of its own, as LMDB demands: one that writes everything anew, many times. */
static bool write_database(const char *folder, int rounds, char letter)
{
    const pid_t child = fork();
    if (child == 0) {
        MDB_env *env;
        MDB_txn *txn;
        MDB_dbi dbi;
        int rc = mdb_env_create(&env);
        rc = rc ? rc : mdb_env_set_mapsize(env, 8 << 20);
        rc = rc ? rc : mdb_env_open(env, folder, 0, 0644);
        for (int round = 0; round < rounds && !rc; round++) {
            rc = mdb_txn_begin(env, NULL, 0, &txn);
            rc = rc ? rc : mdb_dbi_open(txn, NULL, 0, &dbi);
            for (int i = 0; i < ENTRIES && !rc; i++) {
                char key[16], value[1000];
                snprintf(key, sizeof key, "%06d", i);
                memset(value, letter + round % 20, sizeof value);
                MDB_val k = {6, key}, v = {i % 10 ? 100 : sizeof value, value};
                rc = mdb_put(txn, dbi, &k, &v, 0);
            }
            rc = rc ? rc : mdb_txn_commit(txn);
        }
        mdb_env_close(env);
        _exit(rc != 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status == 0;
}

static bool all_are(struct stoker_dataset *data, char letter)
{
    struct st_buffer buffer = {0};
    bool yes = st_dataset_count(data) == ENTRIES;
    for (uint64_t i = 0; i < ENTRIES && yes; i++) {
        struct st_bytes raw;
        yes = !st_read_sample(data, i, &buffer, &raw, NULL) && raw.size == (i % 10 ? 100 : 1000);
        for (size_t k = 0; k < raw.size && yes; k++)
            yes = raw.data[k] == (uint8_t)letter;
    }
    st_buffer_free(&buffer);
    return yes;
}

static void written_while_open(void)
{
    struct stoker_dataset *old = NULL, *also_old = NULL, *young = NULL;
    struct stoker_dataset_options opt = {.size = sizeof opt, .fields = "value,key"};
    struct stoker_error err;
    char *folder = strdup(at("database")), uri[4200];
    mkdir(folder, 0777);
    snprintf(uri, sizeof uri, "lmdb:%s", folder);
    ok(write_database(folder, 1, 'A'), "a database is written");
    ok(!st_dataset_open(&old, uri, &opt, &err) && !st_dataset_open(&also_old, uri, &opt, &err) &&
           all_are(old, 'A'),
       "and opened, twice");
    ok(write_database(folder, 6, 'B'), "and written over six times");
    ok(all_are(old, 'A') && all_are(also_old, 'A'), "who has it open reads the old state");
    st_dataset_drop(also_old);
    ok(!st_dataset_open(&young, uri, &opt, &err) && all_are(young, 'G'), "who opens it now the new one");
    ok(write_database(folder, 6, 'H') && all_are(old, 'A') && all_are(young, 'G'),
       "one of two handles may close");
    const pid_t child = fork();
    if (child == 0) {
        const bool same = all_are(old, 'A') && all_are(young, 'G');
        st_dataset_drop(old);
        st_dataset_drop(young);
        struct stoker_dataset *own = NULL;
        const bool opens = !st_dataset_open(&own, uri, &opt, NULL) && all_are(own, 'M');
        st_dataset_drop(own);
        _exit(!(same && opens));
    }
    int status = -1;
    waitpid(child, &status, 0);
    ok(status == 0, "a forked child reads on, and may open it for itself");
    ok(write_database(folder, 6, 'N') && all_are(old, 'A'), "which ends nothing here");
    st_dataset_drop(young);
    st_dataset_drop(old);
    free(folder);
}
#endif

/* ---- the cache of chunks ------------------------------------------------------------------------ */

enum { CHUNK = 1000, CHUNKS = 50, BUDGET = 10 * CHUNK };

struct caching {
    struct st_chunk_cache *cache;
    atomic_uint loads, wrong, over, next;
};

static int load(const void *context, uint64_t chunk, uint8_t *out, struct stoker_error *err)
{
    atomic_fetch_add(&((struct caching *)(uintptr_t)context)->loads, 1);
    if (chunk == CHUNKS)
        return st_fail(err, STOKER_EIO, "no such chunk");
    memset(out, (int)chunk, CHUNK);
    return 0;
}

static void use_cache(void *context)
{
    struct caching *caching = context;
    unsigned step;
    while ((step = atomic_fetch_add(&caching->next, 1)) < 20000) {
        struct st_cached_chunk *cached;
        const uint64_t chunk = step * 7919u % CHUNKS;
        if (st_chunk_cache_get(caching->cache, chunk, CHUNK, load, caching, &cached, NULL)) {
            atomic_fetch_add(&caching->wrong, 1);
            continue;
        }
        const uint8_t *bytes = st_cached_chunk_bytes(cached);
        if (bytes[0] != chunk || bytes[CHUNK - 1] != chunk)
            atomic_fetch_add(&caching->wrong, 1);
        if (st_chunk_cache_bytes(caching->cache) > BUDGET + 8 * CHUNK)
            atomic_fetch_add(&caching->over, 1);
        st_chunk_cache_put(caching->cache, cached);
    }
}

static void caches(void)
{
    struct caching caching = {.cache = st_chunk_cache_open(BUDGET)};
    struct st_cached_chunk *cached;
    struct stoker_error err;
    for (int i = 0; i < 100; i++) {
        st_chunk_cache_get(caching.cache, (uint64_t)i % 10, CHUNK, load, &caching, &cached, &err);
        st_chunk_cache_put(caching.cache, cached);
    }
    ok(atomic_load(&caching.loads) == 10, "ten chunks fit, and are loaded once each");
    ok(st_chunk_cache_get(caching.cache, CHUNKS, CHUNK, load, &caching, &cached, &err) == STOKER_EIO &&
           st_chunk_cache_get(caching.cache, CHUNKS, CHUNK, load, &caching, &cached, &err) == STOKER_EIO,
       "one that cannot be loaded: %s", err.message);
    st_threads_run(8, use_cache, &caching);
    ok(!atomic_load(&caching.wrong), "eight threads find what they ask for");
    ok(!atomic_load(&caching.over) && st_chunk_cache_bytes(caching.cache) <= BUDGET,
       "in the memory allowed");
    st_chunk_cache_close(caching.cache);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 1;
    fixtures = argv[1];
    tree_make();
    caches();
    changed_while_open("npy", "npy/rgb.npy");
    changed_while_open("npz", "npz/stored.npz");
    changed_while_open("zip", "zip/stored.zip");
    changed_while_open("lmdb", "lmdb/many.mdb");
#if ST_HAVE_HDF5
    changed_while_open("hdf5", "hdf5/layouts_earliest.h5");
#endif
    for (enum st_reader_backend backend = ST_READER_AUTO; backend <= ST_READER_INLINE; backend++) {
        static const char *const names[] = {"auto", "io_uring", "pool", "inline"};
        through_reader("zip:zip/deflated.zip", backend, names[backend]);
        through_reader("lmdb:lmdb/images", backend, names[backend]);
        through_reader("npz:npz/deflated.npz", backend, names[backend]);
#if ST_HAVE_HDF5
        if (backend != ST_READER_URING)
            through_reader("hdf5:hdf5/many.h5", backend, names[backend]);
#endif
        through_reader("csv:manifest/crlf.csv", backend, names[backend]);
    }
#if ST_HAVE_LMDB
    written_while_open();
#endif
    tree_remove();
    return done_testing();
}
