/* max_memory bounds everything that a loader holds: measured as the memory of a process of its own. What
 * is made is the same for every budget. */
#include "pipe/harness.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Under a sanitizer, or an emulator (scripts/cross.sh), which have memory of their own and take their time. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(ST_EMULATED)
enum { SMALL = 1 };
#else
enum { SMALL = 0 };
#endif

/* 10 MB of pixels; small, everything is an eighth of that. */
enum { WIDTH = SMALL ? 680 : 1920, HEIGHT = SMALL ? 640 : 1800 };

/* Each of 16 workers has two of the many, and batches of whole images several times max_memory in all. The few take
 * more than the smaller budget of same_bytes(), which reads them 16 times over. */
enum { MANY = SMALL ? 16 : 48, SOME = SMALL ? 16 : 32, FEW = SMALL ? 8 : 20 };
#define MIB (SMALL ? 1ull << 17 : 1ull << 20)

static char folder[] = "/tmp/stoker-memory-XXXXXX";

/* A number of /proc/self/status, in bytes. */
static uint64_t status_of(const char *name)
{
    char line[256];
    unsigned long long kilobytes = 0;
    const size_t length = strlen(name);
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, name, length) && line[length] == ':')
            sscanf(line + length + 1, "%llu", &kilobytes);
    if (f)
        fclose(f);
    return kilobytes * 1024;
}

/* ---- images --------------------------------------------------------------------------------------- */

static bool write_file(const char *name, const struct stoker_item *item)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    bool written = f && fwrite(item->data, 1, item->size, f) == item->size;
    if (f)
        written = !fclose(f) && written;
    free((void *)(uintptr_t)item->data);
    return written;
}

/* Every kind once, under many names. */
static bool spread(const char *kind, const char *name, uint32_t files)
{
    char from[300], to[300];
    bool all = true;
    snprintf(to, sizeof to, "%s/%s", folder, kind);
    mkdir(to, 0755);
    snprintf(to, sizeof to, "%s/%s/a", folder, kind);
    mkdir(to, 0755);
    snprintf(from, sizeof from, "%s/%s", folder, name);
    for (uint32_t k = 0; k < files; k++) {
        snprintf(to, sizeof to, "%s/%s/a/%03u%s", folder, kind, k, strrchr(name, '.'));
        all = link(from, to) == 0 && all;
    }
    return all;
}

/* In a process of its own, so that what it takes is not counted. */
static void make_images(void)
{
    const struct stoker_item jpeg = test_jpeg(1, WIDTH, HEIGHT), ppm = test_ppm(2, WIDTH, HEIGHT);
    const struct stoker_item progressive = test_jpeg_progressive(3, WIDTH, HEIGHT);
    _exit(!(write_file("one.jpg", &jpeg) && write_file("one.ppm", &ppm) &&
            write_file("two.jpg", &progressive) && spread("jpeg", "one.jpg", MANY) &&
            spread("progressive", "two.jpg", SOME) && spread("ppm", "one.ppm", MANY) &&
            spread("few-jpeg", "one.jpg", FEW) && spread("few-ppm", "one.ppm", FEW) &&
            spread("few-progressive", "two.jpg", FEW)));
}

/* ---- one loader in one process -------------------------------------------------------------------- */

struct run {
    const char *kind, *text;
    uint32_t batch;
    int32_t workers;
    uint64_t max_memory;
};

static struct stoker_loader *open_run(const struct run *run, struct stoker_error *err)
{
    struct stoker_loader_options opt = harness_options(run->batch, run->workers);
    struct stoker_dataset_options data_opt = {.size = sizeof data_opt};
    struct stoker_dataset *data = NULL;
    struct stoker_pipeline *pipe = NULL;
    struct stoker_loader *loader = NULL;
    char path[300];
    snprintf(path, sizeof path, "folder:%s/%s", folder, run->kind);
    opt.max_memory = run->max_memory;
    opt.pixel_limit = 1 << 28;
    int rc = st_dataset_open(&data, path, &data_opt, err);
    if (!rc)
        rc = st_pipeline_open(&pipe, run->text, err);
    if (!rc)
        (void)st_loader_open(&loader, data, pipe, &opt, NULL, err);
    st_pipeline_drop(pipe);
    st_dataset_drop(data);
    return loader;
}

