/* Archives by the many, and what is kept or unpacked of them: within limits, and whatever others do to
 * the files. */
#include "source/shards/shards.h"
#include "tar_file.h"
#include "tar_read.h"
#include "tree.h"

#include <sys/resource.h>
#include <sys/wait.h>
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

static int open_packed(struct stoker_dataset **out, const char *pattern, uint64_t memory)
{
    const struct stoker_dataset_options opt = {
        .size = sizeof opt, .fields = "bin", .threads = 8, .max_memory = memory};
    return st_dataset_open(out, pattern, &opt, &err);
}

static void refuse_bombs(void)
{
    struct stoker_dataset *data;
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    if (open_packed(&data, at("bomb-*.tar.gz"), 32 * MIB) != STOKER_ELIMIT)
        _exit(1);
    getrusage(RUSAGE_SELF, &after);
    if (after.ru_maxrss - before.ru_maxrss > 64 * 1024)
        _exit(2);
}

static void unpacked(void)
{
    char name[64];
    struct stoker_dataset *data = NULL;
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "bomb-%d.tar.gz", i);
        packed_tar(at(name), 30 * MIB, false);
    }
    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof name, "fit-%d.tar.gz", i);
        packed_tar(at(name), 4 * MIB, true);
    }
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    skip("eight archives of 30 MiB in 32 MiB are refused, in no more memory",
         "a sanitizer keeps freed memory");
#else
    const int status = status_of(refuse_bombs);
    ok(status == 0, "eight archives of 30 MiB in 32 MiB are refused, in no more memory (status %d)",
       status);
#endif
    ok(!open_packed(&data, at("fit-*.tar.gz"), 29 * MIB) && st_dataset_count(data) == 6,
       "those fit that would fit one after another, however many threads unpack: %s", err.message);
    ok(data && st_dataset_memory(data) >= 24 * MIB && st_dataset_memory(data) < 25 * MIB,
       "and the data set says what they take: %llu",
       (unsigned long long)(data ? st_dataset_memory(data) : 0));
    st_dataset_drop(data);
    ok(open_packed(&data, at("fit-*.tar.gz"), 24 * MIB) == STOKER_ELIMIT, "one byte too few: %s",
       err.message);
}

int main(void)
{
    tree_make();
    cut_index();
    unpacked();
    tree_remove();
    st_buffer_free(&buffer);
    st_buffer_free(&scratch);
    return done_testing();
}
