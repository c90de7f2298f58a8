/* Datasets from memory, from named files and from callbacks; holding and dropping. */
#include "source/reader/reader.h"
#include "tap.h"
#include "tree.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static bool reads(struct stoker_dataset *data, uint64_t sample, const char *want)
{
    struct st_buffer buffer = {0};
    struct st_bytes bytes = {0};
    struct stoker_error err = {0};
    const bool same = !st_read_sample(data, sample, &buffer, &bytes, &err) &&
                      bytes.size == strlen(want) &&
                      (bytes.size == 0 || !memcmp(bytes.data, want, bytes.size));
    if (!same)
        note("%s", err.message);
    st_buffer_free(&buffer);
    return same;
}

static void from_memory(void)
{
    const struct stoker_item items[] = {{"first", 5, 7}, {NULL, 0, -100}, {"third", 5, 1ll << 40}};
    struct stoker_dataset *data;
    struct stoker_error err;
    char name[32];
    ok(!st_dataset_from_memory(&data, items, 3, &err) && st_dataset_count(data) == 3, "three buffers");
    ok(reads(data, 0, "first") && reads(data, 1, "") && reads(data, 2, "third"), "are read");
    ok(st_dataset_label(data, 1) == -100 && st_dataset_label(data, 2) == 1ll << 40, "have labels");
    ok(st_dataset_name(data, 2, name, sizeof name) == 8 && !strcmp(name, "sample 2"), "and names");
    struct st_bytes bytes;
    ok(st_read_sample(data, 3, NULL, &bytes, &err) == STOKER_EINVAL, "there is no fourth: %s",
       err.message);
    st_dataset_drop(data);
    ok(!st_dataset_from_memory(&data, NULL, 0, &err) && st_dataset_count(data) == 0, "none at all");
    st_dataset_drop(data);
    const struct stoker_item bad = {NULL, 5, 0};
    ok(st_dataset_from_memory(&data, &bad, 1, &err) == STOKER_EINVAL, "a size without data: %s",
       err.message);
}

static void from_files(void)
{
    tree_file(at("one.jpg"), 4, 0);
    tree_file(at("empty.jpg"), 0, 0);
    mkdir(at("folder.jpg"), 0777);
    mkfifo(at("pipe.jpg"), 0666);
    char longest[5000];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    const char *paths[] = {at("one.jpg"),    at("empty.jpg"), at("missing.jpg"),
                           at("folder.jpg"), longest,         at("pipe.jpg")};
    const int64_t labels[] = {5, 4, 3, 2, 1, 0};
    const int errors[] = {0, 0, ENOENT, EISDIR, ENAMETOOLONG};
    struct stoker_dataset *data;
    struct stoker_error err;
    struct st_buffer buffer = {0};
    struct st_bytes bytes = {0};
    ok(!st_dataset_from_files(&data, paths, labels, 6, &err), "a list of files");
    ok(st_dataset_label(data, 2) == 3, "with labels");
    ok(!st_read_sample(data, 0, &buffer, &bytes, &err) && tree_file_is(bytes.data, bytes.size, 4, 0),
       "is read");
    ok(!st_read_sample(data, 1, &buffer, &bytes, &err) && bytes.size == 0, "an empty file is no bytes");
    for (uint64_t i = 2; i < 5; i++)
        ok(st_read_sample(data, i, &buffer, &bytes, &err) == (i == 2 ? STOKER_ENOTFOUND : STOKER_EIO) &&
               strstr(err.message, strerror(errors[i])),
           "an error says why: %.60s...", err.message);
    ok(st_read_sample(data, 2, &buffer, &bytes, &err) && strstr(err.message, at("missing.jpg")),
       "and names the file");
    ok(st_read_sample(data, 5, &buffer, &bytes, &err) == STOKER_EIO, "a pipe is not waited for: %s",
       err.message);
    st_dataset_drop(data);
    ok(!st_dataset_from_files(&data, paths, NULL, 1, &err) && st_dataset_label(data, 0) == 0,
       "no labels: 0");
    st_dataset_drop(data);
    ok(!st_dataset_from_files(&data, NULL, NULL, 0, &err) && st_dataset_count(data) == 0, "no files");
    st_dataset_drop(data);
    const char *none = NULL;
    ok(st_dataset_from_files(&data, &none, NULL, 1, &err) == STOKER_EINVAL, "a path that is NULL");
    st_buffer_free(&buffer);
}