/* What the child found, by a pipe. */
struct found {
    uint64_t grown, peak, waited_ns, digest;
    uint32_t batches;
    int rc;
    char message[600];
};

static void measure(const struct run *run, struct found *found)
{
    struct stoker_stats stats = {.size = sizeof stats};
    struct stoker_error err = {0};
    const struct stoker_batch *batch;
    struct stoker_loader *loader = open_run(run, &err);
    const uint64_t idle = status_of("VmRSS");
    int rc = loader ? st_loader_start(loader, NULL, 0, &err) : err.code;
    while (!rc && !(rc = st_loader_next(loader, &batch, &err))) {
        found->digest = found->digest * 31 + digest_batch(batch);
        found->batches++;
        st_batch_release(batch, NULL);
    }
    found->grown = status_of("VmHWM") - idle;
    if (loader)
        st_loader_stats(loader, &stats);
    found->peak = stats.memory_peak;
    found->waited_ns = stats.memory_wait_ns;
    found->rc = rc;
    snprintf(found->message, sizeof found->message, "%.599s", rc < 0 ? err.message : "");
    st_loader_close(loader);
}

static struct found in_child(const struct run *run)
{
    struct found found = {.rc = STOKER_EIO};
    int ends[2], status;
    fflush(stdout);
    if (pipe(ends))
        return found;
    const pid_t child = fork();
    if (child == 0) {
        struct found own = {0};
        measure(run, &own);
        _exit(write(ends[1], &own, sizeof own) != (ssize_t)sizeof own);
    }
    close(ends[1]);
    if (read(ends[0], &found, sizeof found) != (ssize_t)sizeof found)
        found.rc = STOKER_EIO;
    close(ends[0]);
    waitpid(child, &status, 0);
    return found;
}

/* ---- what must hold ------------------------------------------------------------------------------- */

static const char small_text[] = "resize(size=256); center_crop(size=224); to_tensor";
static const char ragged_text[] = "random_horizontal_flip";

static void bounded(const char *kind, const char *text, uint32_t batch, uint32_t batches, const char *what)
{
    const struct run run = {kind, text, batch, 16, 256 * MIB};
    const struct found found = in_child(&run);
    const uint64_t allowed = run.max_memory + run.max_memory / 10;
    ok(found.rc == STOKER_END && found.batches == batches, "%s: all %u batches (%s)", what,
       found.batches, found.message);
    if (SMALL)
        skip("bounded memory", "sanitizers and emulators take memory of their own");
    else
        ok(found.grown <= allowed, "%s: 16 workers, max_memory 256 MiB: the process grows by %.0f MiB",
           what, (double)found.grown / (double)MIB);
    /* Promises count here as well. Who asks leaves an eighth each to the reader and to small samples, who do not ask: these
     * came on top of a full budget once, and rows of any size were counted twice, 1.30 times max_memory in all. Small,
     * blocks that are rounded up and what 16 workers keep weigh eight times as much: under the emulator 1.16 was seen. */
    ok(found.peak <= (SMALL ? run.max_memory + run.max_memory / 4 : allowed),
       "%s: the accounts say %.0f MiB at most, %.0f ms of waiting", what,
       (double)found.peak / (double)MIB, (double)found.waited_ns / 1e6);
}

/* With the memory of a few samples and of many, with no worker and with many. */
static void same_bytes(const char *kind, const char *text, const char *what)
{
    static const int32_t workers[] = {0, 1, 4, 16};
    static const uint64_t memory[] = {160 * MIB, 4096 * MIB};
    uint64_t digest = 0;
    bool same = true;
    for (uint32_t w = 0; w < 4; w++)
        for (uint32_t m = 0; m < 2; m++) {
            const struct run run = {kind, text, 2, workers[w], memory[m]};
            if (run.workers == 1 && share_of(100) < 100)
                continue;
            const struct found found = in_child(&run);
            if (found.rc != STOKER_END)
                note("%d workers, %.0f MiB: %s", run.workers, (double)run.max_memory / (double)MIB,
                     found.message);
            if (run.workers == 16)
                note("%.0f MiB: %.0f ms of waiting for memory", (double)run.max_memory / (double)MIB,
                     (double)found.waited_ns / 1e6);
            digest = w || m ? digest : found.digest;
            same = same && found.rc == STOKER_END && found.digest == digest;
        }
    ok(same, "%s: the same bytes, whatever the budget and the workers", what);
}

