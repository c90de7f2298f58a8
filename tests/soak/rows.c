/* rows.c - loads a dataset while one call below the reader goes wrong, each time in a process of its own
 *
 *     rows                      a line of standard input, its words separated by tabs, is one run: KIND
 *                               NUMBER UNDER BACKEND URI FIELDS INDEX_DIR CACHE_DIR REMOTE_MS ON_ERROR;
 * empty words stand for defaults. A line of standard output says how it ended. rows KIND NUMBER ... that
 * one, in this process: for a debugger
 *
 * KIND, NUMBER and UNDER are as in shim.h, whose library must be preloaded. An answer is CALLS FIRED
 * SUMS OUTCOME and a sentence, separated by tabs: calls counted, whether one went wrong, sums of the
 * class names and of the batches that came, and "ok", "error", "leak", "hang", "signal N" or "died N".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/executor.h"
#include "pipe/loader.h"
#include "source/checksum/crc32c.h"
#include "soak/shim.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 10, BATCH = 4, WORKERS = 2, HANG_S = 300 };
enum word { KIND, NUMBER, UNDER, BACKEND, URI, FIELDS, INDEX_DIR, CACHE_DIR, REMOTE_MS, ON_ERROR };

struct run {
    char sums[4096];
    size_t used;
    struct stoker_error err;
};

static const char *given(char **words, enum word which) { return words[which][0] ? words[which] : NULL; }

/* ---- one run ------------------------------------------------------------------------------------- */

static uint64_t size_of(enum stoker_dtype dtype)
{
    switch (dtype) {
    case STOKER_DTYPE_F32:
    case STOKER_DTYPE_I32:
    case STOKER_DTYPE_U32:
        return 4;
    case STOKER_DTYPE_F16:
    case STOKER_DTYPE_BF16:
    case STOKER_DTYPE_I16:
    case STOKER_DTYPE_U16:
        return 2;
    case STOKER_DTYPE_I64:
    case STOKER_DTYPE_U64:
    case STOKER_DTYPE_F64:
        return 8;
    default:
        return 1;
    }
}

static uint32_t sum_values(uint32_t sum, const void *data, enum stoker_dtype dtype, int32_t ndim,
                           const int64_t *shape)
{
    uint64_t bytes = ndim ? size_of(dtype) : 0;
    for (int32_t i = 0; i < ndim; i++)
        bytes *= (uint64_t)shape[i];
    return bytes ? st_crc32c_more(sum, data, bytes) : sum;
}

static uint32_t sum_tensor(uint32_t sum, const struct stoker_tensor *tensor)
{
    return sum_values(sum, tensor->data, tensor->dtype, tensor->ndim, tensor->shape);
}

static uint32_t sum_column(uint32_t sum, const struct stoker_column *column, uint32_t count)
{
    if (!column->offsets)
        return sum_values(sum, column->data, column->dtype, column->ndim, column->shape);
    sum = st_crc32c_more(sum, column->offsets, (count + 1) * sizeof *column->offsets);
    return st_crc32c_more(sum, column->data, column->offsets[count] * size_of(column->dtype));
}

static uint32_t sum_batch(const struct stoker_batch *batch)
{
    uint32_t sum = sum_tensor(0, &batch->labels);
    if (!batch->ragged)
        sum = sum_tensor(sum, &batch->images);
    for (uint32_t i = 0; batch->ragged && i < batch->count; i++)
        sum = sum_tensor(sum, &batch->items[i]);
    for (uint32_t i = 0; i < batch->column_count; i++)
        sum = sum_column(sum, batch->columns[i], batch->count);
    return st_crc32c_more(sum, batch->samples, batch->count * sizeof *batch->samples);
}

static void note_sum(struct run *run, uint32_t sum)
{
    run->used += (size_t)snprintf(run->sums + run->used, sizeof run->sums - run->used, "%s%08x",
                                  run->used ? "," : "", sum);
}

static uint32_t sum_classes(const struct stoker_dataset *data)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < st_dataset_class_count(data); i++) {
        const char *name = st_dataset_class_name(data, i);
        sum = st_crc32c_more(sum, name, strlen(name) + 1);
    }
    return sum;
}

static int load(struct stoker_loader *loader, struct run *run)
{
    const struct stoker_batch *batch;
    int rc = st_loader_start(loader, NULL, 0, &run->err);
    while (!rc && !(rc = st_loader_next(loader, &batch, &run->err))) {
        note_sum(run, sum_batch(batch));
        st_batch_release(batch, NULL);
    }
    return rc == STOKER_END ? 0 : rc;
}

