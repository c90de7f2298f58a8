/* A kept index is used while the tree is unchanged, and never when it is stale or damaged. */
#include "source/index/index.h"
#include "source/source.h"
#include "tap.h"
#include "tree.h"

#include <dirent.h>
#include <sys/syscall.h>
#include <time.h>

static char index_file[4096];

/* What changed less than two seconds ago is not kept. Instead of waiting, the test lets the library, which calls this
 * function in place of the C library's, read a later time. */
static time_t later_s;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    const int rc = (int)syscall(SYS_clock_gettime, clock, now);
    if (!rc && clock == CLOCK_REALTIME)
        now->tv_sec += later_s;
    return rc;
}

/* The one index in the folder; false when there is none. */
static bool find_index(void)
{
    DIR *dir = opendir(at("kept"));
    const struct dirent *entry;
    bool found = false;
    while (dir && (entry = readdir(dir)) != NULL)
        if (strstr(entry->d_name, ".stoker-index")) {
            snprintf(index_file, sizeof index_file, "%s", at("kept/%s", entry->d_name));
            found = true;
        }
    if (dir)
        closedir(dir);
    return found;
}

static uint8_t *slurp(uint64_t *size)
{
    FILE *file = fopen(index_file, "rb");
    if (!file)
        abort();
    fseek(file, 0, SEEK_END);
    *size = (uint64_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*size);
    if (!bytes || fread(bytes, 1, *size, file) != *size)
        abort();
    fclose(file);
    return bytes;
}

static void spit(const uint8_t *bytes, uint64_t size)
{
    FILE *file = fopen(index_file, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file))
        abort();
}

/* Opens the tree with its index kept; gives the number of samples and the first one's name. */
static uint64_t open_kept(const char *root, char *first)
{
    struct stoker_error err = {0};
    struct stoker_dataset_options opt = {.size = sizeof opt, .index_dir = at("kept")};
    struct stoker_dataset *data;
    if (st_dataset_open(&data, root, &opt, &err)) {
        note("%s", err.message);
        return UINT64_MAX;
    }
    const uint64_t count = st_dataset_count(data);
    char name[4096] = "";
    if (count)
        st_dataset_name(data, 0, name, sizeof name);
    snprintf(first, 64, "%s", strrchr(name, '/') ? strrchr(name, '/') + 1 : "");
    st_dataset_drop(data);
    return count;
}

/* The same when nothing has changed for three seconds. */
static uint64_t open_settled(const char *root, char *first)
{
    later_s = 3;
    const uint64_t count = open_kept(root, first);
    later_s = 0;
    return count;
}

/* Renames the first sample inside the kept index, to see whether an open comes from there. */
static void mark_index(void)
{
    uint64_t size;
    uint8_t *bytes = slurp(&size);
    uint8_t *name = memmem(bytes, size, "1.jpg", 6);
    if (!name)
        abort();
    *name = 'M';
    st_index_seal(bytes, size);
    spit(bytes, size);
    free(bytes);
}

static void reuse_and_change(void)
{
    char first[64];
    tree_file(at("t/a/1.jpg"), 1, 1);
    tree_file(at("t/a/2.jpg"), 1, 1);
    tree_file(at("t/b/c/1.jpg"), 1, 1);
    if (symlink(at("later"), at("t/b/link")))
        abort();
    ok(open_kept(at("t"), first) == 3 && !find_index(), "a tree changed just now is read, but not kept");
    ok(open_settled(at("t"), first) == 3 && find_index(), "a settled tree is kept");
    mark_index();
    ok(open_kept(at("t"), first) == 3 && !strcmp(first, "M.jpg"),
       "and read from the index the next time");
    char with_slash[300];
    snprintf(with_slash, sizeof with_slash, "%s/../t/", at("t"));
    ok(open_kept(with_slash, first) == 3 && !strcmp(first, "M.jpg"),
       "also under another spelling of its path");

    tree_file(at("t/b/c/0.jpg"), 1, 1);
    ok(open_kept(at("t"), first) == 4 && !strcmp(first, "1.jpg"), "a new file makes it stale");
    ok(open_settled(at("t"), first) == 4, "kept anew");
    mark_index();
    ok(open_kept(at("t"), first) == 4 && !strcmp(first, "M.jpg"), "used anew");
    unlink(at("t/b/c/0.jpg"));
    ok(open_kept(at("t"), first) == 3 && !strcmp(first, "1.jpg"), "a file removed makes it stale");
    open_settled(at("t"), first);
    mark_index();
    tree_file(at("later/9.jpg"), 1, 1);
    ok(open_kept(at("t"), first) == 4 && !strcmp(first, "1.jpg"),
       "a link that now leads somewhere counts");
}