static void too_little(void)
{
    for (int32_t workers = 0; workers <= 4; workers += 4) {
        const struct run run = {"jpeg", "center_crop(size=16); resize(size=8); to_tensor", 2, workers,
                                MIB};
        const struct found found = in_child(&run);
        ok(found.rc == STOKER_ELIMIT &&
               strstr(found.message, SMALL ? "max_memory (0.1 MB)" : "max_memory (1.0 MB)") &&
               strstr(found.message, "/a/0") && strstr(found.message, "takes "),
           "%d workers: too little for one sample: %s", workers, found.message);
    }
    const struct run batch = {"jpeg", "resize(size=[512,512]); to_tensor", 64, 2, 64 * MIB};
    struct found found = in_child(&batch);
    ok(found.rc == STOKER_ELIMIT && strstr(found.message, "max_memory"), "too little for one batch: %s",
       found.message);
    const struct run ragged = {"jpeg", ragged_text, 16, 4, 256 * MIB};
    found = in_child(&ragged);
    ok(found.rc == STOKER_ELIMIT && strstr(found.message, "max_memory") &&
           strstr(found.message, "batch of 16"),
       "too little for a batch of images of any size: %s", found.message);
}

/* A sample that fits alone is made, one that does not never is, for every number of workers and every time; and who
 * waits holds nothing that the others would have to do without. By what is counted, not by what the process takes;
 * `rows`: what rows of different sizes that are being made may take beyond the limit. */
static void same_verdict(const char *kind, const char *text, uint64_t first, uint64_t last, uint64_t step, uint64_t rows,
                         const char *what)
{
    static const int32_t workers[] = {0, 8, 2, 1, 4, 8};
    const uint32_t kinds = share_of(100) < 100 ? 3 : sizeof workers / sizeof *workers;
    uint32_t made = 0, refused = 0, differ = 0, over = 0;
    for (uint64_t memory = first; memory <= last; memory += step) {
        int verdict = 0;
        for (uint32_t w = 0; w < kinds; w++) {
            const struct run run = {kind, text, 2, workers[w], memory};
            const struct found found = in_child(&run);
            verdict = w ? verdict : found.rc;
            made += found.rc == STOKER_END;
            refused += found.rc == STOKER_ELIMIT;
            if (found.rc != verdict && !differ++)
                note("%d workers, %.1f MiB: %d, not %d: %s", run.workers, (double)memory / (double)MIB, found.rc, verdict,
                     found.message);
            if (found.rc == STOKER_END && found.peak > memory + rows && !over++)
                note("%d workers hold %.1f MiB of %.1f", run.workers, (double)found.peak / (double)MIB,
                     (double)memory / (double)MIB);
        }
    }
    ok(made && refused && !differ, "%s: the limit decides, not the workers: %u runs made all, %u were refused", what, made,
       refused);
    ok(!over, "%s: no run that makes them holds more than it may", what);
}

/* A sample that cannot fit is a bad sample, by the policy; the ledger has its name, its size, the limit and the remedy. */
static void policies(void)
{
    struct stoker_item items[8];
    for (uint32_t k = 0; k < 8; k++)
        items[k] = k == 3 ? test_jpeg(k, 1500, 1500) : test_jpeg(k, 60, 50);
    for (enum stoker_on_error policy = STOKER_ON_ERROR_RAISE; policy <= STOKER_ON_ERROR_REPLACE;
         policy++) {
        struct stoker_loader_options opt = harness_options(4, 2);
        const struct stoker_batch *batch = NULL;
        struct stoker_bad_sample bad = {0};
        struct stoker_error err = {0};
        opt.on_error = policy;
        opt.pixel_limit = 1 << 24;
        opt.max_memory = 2 * MIB;
        opt.order = STOKER_ORDER_SEQUENTIAL;
        struct stoker_loader *loader = harness_open(items, 8, "resize(size=[32,32]); to_tensor", &opt);
        st_loader_start(loader, NULL, 0, NULL);
        const int rc = st_loader_next(loader, &batch, &err);
        const uint64_t row = rc ? 3 : batch->samples[3];
        const int64_t label = rc ? -100 : ((const int64_t *)batch->labels.data)[3];
        st_batch_release(batch, NULL);
        const int then = st_loader_next(loader, &batch, NULL);
        st_batch_release(batch, NULL);
        ok(rc == (policy ? 0 : STOKER_ELIMIT) && then == 0, "on_error %d: what cannot fit is a bad sample: %s", policy,
           err.message);
        ok(policy == STOKER_ON_ERROR_SKIP ? row != 3 : row == 3 && label == -100, "on_error %d: its row", policy);
        ok(st_loader_bad(loader, 0, &bad) && !st_loader_bad(loader, 1, &bad) && bad.sample == 3 &&
               bad.code == STOKER_ELIMIT && strstr(bad.reason, "sample 3") && strstr(bad.reason, "MB or more to make") &&
               strstr(bad.reason, SMALL ? "max_memory (0.3 MB)" : "max_memory (2.1 MB)") &&
               strstr(bad.reason, "raise max_memory"),
           "on_error %d: in the ledger: %s", policy, bad.reason);
        st_loader_close(loader);
    }
    for (uint32_t k = 0; k < 8; k++)
        free((void *)(uintptr_t)items[k].data);
}

