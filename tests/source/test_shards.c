/* Archives by the many, and what is kept or unpacked of them: within limits, and whatever others do to
 * the files. */
#include "source/shards/shards.h"
#include "source/tar/scan.h"
#include "tar_file.h"
#include "tar_read.h"
#include "tree.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <zlib.h>

#define MIB 1048576u

/* The file in a process of its own in the place of the test's, whose memory is then the file's alone. */
static int status_of(void (*body)(void))
{
    int status;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        body();
        _exit(0);
    }
    return waitpid(child, &status, 0) == child ? status : -1;
}

/* ---- a kept index that another process cuts short ---------------------------------------------- */

static void read_after_cut(void)
{
    struct stoker_dataset *data = open_tar(at("k.tar"), "bin,cls", NULL);
    if (!data || truncate(at("k.tar.stoker-index"), 0))
        _exit(1);
    for (unsigned i = 0; i < 3000; i++)
        if (!is_sample(data, i, i, 10))
            _exit(2);
    st_dataset_drop(data);
}

static void cut_index(void)
{
    tar_samples(at("k.tar"), 3000, 10);
    set_time(at("k.tar"), 1000000000);
    st_dataset_drop(open_tar(at("k.tar"), "bin,cls", NULL));
    ok(!access(at("k.tar.stoker-index"), F_OK), "an index is kept");
    const int status = status_of(read_after_cut);
    ok(status == 0, "it is cut to nothing while in use, and nobody is killed (status %d)", status);
}

/* ---- unpacking within a limit ------------------------------------------------------------------ */

/* A tar file of one sample, packed in two members, so that its size is not known before. */
static void packed_tar(const char *path, size_t size, bool random)
{
    uint8_t *bytes = calloc(1, size), block[512];
    uint32_t state = 1;
    for (size_t i = 0; random && i < size; i++)
        bytes[i] = (uint8_t)((state = state * 1664525u + 1013904223u) >> 24);
    gzFile file = gzopen(path, "wb1");
    tar_header(block, "0.bin", '0', size);
    if (!bytes || !file || gzwrite(file, block, 512) != 512 || gzclose(file) != Z_OK ||
        !(file = gzopen(path, "ab1")) || gzwrite(file, bytes, (unsigned)size) != (int)size ||
        gzclose(file) != Z_OK)
        abort();
    free(bytes);
}

/* The same archive under names from PREFIX-0.tar.gz on: packing it takes long. */
static void packed_tars(const char *prefix, int count, size_t size, bool random)
{
    packed_tar(at("%s-0.tar.gz", prefix), size, random);
    for (int i = 1; i < count; i++)
        if (link(at("%s-0.tar.gz", prefix), at("%s-%d.tar.gz", prefix, i)))
            abort();
}

static int open_packed(struct stoker_dataset **out, const char *pattern, uint64_t memory)
{
    const struct stoker_dataset_options opt = {
        .size = sizeof opt, .fields = "bin", .threads = 8, .max_memory = memory};
    return st_dataset_open(out, pattern, &opt, &err);
}

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
static void refuse_bombs(void)
{
    struct stoker_dataset *data;
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    if (open_packed(&data, at("bomb-*.tar.gz"), 32 * MIB) != STOKER_ELIMIT)
        _exit(1);
    getrusage(RUSAGE_SELF, &after);
    if (after.ru_maxrss - before.ru_maxrss > 64 * 1024 && !emulated())
        _exit(2);
}
#endif

static void unpacked(void)
{
    struct stoker_dataset *data = NULL;
    packed_tars("fit", 6, 4 * MIB, true);
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    skip("eight archives of 30 MiB in 32 MiB are refused, in no more memory",
         "a sanitizer keeps freed memory");
#else
    packed_tars("bomb", 8, 30 * MIB, false);
    const int status = status_of(refuse_bombs);
    if (emulated())
        skip("in no more memory", "an emulator's own memory counts, too");
    ok(status == 0, "eight archives of 30 MiB in 32 MiB are refused, in no more memory (status %d)",
       status);
#endif
    ok(!open_packed(&data, at("fit-*.tar.gz"), 29 * MIB) && st_dataset_count(data) == 6,
       "those fit that would fit one after another, however many threads unpack: %s", err.message);
    ok(data && st_dataset_memory(data) >= 24 * MIB && st_dataset_memory(data) < 25 * MIB,
       "and the dataset says what they take: %llu",
       (unsigned long long)(data ? st_dataset_memory(data) : 0));
    st_dataset_drop(data);
    ok(open_packed(&data, at("fit-*.tar.gz"), 24 * MIB) == STOKER_ELIMIT, "one byte too few: %s",
       err.message);
}

/* ---- many archives ----------------------------------------------------------------------------- */

/* Many more than the files that a process may have open, and than the reads that kept indexes take. */
enum { MANY = 2500, EACH = 2 };

static time_t many_written;

static void write_many(void)
{
    mkdir(at("m"), 0777);
    for (unsigned i = 0; i < MANY; i++) {
        const char *path = at("m/%05u.tar", i);
        FILE *file = fopen(path, "wb");
        for (unsigned k = 0; file && k < EACH; k++) {
            char name[32], text[16];
            const int size = snprintf(text, sizeof text, "%u", i * EACH + k);
            snprintf(name, sizeof name, "%05u.cls", k);
            tar_member(file, name, text, (size_t)size);
        }
        if (!file)
            abort();
        tar_end(file);
        set_time(path, 1000000000);
    }
    many_written = time(NULL);
}