static void damage(void)
{
    char first[64];
    open_settled(at("t"), first);
    mark_index();
    uint64_t size;
    uint8_t *bytes = slurp(&size);
    ok(open_kept(at("t"), first) == 4 && !strcmp(first, "M.jpg"), "the index is in use");
    int wrong = 0;
    for (uint64_t i = 0; i < size; i += 3) {
        bytes[i] ^= 0x10;
        spit(bytes, size);
        wrong += open_kept(at("t"), first) != 4 || strcmp(first, "1.jpg");
        bytes[i] ^= 0x10;
    }
    ok(wrong == 0, "one bit flipped anywhere: rebuilt (%d wrong)", wrong);
    for (uint64_t cut = 0; cut < size; cut += 7) {
        spit(bytes, cut);
        wrong += open_kept(at("t"), first) != 4 || strcmp(first, "1.jpg");
    }
    ok(wrong == 0, "cut short anywhere: rebuilt (%d wrong)", wrong);
    spit(bytes, size);
    ok(open_kept(at("t"), first) == 4 && !strcmp(first, "M.jpg"), "the whole one is still good");

    /* Numbers that point outside, under a right checksum. */
    int taken = 0;
    for (uint64_t i = sizeof(struct st_index_header) / 8; i + 1 < size / 8; i++) {
        uint8_t *copy = malloc(size);
        struct st_index index;
        memcpy(copy, bytes, size);
        memset(copy + i * 8, 0xff, 8);
        st_index_seal(copy, size);
        if (st_index_load(&index, copy, size)) /* paths, names, stamps and text may be anything */
            for (uint64_t k = 0; k < index.sample_count; k++)
                taken += strlen(index.text + index.names[k]) > index.text_size ||
                         (index.sample_dirs[k] & ~ST_INDEX_SPECIAL) >= index.dir_count;
        free(copy);
    }
    ok(taken == 0, "no number that points outside is taken");
    for (size_t field = 16; field < sizeof(struct st_index_header); field += 8) {
        struct st_index index;
        const uint64_t absurd[] = {0, 1, UINT64_MAX, UINT64_MAX / 8, 1ull << 61};
        for (int k = 0; k < 5; k++) {
            uint8_t *copy = malloc(size);
            uint64_t was;
            memcpy(copy, bytes, size);
            memcpy(&was, copy + field, 8);
            memcpy(copy + field, &absurd[k], 8);
            st_index_seal(copy, size);
            taken += was != absurd[k] && st_index_load(&index, copy, size);
            free(copy);
        }
    }
    ok(taken == 0, "no absurd header is taken");
    free(bytes);
}

static void places(void)
{
    struct stoker_error err = {0};
    struct stoker_dataset *data = NULL;
    struct stoker_dataset_options opt = {.size = sizeof opt, .index_dir = at("t/a/1.jpg")};
    ok(st_dataset_open(&data, at("t"), &opt, &err) == STOKER_EINVAL &&
           strstr(err.message, "not a folder"),
       "an index folder that is a file: %s", err.message);
    opt.index_dir = at("no/such/place");
    ok(st_dataset_open(&data, at("t"), &opt, &err) < 0 && strstr(err.message, "no/such/place"),
       "an index folder that cannot be made: %s", err.message);
    char first[64];
    find_index();
    const char *const gif[] = {".gif", NULL};
    opt = (struct stoker_dataset_options){
        .size = sizeof opt, .index_dir = at("kept"), .extensions = gif, .allow_empty = true};
    ok(!st_dataset_open(&data, at("t"), &opt, &err) && st_dataset_count(data) == 0,
       "other extensions have an index of their own");
    st_dataset_drop(data);
    ok(open_kept(at("t"), first) == 4, "which does not disturb the first");
    data = NULL;
    char uri[4200];
    snprintf(uri, sizeof uri, "flat:%s", at("t"));
    opt = (struct stoker_dataset_options){.size = sizeof opt, .index_dir = at("kept")};
    ok(!st_dataset_open(&data, uri, &opt, &err) && !data->source->class_count, "nor does another kind");
    st_dataset_drop(data);
}

int main(void)
{
    tree_make();
    reuse_and_change();
    damage();
    places();
    tree_remove();
    return done_testing();
}
