/* Every backend brings the same bytes, names what fails, stops at any moment, and leaves nothing behind.
 */
#include "base/clock.h"
#include "source/reader/reader.h"
#include "tap.h"
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

#ifdef __SANITIZE_THREAD__ /* comparing bytes takes its time */
enum { FILES = 90, LARGEST = 600000 };
#else
enum { FILES = 90, LARGEST = 3000000 };
#endif

static const char *const backend_names[] = {"auto", "uring", "pool", "inline"};
static struct stoker_dataset *files;

/* Sizes around the buffers' (160 KiB at first), and small ones. */
static size_t size_of(uint64_t i)
{
    static const size_t sizes[] = {0, 1, 4095, 4096, 110000, 163839, 163840, 163841, 500000, LARGEST};
    return i < 10 ? sizes[i] : 1000 + i * 37;
}

static void make_files(void)
{
    static char paths[FILES + 3][300];
    const char *list[FILES + 3];
    struct stoker_error err;
    for (uint64_t i = 0; i < FILES + 3; i++) {
        snprintf(paths[i], sizeof paths[i], "%s", at("d/%llu.jpg", (unsigned long long)i));
        list[i] = paths[i];
        if (i < FILES)
            tree_file(paths[i], size_of(i), (uint32_t)i);
    }
    mkdir(paths[FILES + 1], 0777);
    if (symlink(paths[FILES + 2], paths[FILES + 2]) ||
        st_dataset_from_files(&files, list, NULL, FILES + 3, &err))
        abort();
}

struct run {
    struct st_reader *reader;
    uint64_t count, step;
    atomic_ullong next;
    atomic_int wrong, refused;
};

static uint64_t plan(void *context, uint64_t ticket)
{
    const struct run *run = context;
    return ticket * run->step % FILES;
}

static void *consume(void *argument)
{
    struct run *run = argument;
    struct st_buffer own = {0};
    uint64_t ticket;
    while ((ticket = atomic_fetch_add(&run->next, 1)) < run->count) {
        struct st_bytes bytes;
        struct stoker_error err;
        const uint64_t sample = plan(run, ticket);
        const int rc = ticket % 3 ? st_reader_get_into(run->reader, ticket, &own, &bytes, &err)
                                  : st_reader_get(run->reader, ticket, &bytes, &err);
        if (rc == STOKER_ECANCELED) {
            atomic_fetch_add(&run->refused, 1);
            break;
        }
        if (rc || !tree_file_is(bytes.data, bytes.size, size_of(sample), (uint32_t)sample))
            atomic_fetch_add(&run->wrong, 1);
        st_reader_done(run->reader, ticket);
    }
    st_buffer_free(&own);
    return NULL;
}

/* One epoch by three consumers, cancelled after a while if `cancel_us` is not 0. */
static void epoch(struct run *run, useconds_t cancel_us)
{
    pthread_t threads[3];
    struct stoker_error err;
    atomic_store(&run->next, 0);
    if (st_reader_start(run->reader, run->count, plan, run, &err))
        abort();
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, consume, run))
            abort();
    if (cancel_us) {
        usleep(cancel_us);
        st_reader_cancel(run->reader);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    st_reader_stop(run->reader);
}

static int handles(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count;
}

static struct st_reader *open_reader(enum st_reader_backend backend, uint32_t depth)
{
    struct st_reader *reader = NULL;
    struct stoker_error err = {0};
    if (st_reader_open(&reader, files, backend, depth, &err))
        note("%s", err.message);
    return reader;
}

static void same_bytes(enum st_reader_backend backend, bool eager)
{
    const uint32_t depths[] = {4, 7, 64, 1024};
    for (int k = 0; k < 4; k++) {
        struct run run = {.reader = open_reader(backend, depths[k]), .count = 3 * FILES, .step = 7};
        struct st_reader_stats stats;
        if (eager)
            st_reader_eager(run.reader);
        epoch(&run, 0);
        epoch(&run, 0);
        run.step = 1;
        epoch(&run, 0);
        st_reader_stats(run.reader, &stats);
        ok(run.wrong == 0 && run.refused == 0, "%s, depth %u%s: three epochs, every byte right",
           backend_names[backend], depths[k], eager ? ", eager" : "");
        ok(stats.ahead <= 9 * FILES && stats.in_flight_max <= depths[k] &&
               stats.buffer_bytes_max <= depths[k] * (uint64_t)(4 << 20),
           "%llu read ahead, at most %llu in flight, %llu bytes (%s)", (unsigned long long)stats.ahead,
           (unsigned long long)stats.in_flight_max, (unsigned long long)stats.buffer_bytes_max,
           stats.backend);
        st_reader_close(run.reader);
    }
}