static int calls, closed;

static int answer(void *cookie, uint64_t sample, void *buffer, size_t capacity, size_t *size,
                  struct stoker_error *err)
{
    calls++;
    if (sample == 1) {
        snprintf(err->message, sizeof err->message, "the store said no");
        return STOKER_ELIMIT;
    }
    if (sample == 2)
        return 42;
    if (sample == 3) { /* never content */
        *size = capacity + 1;
        return 0;
    }
    *size = *(size_t *)cookie;
    if (*size <= capacity)
        memset(buffer, 'x', *size);
    return 0;
}

static int64_t twice(void *cookie, uint64_t sample)
{
    (void)cookie;
    return (int64_t)sample * 2;
}

static void at_close(void *cookie)
{
    (void)cookie;
    closed++;
}

static void from_callbacks(void)
{
    size_t size = 1000000;
    struct stoker_callbacks own = {
        .size = sizeof own, .count = 4, .read = answer, .label = twice, .close = at_close};
    struct stoker_dataset *data;
    struct stoker_error err;
    struct st_buffer buffer = {0};
    struct st_bytes bytes = {0};
    ok(!st_dataset_from_callbacks(&data, &own, &size, &err) && st_dataset_count(data) == 4, "callbacks");
    ok(!st_read_sample(data, 0, &buffer, &bytes, &err) && bytes.size == size &&
           bytes.data[size - 1] == 'x' && calls == 2,
       "are asked again with a larger buffer");
    ok(!st_read_sample(data, 0, &buffer, &bytes, &err) && calls == 3,
       "once it is large, once is enough");
    ok(st_read_sample(data, 1, &buffer, &bytes, &err) == STOKER_ELIMIT &&
           !strcmp(err.message, "sample 1: the store said no"),
       "their words are passed on: %s", err.message);
    ok(st_read_sample(data, 2, &buffer, &bytes, &err) == STOKER_EIO, "a status unknown here: %s",
       err.message);
    ok(st_read_sample(data, 3, &buffer, &bytes, &err) == STOKER_EIO, "asking for ever: %s", err.message);
    ok(st_dataset_label(data, 3) == 6, "labels");
    st_dataset_drop(st_dataset_hold(data));
    ok(closed == 0, "a holder less does not close");
    st_dataset_drop(data);
    ok(closed == 1, "the last one does, once");
    own.read = NULL;
    ok(st_dataset_from_callbacks(&data, &own, &size, &err) == STOKER_EINVAL, "read is needed: %s",
       err.message);
    st_dataset_drop(NULL);
    st_buffer_free(&buffer);
}

/* ---- a fork while a thread is in a callback ------------------------------------------------------ */

static atomic_int inside, leave;

static int64_t slowly(void *cookie, uint64_t sample)
{
    (void)cookie;
    if (sample == 1) {
        atomic_store(&inside, 1);
        while (!atomic_load(&leave))
            sched_yield();
    }
    return (int64_t)sample * 2;
}

static void *ask_label(void *data)
{
    return st_dataset_label(data, 1) == 2 ? data : NULL;
}

static void forked_in_a_callback(void)
{
    size_t size = 1;
    struct stoker_callbacks own = {.size = sizeof own, .count = 4, .read = answer, .label = slowly};
    struct stoker_dataset *data;
    struct stoker_error err;
    pthread_t thread;
    void *asked = NULL;
    int status = -1;
    ok(!st_dataset_from_callbacks(&data, &own, &size, &err) &&
           !pthread_create(&thread, NULL, ask_label, data),
       "a thread in a callback");
    while (!atomic_load(&inside))
        sched_yield();
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        alarm(300);
        const bool right = st_dataset_label(data, 2) == 4 && st_dataset_label(data, 3) == 6;
        st_dataset_drop(data);
        _exit(!right);
    }
    ok(waitpid(child, &status, 0) == child && status == 0, "a forked child need not wait for it");
    atomic_store(&leave, 1);
    pthread_join(thread, &asked);
    ok(asked == data && st_dataset_label(data, 3) == 6, "and its parent goes on");
    st_dataset_drop(data);
}

int main(void)
{
    tree_make();
    from_memory();
    from_files();
    from_callbacks();
    forked_in_a_callback();
    tree_remove();
    return done_testing();
}