/* A number out of a file of /proc, or its lines. */
static unsigned long count_in(const char *path, const char *name)
{
    char line[4400];
    unsigned long lines = 0, value = 0;
    FILE *file = fopen(path, "r");
    for (; file && fgets(line, sizeof line, file); lines++)
        if (name && !strncmp(line, name, strlen(name)))
            value = strtoul(line + strlen(name), NULL, 10);
    if (file)
        fclose(file);
    return name ? value : lines;
}

static bool is_label(struct stoker_dataset *data, uint64_t sample)
{
    struct st_piece piece;
    return !read_pieces(data, sample, &piece) && piece.whole == (int64_t)sample;
}

/* Opens them all, and says what that took. */
static struct stoker_dataset *open_many(unsigned long *reads, long *maps, double *seconds)
{
    struct timespec began, ended;
    const unsigned long reads_before = count_in("/proc/self/io", "syscr:");
    const unsigned long maps_before = count_in("/proc/self/maps", NULL);
    clock_gettime(CLOCK_MONOTONIC, &began);
    struct stoker_dataset *data = open_tar(at("m/*.tar"), "cls", NULL);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    *seconds = (double)(ended.tv_sec - began.tv_sec) + 1e-9 * (double)(ended.tv_nsec - began.tv_nsec);
    *maps = (long)count_in("/proc/self/maps", NULL) - (long)maps_before;
    *reads = count_in("/proc/self/io", "syscr:") - reads_before;
    return data;
}

static bool all_there(struct stoker_dataset *data)
{
    bool good = data && st_dataset_count(data) == MANY * EACH;
    for (uint64_t i = 0; good && i < MANY * EACH; i += 7)
        good = is_label(data, i);
    return good;
}

/* Kept sums, in what a process after this one would open. */
static bool has_sums(void)
{
    struct st_shards shards = {0};
    const struct stoker_dataset_options opt = {.size = sizeof opt};
    bool good = !st_shards_open(&shards, &st_shard_kind_tar, at("m/*.tar"), &opt, &err);
    for (uint64_t i = 0; good && i < shards.count; i++)
        good = shards.items[i].index.crcs && shards.items[i].index.crcs[0] && shards.items[i].index.lent;
    st_shards_close(&shards);
    return good;
}

static void many(void)
{
    struct rlimit limit, few;
    unsigned long reads;
    double seconds;
    long maps;
    while (time(NULL) < many_written + 3) /* what changed a moment ago is not kept */
        usleep(10000);
    getrlimit(RLIMIT_NOFILE, &limit);
    few = limit;
    few.rlim_cur = limit.rlim_max < 1024 ? limit.rlim_max : 1024;
    setrlimit(RLIMIT_NOFILE, &few);
    struct stoker_dataset *data = open_many(&reads, &maps, &seconds);
    ok(all_there(data), "%d archives, with 1,024 files allowed: %s", MANY, err.message);
    note("the first time %.3f s, %lu reads, %ld mappings", seconds, reads, maps);
    st_dataset_drop(data);
    data = open_many(&reads, &maps, &seconds);
    ok(data && reads < 200, "with kept indexes %lu reads", reads);
    ok(data && maps < 64, "%ld mappings", maps);
    note("%.3f s", seconds);
    bool good = true;
    for (uint64_t i = 0; data && i < MANY * EACH; i++)
        good = good && is_label(data, i);
    ok(good, "all samples are read: %s", err.message);
    ok(count_in("/proc/self/maps", NULL) && access(at("m/00000.tar.all.stoker-index"), F_OK) == 0,
       "one file has all indexes");
    st_dataset_drop(data);
    ok(has_sums(), "and all sums, when the last was learned");
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void one_of_many_changes(void)
{
    unsigned long reads;
    double seconds;
    long maps;
    FILE *file = fopen(at("m/00100.tar"), "wb");
    for (unsigned k = 0; file && k < EACH; k++)
        tar_member(file, k ? "other.cls" : "new.cls", k ? "201" : "200", 3);
    if (!file)
        abort();
    tar_end(file);
    set_time(at("m/00100.tar"), 1000000000);
    struct stoker_dataset *data = open_many(&reads, &maps, &seconds);
    char name[4096] = "";
    if (data)
        st_dataset_name(data, 200, name, sizeof name);
    ok(all_there(data) && strstr(name, ": new"), "one is written again with its old time: %s", name);
    ok(reads < 400, "the others are not looked through again: %lu reads", reads);
    st_dataset_drop(data);
    char list[4096];
    snprintf(list, sizeof list, "%s", at("m/00000.tar.all.stoker-index")); /* at() has room for eight */
    struct stat info;
    stat(list, &info);
    for (long byte = 0; byte < 2; byte++) {
        const int fd = open(list, O_RDWR);
        uint8_t value;
        const off_t where = byte ? 4000 : info.st_size - 100;
        if (fd < 0 || pread(fd, &value, 1, where) != 1)
            abort();
        value ^= 1;
        if (pwrite(fd, &value, 1, where) != 1 || close(fd))
            abort();
        data = open_many(&reads, &maps, &seconds);
        ok(all_there(data), "a list with a wrong byte (%lld) does no harm: %s", (long long)where,
           err.message);
        st_dataset_drop(data);
    }
    if (truncate(list, info.st_size / 2))
        abort();
    data = open_many(&reads, &maps, &seconds);
    ok(all_there(data), "nor does half of one: %s", err.message);
    st_dataset_drop(data);
}

int main(void)
{
    tree_make();
    write_many(); /* early: they are old enough to be kept when it is their turn */
    cut_index();
    unpacked();
    many();
    one_of_many_changes();
    tree_remove();
    st_buffer_free(&buffer);
    st_buffer_free(&scratch);
    return done_testing();
}