static uint64_t in_order(void *context, uint64_t ticket)
{
    (void)context;
    return ticket;
}

/* How far is read ahead is moved between epochs and in the midst of one. */
static void *move_limit(void *argument)
{
    for (uint32_t k = 0; k < 400; k++) {
        st_reader_limit(argument, 1 + k * 7 % 64);
        usleep(50);
    }
    return NULL;
}

/* With nobody to take what is read: no more than the limit, which says so, once. */
static void limit_holds(enum st_reader_backend backend)
{
    struct st_reader *reader = open_reader(backend, 64);
    struct st_reader_stats stats;
    st_reader_eager(reader);
    st_reader_limit(reader, 5);
    st_reader_start(reader, FILES, in_order, NULL, NULL);
    bool held = false;
    for (int k = 0; !held && k < 200000; k++) {
        usleep(1000);
        held = st_reader_was_held(reader);
    }
    st_reader_stop(reader);
    st_reader_stats(reader, &stats);
    (void)st_reader_was_held(reader);
    ok(held && stats.ahead == 5 && !st_reader_was_held(reader),
       "%s: a limit of 5 holds the backend back, after %llu", backend_names[backend],
       (unsigned long long)stats.ahead);
    st_reader_close(reader);
}

static void limits(enum st_reader_backend backend)
{
    struct run run = {.reader = open_reader(backend, 64), .count = 3 * FILES, .step = 7};
    struct st_reader_stats few, more;
    pthread_t thread;
    st_reader_eager(run.reader);
    st_reader_limit(run.reader, 5);
    epoch(&run, 0);
    st_reader_stats(run.reader, &few);
    st_reader_limit(run.reader, 1000);
    epoch(&run, 0);
    st_reader_stats(run.reader, &more);
    ok(few.in_flight_max <= 5 && more.in_flight_max <= 64, "%s: a limit of 5, %llu in flight; 64, %llu",
       backend_names[backend], (unsigned long long)few.in_flight_max,
       (unsigned long long)more.in_flight_max);
    if (pthread_create(&thread, NULL, move_limit, run.reader))
        abort();
    epoch(&run, 0);
    pthread_join(thread, NULL);
    ok(run.wrong == 0 && run.refused == 0, "%s: while it is moved every byte is right",
       backend_names[backend]);
    st_reader_close(run.reader);
    if (backend != ST_READER_INLINE)
        limit_holds(backend);
}

/* ---- who reads ---------------------------------------------------------------------------------------
 */

static int threads_now(void)
{
    DIR *dir = opendir("/proc/self/task");
    int count = -2; /* . and .. */
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count;
}

struct quiet_run {
    uint64_t wrong, ahead; /* samples that failed, and that were read ahead */
    int threads;           /* more than before */
};

/* Every file by the calling thread, with a reader of its own. */
static struct quiet_run read_all(enum st_reader_backend backend)
{
    const int before = threads_now();
    struct run run = {.reader = open_reader(backend, 64), .count = FILES, .step = 1};
    struct st_reader_stats stats;
    struct st_buffer own = {0};
    struct stoker_error err;
    if (!run.reader || st_reader_start(run.reader, run.count, plan, &run, &err))
        abort();
    for (uint64_t t = 0; t < run.count; t++) {
        struct st_bytes bytes;
        run.wrong += st_reader_get_into(run.reader, t, &own, &bytes, &err) != 0;
        st_reader_done(run.reader, t);
    }
    st_reader_stop(run.reader);
    st_reader_stats(run.reader, &stats);
    const struct quiet_run out = {(uint64_t)run.wrong, stats.ahead, threads_now() - before};
    st_buffer_free(&own);
    st_reader_close(run.reader);
    return out;
}

/* Who finds its bytes in memory reads them itself, and no thread is started. A busy machine may put a read to sleep
 * all the same: the quietest of some tries counts. */
static void in_memory(enum st_reader_backend backend)
{
    struct quiet_run run = read_all(backend);
    uint64_t wrong = run.wrong;
    for (int more = 0; more < 20 && (run.ahead || run.threads); more++) {
        run = read_all(backend);
        wrong += run.wrong;
    }
    ok(wrong == 0 && run.ahead == 0, "%s: files in memory are not read ahead", backend_names[backend]);
    ok(run.threads == 0, "and no thread is started for them");
}