/* One file of 400 MB among small ones, which is a hole and takes no room on the disk: it is refused before its bytes
 * are read, whoever reads it. */
static void too_large_to_read(const char *engine, int32_t workers)
{
    enum { COUNT = 8, HUGE = 5 };
    char path[COUNT][300];
    const char *paths[COUNT];
    const struct stoker_item small = test_jpeg(1, 60, 50);
    for (uint32_t k = 0; k < COUNT; k++) {
        snprintf(path[k], sizeof path[k], "%s/read%u.jpg", folder, k);
        paths[k] = path[k];
        FILE *f = fopen(path[k], "w");
        if (!f || fwrite(small.data, 1, small.size, f) != small.size ||
            (k == HUGE && ftruncate(fileno(f), 400 << 20)) || fclose(f))
            note("%s: not written", path[k]);
    }
    setenv("STOKER_READER", engine, 1);
    for (enum stoker_on_error policy = STOKER_ON_ERROR_RAISE; policy <= STOKER_ON_ERROR_REPLACE; policy++) {
        struct stoker_loader_options opt = harness_options(4, workers);
        struct stoker_stats stats = {.size = sizeof stats};
        struct stoker_dataset *data = NULL;
        struct stoker_pipeline *pipe = NULL;
        struct stoker_loader *loader = NULL;
        struct stoker_error err = {0};
        const struct stoker_batch *batch = NULL;
        int rc = STOKER_EIO;
        opt.on_error = policy;
        opt.max_memory = 64 << 20;
        opt.order = STOKER_ORDER_SEQUENTIAL;
        if (!st_dataset_from_files(&data, paths, NULL, COUNT, &err) &&
            !st_pipeline_open(&pipe, "resize(size=[32,32]); to_tensor", &err) &&
            !st_loader_open(&loader, data, pipe, &opt, NULL, &err)) {
            st_reader_eager(loader->reader);
            st_loader_start(loader, NULL, 0, NULL);
            while (!(rc = st_loader_next(loader, &batch, &err)))
                st_batch_release(batch, NULL);
            st_loader_stats(loader, &stats);
        }
        ok(rc == (policy ? STOKER_END : STOKER_ELIMIT) && stats.bad == 1 && stats.memory_peak <= opt.max_memory,
           "%s, on_error %d: at most %.0f MB are held", engine, policy, (double)stats.memory_peak / 1e6);
        struct stoker_bad_sample bad = {0};
        ok(loader && st_loader_bad(loader, 0, &bad) && bad.sample == HUGE && strstr(bad.reason, "read5.jpg: ") &&
               strstr(bad.reason, "takes 419.4 MB to read") && strstr(bad.reason, "max_memory (67.1 MB)") &&
               strstr(bad.reason, "raise max_memory"),
           "%s, on_error %d: in the ledger: %s", engine, policy, bad.reason);
        st_pipeline_drop(pipe);
        st_dataset_drop(data);
        st_loader_close(loader);
    }
    unsetenv("STOKER_READER");
    free((void *)(uintptr_t)small.data);
}