/* With ON_ERROR "skip" a sample that is taken for a bad one shows in the sums. */
static int open_and_load(char **words, struct run *run)
{
    const struct stoker_dataset_options how = {
        .size = sizeof how,
        .threads = 2,
        .fields = given(words, FIELDS),
        .index_dir = given(words, INDEX_DIR),
        .cache_dir = given(words, CACHE_DIR),
        .remote_ms = (uint32_t)atoi(words[REMOTE_MS]),
    };
    const struct stoker_loader_options opt = {
        .size = sizeof opt,
        .batch_size = BATCH,
        .workers = WORKERS,
        .prefetch = 2,
        .on_error = strcmp(words[ON_ERROR], "skip") ? STOKER_ON_ERROR_RAISE : STOKER_ON_ERROR_SKIP,
        .error_limit = UINT64_MAX,
        .pillow = 13,
        .pixel_limit = 1 << 20};
    struct stoker_dataset *data = NULL;
    struct stoker_pipeline *pipe = NULL;
    struct stoker_loader *loader = NULL;
    if (given(words, BACKEND))
        setenv("STOKER_READER", words[BACKEND], 1);
    int rc = st_dataset_open(&data, words[URI], &how, &run->err);
    if (!rc)
        rc = st_pipeline_open(&pipe, "to_tensor", &run->err);
    if (!rc)
        rc = st_loader_open(&loader, data, pipe, &opt, NULL, &run->err);
    if (!rc) {
        st_reader_eager(loader->reader); /* what is in the page cache, too */
        note_sum(run, sum_classes(data));
        rc = load(loader, run);
    }
    st_loader_close(loader);
    st_pipeline_drop(pipe);
    st_dataset_drop(data);
    return rc;
}

static long entries(const char *folder)
{
    DIR *dir = opendir(folder);
    long count = 0;
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count;
}

/* Threads and descriptors that are left; a thread that was joined may be seen a little longer. */
static bool is_flat(long files, long threads)
{
    for (int tries = 0; tries < 1000; tries++) {
        if (entries("/proc/self/fd") <= files && entries("/proc/self/task") <= threads)
            return true;
        usleep(10000);
    }
    return false;
}

static void try_one(char **words, FILE *answer)
{
    void (*arm)(const char *, unsigned long, const char *) = NULL;
    void (*state)(unsigned long *, bool *) = NULL;
    struct run run = {0};
    unsigned long calls = 0;
    bool fired = false;
    *(void **)&arm = dlsym(RTLD_DEFAULT, "fault_arm");
    *(void **)&state = dlsym(RTLD_DEFAULT, "fault_state");
    const long files = entries("/proc/self/fd"), threads = entries("/proc/self/task");
    if (!arm || !state)
        abort(); /* started without the shim */
    arm(words[KIND], strtoul(words[NUMBER], NULL, 10), words[UNDER]);
    const int rc = open_and_load(words, &run);
    state(&calls, &fired);
    arm("none", 0, "");
    const char *outcome = rc ? "error" : "ok";
    if (!is_flat(files, threads))
        outcome = "leak";
    for (char *c = run.err.message; *c; c++)
        *c = *c < ' ' ? '?' : *c;
    fprintf(answer, "%lu\t%d\t%s\t%s\t%s\n", calls, fired, run.sums, outcome, rc ? run.err.message : "");
    fflush(answer);
}

/* ---- a process for each -------------------------------------------------------------------------- */

/* What the child wrote until it ended; false if that takes too long. */
static bool collect(int fd, char *text, size_t size)
{
    size_t got = 0;
    for (;;) {
        struct pollfd waiting = {.fd = fd, .events = POLLIN};
        const int ready = poll(&waiting, 1, HANG_S * 1000);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return false;
        const ssize_t more = read(fd, text + got, size - 1 - got);
        if (more <= 0)
            break;
        got += (size_t)more;
    }
    text[got] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return true;
}

static void serve(char **words)
{
    char text[8192] = "";
    int ends[2], status = 0;
    fflush(stdout);
    if (pipe(ends))
        exit(2);
    const pid_t pid = fork();
    if (pid == 0) {
        FILE *answer = fdopen(ends[1], "w");
        close(ends[0]);
        if (answer)
            try_one(words, answer);
        _exit(answer ? 0 : 1);
    }
    close(ends[1]);
    const bool ended = pid > 0 && collect(ends[0], text, sizeof text);
    close(ends[0]);
    if (pid > 0 && !ended)
        kill(pid, SIGKILL);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        exit(2);
    if (!ended)
        puts("0\t1\t\thang\t");
    else if (WIFSIGNALED(status))
        printf("0\t1\t\tsignal %d\t\n", WTERMSIG(status));
    else if (WEXITSTATUS(status) || !text[0])
        printf("0\t1\t\tdied %d\t\n", WEXITSTATUS(status));
    else
        puts(text);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    char line[5 * PATH_MAX], *words[WORDS], *rest;
    if (argc == WORDS + 1) {
        try_one(argv + 1, stdout);
        return 0;
    }
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        rest = line;
        for (int i = 0; i < WORDS; i++)
            if (!(words[i] = strsep(&rest, "\t")))
                return 2;
        serve(words);
    }
    return 0;
}