/* A pipe would be waited for, a device read without an end. */
static void not_regular(enum st_reader_backend backend, bool eager)
{
    static char paths[4][300];
    const char *list[5];
    struct stoker_dataset *data;
    struct st_reader *reader;
    struct stoker_error err;
    struct st_bytes bytes;
    struct run run = {.step = 1};
    snprintf(paths[0], sizeof paths[0], "%s", at("d/pipe%d%d", (int)backend, eager));
    snprintf(paths[1], sizeof paths[1], "/dev/zero");
    snprintf(paths[2], sizeof paths[2], "%s", at("d/link%d%d", (int)backend, eager));
    snprintf(paths[3], sizeof paths[3], "%s", at("d/20.jpg"));
    if (mkfifo(paths[0], 0600) || symlink(paths[3], paths[2]))
        abort();
    for (int i = 0; i < 4; i++)
        list[i] = paths[i];
    list[4] = "/dev/null";
    alarm(60);
    if (st_dataset_from_files(&data, list, NULL, 5, &err) ||
        st_reader_open(&reader, data, backend, 8, &err))
        abort();
    if (eager)
        st_reader_eager(reader);
    st_reader_start(reader, 5, in_order, &run, &err);
    for (uint64_t t = 0; t < 5; t++) {
        const int rc = st_reader_get(reader, t, &bytes, &err);
        if (t == 2 || t == 3)
            ok(!rc && tree_file_is(bytes.data, bytes.size, size_of(20), 20), "%s: %s",
               backend_names[backend], t == 2 ? "a link to a file is a file" : "a file");
        else
            ok(rc == STOKER_EIO && strstr(err.message, "not a regular file"), "%s: %s",
               backend_names[backend], err.message);
        st_reader_done(reader, t);
    }
    alarm(0);
    st_reader_close(reader);
    st_dataset_drop(data);
    unlink(paths[0]);
    unlink(paths[2]);
}