/* One image of 144 MB among small ones. */
static void falls_back(void)
{
    enum { COUNT = 400, BATCH = 4 };
    struct stoker_item *items = calloc(COUNT, sizeof *items);
    for (uint32_t k = 0; k < COUNT; k++)
        items[k] = k == 9 ? test_jpeg(k, SMALL ? 2800 : 8000, SMALL ? 2100 : 6000)
                          : test_jpeg(k % 16, 100, 80);
    struct stoker_loader_options opt = harness_options(BATCH, 4);
    struct stoker_stats stats = {.size = sizeof stats};
    opt.max_memory = 1024 * MIB;
    opt.pixel_limit = 1 << 28;
    opt.order = STOKER_ORDER_SEQUENTIAL;
    for (uint32_t ragged = 0; ragged < 2; ragged++) {
        struct stoker_loader *loader =
            harness_open(items, COUNT, ragged ? ragged_text : "resize(size=[32,32]); to_tensor", &opt);
        const uint64_t idle = status_of("RssAnon");
        uint64_t digests[COUNT / BATCH];
        st_loader_start(loader, NULL, 0, NULL);
        const uint32_t taken = harness_take(loader, digests, COUNT / BATCH, NULL);
        const uint64_t left = status_of("RssAnon");
        st_loader_stats(loader, &stats);
        ok(taken == COUNT / BATCH && stats.memory_peak > 100 * MIB,
           "one huge image among %d took %.0f MiB", COUNT, (double)stats.memory_peak / (double)MIB);
        ok(stats.memory_held < 32 * MIB && (SMALL || left < idle + 48 * MIB),
           "and afterwards %.0f MiB are held, and the process has %.0f MiB more than before",
           (double)stats.memory_held / (double)MIB, ((double)left - (double)idle) / (double)MIB);
        st_loader_close(loader);
    }
    test_items_free(items, COUNT);
}

/* Returns when two workers wait for memory, or nobody does anything else: whether the former. */
static bool wait_for_memory(struct stoker_loader *loader)
{
    bool waits = false, stuck = false;
    while (!waits && !stuck) {
        usleep(1000);
        const uint32_t waiting = atomic_load(&loader->gate.waiting);
        waits = waiting > 1;
        pthread_mutex_lock(&loader->lock);
        stuck = loader->next_ticket && loader->busy <= waiting;
        pthread_mutex_unlock(&loader->lock);
    }
    return waits;
}

/* Nobody takes batches: workers wait for memory, or for slots, and are told to stop. One that is not told waits for
 * ever. */
static void close_while_waiting(void)
{
    enum { CLOSES = 4, TRIES = 40 };
    uint32_t waited = 0;
    for (uint32_t k = 0; k < TRIES && waited < CLOSES; k++) {
        const struct run run = {"ppm", k % 2 ? ragged_text : small_text, 2, 8, 96 * MIB};
        struct stoker_error err = {0};
        struct stoker_loader *loader = open_run(&run, &err);
        if (!loader) {
            note("%s", err.message);
            break;
        }
        st_loader_start(loader, NULL, 0, NULL);
        waited += wait_for_memory(loader);
        st_loader_close(loader);
    }
    ok(waited == CLOSES, "closed while workers wait for memory, %u times", waited);
}

int main(void)
{
    int status = 1;
    if (!mkdtemp(folder))
        return 1;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0)
        make_images();
    waitpid(child, &status, 0);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "images of 10 MB");
    bounded("jpeg", small_text, 8, MANY / 8, "JPEG");
    bounded("progressive", small_text, 8, SOME / 8, "progressive JPEG");
    bounded("jpeg", ragged_text, 4, MANY / 4, "batches of whole images");
    bounded("ppm", small_text, 8, MANY / 8, "files of 10 MB");
    same_bytes("few-ppm", small_text, "files of 10 MB");
    same_bytes("few-jpeg", ragged_text, "batches of whole images");
    same_verdict("few-progressive", "resize(size=64); center_crop(size=64); to_tensor", 24 * MIB, 40 * MIB, 8 * MIB, 0,
                 "progressive JPEG");
    same_verdict("few-ppm", "resize(size=64); center_crop(size=64); to_tensor", 16 * MIB, 32 * MIB, 8 * MIB, 0,
                 "files of 10 MB");
    same_verdict("few-jpeg", ragged_text, 40 * MIB, 120 * MIB, 80 * MIB, 60 * MIB, "batches of whole images");
    too_little();
    policies();
    too_large_to_read("auto", 2);
    too_large_to_read("pool", 2);
    too_large_to_read("inline", 0);
    falls_back();
    close_while_waiting();
    char command[300];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return done_testing() | (system(command) != 0);
}