/* Few handles: io_uring keeps fewer files open, and is not refused for it. */
static void few_handles(enum st_reader_backend backend)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    const struct rlimit few = {.rlim_cur = 64, .rlim_max = limit.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    struct run run = {.reader = open_reader(backend, 1032), .count = 3 * FILES, .step = 7};
    if (run.reader) {
        st_reader_eager(run.reader);
        epoch(&run, 0);
    }
    ok(run.reader && run.wrong == 0, "%s: a read-ahead of 1,032 with 64 handles",
       backend_names[backend]);
    st_reader_close(run.reader);
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void errors(enum st_reader_backend backend)
{
    static const int reasons[] = {ENOENT, EISDIR, ELOOP};
    struct run run = {.reader = open_reader(backend, 4), .step = 1};
    struct stoker_error err = {0};
    struct st_bytes bytes;
    const char *paths[] = {at("d/%d.jpg", FILES), at("d/%d.jpg", FILES + 1), at("d/%d.jpg", FILES + 2)};
    struct stoker_dataset *data;
    struct st_reader *reader;
    if (st_dataset_from_files(&data, paths, NULL, 3, &err) ||
        st_reader_open(&reader, data, backend, 4, &err) || st_reader_start(reader, 5, plan, &run, &err))
        abort();
    for (uint64_t i = 0; i < 5; i++) {
        const int rc = st_reader_get(reader, i, &bytes, &err);
        if (i < 3)
            ok(rc == (i ? STOKER_EIO : STOKER_ENOTFOUND) && strstr(err.message, paths[i]) &&
                   strstr(err.message, strerror(reasons[i])),
               "%s: %s", backend_names[backend], err.message);
        else
            ok(rc == STOKER_EINVAL, "a sample past the last: %s", err.message);
    }
    st_reader_stop(reader);
    ok(!st_reader_start(reader, 1, plan, &run, &err) &&
           st_reader_get(reader, 0, &bytes, NULL) == STOKER_ENOTFOUND,
       "without a place for the sentence");
    st_reader_close(reader);
    st_reader_close(run.reader);
    st_dataset_drop(data);
}

static void stopping(enum st_reader_backend backend)
{
    struct run run = {.reader = open_reader(backend, 32), .count = 1u << 30, .step = 11};
    struct stoker_error err;
    struct st_bytes bytes;
    ok(st_reader_get(run.reader, 0, &bytes, &err) == STOKER_ECANCELED, "get before start is refused");
    uint64_t worst = 0;
    for (useconds_t i = 0; i < 12; i++) {
        const uint64_t begin = st_now_ns();
        epoch(&run, 1 + i * 300);
        const uint64_t took = st_now_ns() - begin - (1 + i * 300) * 1000;
        worst = took > worst ? took : worst;
    }
    ok(run.wrong == 0 && run.refused == 36, "%s: cancelled at 12 moments, every waiting get returns",
       backend_names[backend]);
    note("the slowest stop took %.1f ms", (double)worst / 1e6);
    /* Start and stop with bytes still lent out, and with nothing asked for. */
    for (int i = 0; i < 20; i++) {
        if (st_reader_start(run.reader, 1000, plan, &run, &err))
            abort();
        if (i % 2 && st_reader_get(run.reader, 0, &bytes, &err))
            run.wrong++;
        st_reader_stop(run.reader);
        st_reader_done(run.reader, 0);
    }
    run.count = FILES;
    epoch(&run, 0);
    ok(run.wrong == 0, "and works afterwards");
    if (st_reader_start(run.reader, 1000, plan, &run, &err))
        abort();
    st_reader_close(run.reader);
    ok(true, "close in the midst of an epoch");
}

static void forked(enum st_reader_backend backend)
{
    struct run run = {.reader = open_reader(backend, 16), .count = 4 * FILES, .step = 1};
    struct stoker_error err;
    struct st_bytes bytes;
    int status = -1;
    if (st_reader_start(run.reader, run.count, plan, &run, &err) ||
        st_reader_get(run.reader, 0, &bytes, &err))
        abort();
    const pid_t child = fork();
    if (child == 0) {
        alarm(120);
        st_reader_close(run.reader);
        struct st_buffer buffer = {0};
        _exit(st_read_sample(files, 4, &buffer, &bytes, &err) ||
              !tree_file_is(bytes.data, bytes.size, size_of(4), 4));
    }
    ok(waitpid(child, &status, 0) == child && status == 0,
       "%s: a forked child closes it and reads on its own", backend_names[backend]);
    st_reader_done(run.reader, 0);
    st_reader_stop(run.reader);
    epoch(&run, 0);
    ok(run.wrong == 0, "the parent's goes on");
    st_reader_close(run.reader);
}

static void choices(void)
{
    struct st_reader *reader = NULL;
    struct stoker_error err;
    struct st_reader_stats stats;
    struct stoker_dataset *memory, *nothing;
    const struct stoker_item item = {"bytes", 5, 0};
    struct run run = {.step = 0};
    struct st_bytes bytes;
    ok(st_reader_open(&reader, files, ST_READER_AUTO, 0, &err) == STOKER_EINVAL, "depth 0: %s",
       err.message);
    setenv("STOKER_READER", "pool", 1);
    reader = open_reader(ST_READER_AUTO, 8);
    st_reader_stats(reader, &stats);
    ok(!strcmp(stats.backend, "pread pool"), "STOKER_READER=pool");
    st_reader_close(reader);
    setenv("STOKER_READER", "fast", 1);
    ok(st_reader_open(&reader, files, ST_READER_AUTO, 8, &err) == STOKER_EINVAL, "%s", err.message);
    unsetenv("STOKER_READER");
    if (st_dataset_from_memory(&memory, &item, 1, &err) ||
        st_dataset_from_memory(&nothing, NULL, 0, &err) ||
        st_reader_open(&reader, memory, ST_READER_AUTO, 1, &err))
        abort();
    st_reader_stats(reader, &stats);
    ok(!strcmp(stats.backend, "memory"), "memory needs no backend");
    ok(st_reader_get(reader, 0, &bytes, &err) == STOKER_ECANCELED, "not started");
    st_reader_start(reader, 2, plan, &run, &err);
    ok(!st_reader_get(reader, 0, &bytes, &err) && bytes.data == item.data && bytes.size == 5,
       "no copy is made");
    st_reader_done(reader, 0);
    st_reader_close(reader);
    if (st_reader_open(&reader, nothing, ST_READER_AUTO, 4, &err) ||
        st_reader_start(reader, 0, plan, &run, &err))
        abort();
    st_reader_stop(reader);
    st_reader_close(reader);
    ok(true, "a dataset without samples");
    st_dataset_drop(memory);
    st_dataset_drop(nothing);
    st_reader_close(NULL);
}

int main(void)
{
    tree_make();
    make_files();
    const int before = handles();
    for (int backend = ST_READER_URING; backend <= ST_READER_INLINE; backend++) {
        struct st_reader *reader = open_reader((enum st_reader_backend)backend, 8);
        if (!reader) {
            skip(backend_names[backend], "not on this machine");
            continue;
        }
        st_reader_close(reader);
        for (int eager = 0; eager < 2; eager++) {
            same_bytes((enum st_reader_backend)backend, eager);
            not_regular((enum st_reader_backend)backend, eager);
        }
        limits((enum st_reader_backend)backend);
        in_memory((enum st_reader_backend)backend);
        few_handles((enum st_reader_backend)backend);
        errors((enum st_reader_backend)backend);
        stopping((enum st_reader_backend)backend);
        forked((enum st_reader_backend)backend);
    }
    choices();
    ok(handles() == before, "no handle is left open");
    st_dataset_drop(files);
    tree_remove();
    return done_testing();
}
