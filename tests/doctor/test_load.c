/* test_load.c - run directories as they are written, while they are written, and damaged
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/fake_root.h"
#include "doctor/model/random.h"
#include "doctor/run/run.h"
#include "tap.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static const char trainer[] = "pid 100\nparent 1\nrole trainer\nrank 3\nargv train.py --epochs 2\n"
                              "loader.0.workers 1\nloader.0.workers 2\nloader.0.batch_size 32\n"
                              "loader.0.source DataLoader(\\n  a\\\\b)\nempty \nwatch.odd\n unfinished";

/* A ring of `capacity` records of which `written` were written; start_ns is the record's number. */
static size_t ring(uint8_t *out, uint32_t pid, uint64_t capacity, uint64_t written, uint16_t kind)
{
    const struct dr_events_header header = {DR_EVENTS_MAGIC, 32, pid, capacity, written, 777};
    memset(out, 0, DR_EVENTS_HEADER + capacity * 32);
    memcpy(out, &header, sizeof header);
    for (uint64_t n = written > capacity ? written - capacity : 0; n < written; n++) {
        const struct dr_event event = {.start_ns = n, .dur_ns = 1, .kind = kind, .batch = (uint32_t)n};
        memcpy(out + DR_EVENTS_HEADER + n % capacity * 32, &event, 32);
    }
    return DR_EVENTS_HEADER + capacity * 32;
}

static void put_bytes(const char *path, const uint8_t *data, size_t size)
{
    put(path, "");
    char name[512];
    snprintf(name, sizeof name, "%s%s", root, path);
    FILE *file = fopen(name, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file))
        perror(name);
}

static uint8_t bytes[1 << 16];
static atomic_bool stop;

static const struct dr_process *of_pid(const struct dr_run *run, int pid)
{
    for (uint32_t k = 0; k < run->processes; k++)
        if (run->process[k].pid == pid)
            return &run->process[k];
    return NULL;
}

static void test_directory(void)
{
    put("/command", "python\ntrain.py\n--name=a\\nb\n/home/someone\n");
    put("/process/100", trainer);
    put("/process/200", "pid 200\nparent 100\nrole worker\nworker.id 1\nworker.loader 0\n");
    put("/process/none", "pid 5\n");
    put_bytes("/events/100", bytes, ring(bytes, 100, 64, 10, DR_NEXT));
    put_bytes("/events/200", bytes, ring(bytes, 200, 64, 1000, DR_FETCH));
    put_bytes("/events/300", bytes, ring(bytes, 300, 8, 3, DR_FETCH));
    struct dr_run *run;
    struct stoker_error err = {0};
    if (!ok(dr_run_open(&run, root, &err) == STOKER_OK, "a directory is read: %s", err.message))
        return;
    ok(run->argv && !strcmp(run->argv[0], "python") && !strcmp(run->argv[2], "--name=a\nb") &&
           !run->argv[3],
       "the command line, with a line break in it");
    ok(!strcmp(run->cwd, "/home/someone"), "the working directory");
    ok(run->processes == 3, "three processes");
    const struct dr_process *train = of_pid(run, 100), *worker = of_pid(run, 200),
                            *silent = of_pid(run, 300);
    ok(train->role == DR_TRAINER && train->rank == 3 && train->worker == -1 && train->trainer == -1,
       "the trainer and its rank");
    ok(dr_said_number(train, "loader.0.workers") == 2, "a later line replaces an earlier one");
    ok(!strcmp(dr_said(train, "loader.0.source"), "DataLoader(\n  a\\b)"), "escapes are put back");
    ok(!strcmp(dr_said(train, "empty"), "") && !strcmp(dr_said(train, "watch.odd"), ""), "empty values");
    ok(!dr_said(train, "unfinished") && isnan(dr_said_number(train, "argv")), "no line without its end");
    ok(train->event_count == 10 && train->events[9].start_ns == 9 && train->events_lost == 0,
       "ten events, none lost");
    ok(train->watch_spent_ns == 777, "what watching costs");
    ok(worker->role == DR_WORKER && worker->worker == 1 && &run->process[worker->trainer] == train &&
           worker->rank == 3,
       "the worker, whose it is, and its rank");
    ok(worker->event_count == 56 && worker->events[0].start_ns == 944 &&
           worker->events[55].start_ns == 999 && worker->events_lost == 944,
       "a ring that has gone round: where the oldest records lie, new ones may be being written");
    ok(silent->role == DR_WORKER && silent->trainer == -1 && silent->event_count == 3,
       "one that has said nothing is known by what it does");
    ok(isnan(run->limits.cpus) && isnan(run->limits.pcie_limit) && run->machine.ticks == 0,
       "without samples nothing is known of the machine");
    dr_run_close(run);
}

static void expect(const char *what, int code, const char *part)
{
    struct dr_run *run;
    struct stoker_error err = {0};
    const int rc = dr_run_open(&run, root, &err);
    ok(rc == code && (!part || strstr(err.message, part)), "%s: %s", what, rc ? err.message : "read");
    if (!rc)
        dr_run_close(run);
}

static void test_damaged(void)
{
    const size_t size = ring(bytes, 100, 64, 10, DR_NEXT);
    put_bytes("/events/100", bytes, DR_EVENTS_HEADER / 2);
    expect("a file that is just being made", STOKER_OK, NULL);
    bytes[0] = 'x';
    put_bytes("/events/100", bytes, size);
    expect("another magic", STOKER_ECORRUPT, "events/100");
    ring(bytes, 100, 64, 10, DR_NEXT);
    put_bytes("/events/100", bytes, size - 1);
    expect("a ring that is cut off", STOKER_ECORRUPT, "64 records");
    struct dr_events_header header = {DR_EVENTS_MAGIC, 32, 100, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    memcpy(bytes, &header, sizeof header);
    put_bytes("/events/100", bytes, size);
    expect("an impossible capacity", STOKER_ECORRUPT, "offset 16");
    header.capacity = 64;
    memcpy(bytes, &header, sizeof header);
    put_bytes("/events/100", bytes, size);
    expect("an impossible count", STOKER_OK, NULL);
    header.capacity = 0;
    memcpy(bytes, &header, sizeof header);
    put_bytes("/events/100", bytes, size);
    expect("no capacity", STOKER_ECORRUPT, "offset 16");
    struct dr_run *run;
    struct stoker_error err = {0};
    ok(dr_run_open(&run, "/nowhere/at/all", &err) != STOKER_OK && !run, "%s", err.message);
    ok(dr_run_open(&run, "/dev/null", &err) == STOKER_EINVAL, "%s", err.message);
    dr_run_close(NULL);
}

/* A writer as in the watched process: the record, then the count. */
static void *write_on(void *map)
{
    struct dr_events_header *header = map;
    struct dr_event *events = (void *)((char *)map + DR_EVENTS_HEADER);
    for (uint64_t n = 0; !atomic_load(&stop); n++) {
        volatile struct dr_event *event = &events[n % header->capacity];
        event->start_ns = n;
        event->batch = (uint32_t)n;
        event->kind = DR_FETCH;
        event->dur_ns = n;
        __atomic_store_n(&header->written, n + 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

/* No record is torn or out of order, however fast they are overwritten. */
static void test_while_written(void)
{
    const size_t size = ring(bytes, 200, 512, 0, DR_FETCH);
    put_bytes("/events/200", bytes, size);
    char name[512];
    snprintf(name, sizeof name, "%s/events/200", root);
    const int file = open(name, O_RDWR);
    void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    pthread_t writer;
    if (file < 0 || map == MAP_FAILED || pthread_create(&writer, NULL, write_on, map)) {
        ok(false, "a ring and its writer");
        return;
    }
    uint64_t wrong = 0, read = 0;
    for (unsigned round = share_of(300); round > 0; round--) {
        struct dr_run *run;
        struct stoker_error err = {0};
        if (dr_run_open(&run, root, &err)) {
            wrong++;
            continue;
        }
        const struct dr_process *process = of_pid(run, 200);
        read += process->event_count;
        for (uint64_t k = 0; k < process->event_count; k++) {
            const struct dr_event *event = &process->events[k];
            wrong += event->start_ns != process->events_lost + k || event->dur_ns != event->start_ns ||
                     event->batch != (uint32_t)event->start_ns;
        }
        dr_run_close(run);
    }
    atomic_store(&stop, true);
    pthread_join(writer, NULL);
    munmap(map, size);
    close(file);
    ok(!wrong, "a ring that is written all the while: %llu events, %llu wrong", (unsigned long long)read,
       (unsigned long long)wrong);
}

/* Damage anywhere ends in success or a sentence, never in anything else. */
static void test_mutants(void)
{
    struct dr_random random = {.state = 5};
    unsigned good = 0, refused = 0, silent = 0;
    for (unsigned round = share_of(400); round > 0; round--) {
        size_t size =
            ring(bytes, 200, 1 + dr_random_below(&random, 40), dr_random_below(&random, 90), DR_FETCH);
        for (uint32_t k = dr_random_below(&random, 6); k > 0; k--) {
            const uint32_t within = dr_random_below(&random, 3) ? 40 : (uint32_t)size;
            bytes[dr_random_below(&random, within)] = (uint8_t)dr_random_next(&random);
        }
        if (!dr_random_below(&random, 4))
            size = dr_random_below(&random, (uint32_t)size);
        put_bytes("/events/200", bytes, size);
        char text[256];
        for (size_t k = 0; k < sizeof text - 1; k++)
            text[k] = "\n\\ .019apidtrainerworkerrolenan-e"[dr_random_below(&random, 32)];
        text[sizeof text - 1] = '\0';
        put(dr_random_below(&random, 2) ? "/process/200" : "/command", text);
        struct dr_run *run;
        struct stoker_error err = {0};
        if (dr_run_open(&run, root, &err) == STOKER_OK) {
            good++;
            for (uint32_t k = 0; k < run->processes; k++)
                for (uint64_t n = 0; n < run->process[k].event_count; n++)
                    silent += run->process[k].events[n].kind >= DR_KINDS;
            dr_run_close(run);
        } else {
            refused++;
            silent += !err.message[0];
        }
    }
    ok(!silent && good && refused, "damaged directories: %u read, %u refused", good, refused);
}

int main(void)
{
    if (!mkdtemp(root))
        return 1;
    test_directory();
    test_damaged();
    put_bytes("/events/100", bytes, ring(bytes, 100, 64, 10, DR_NEXT));
    test_while_written();
    test_mutants();
    remove_root();
    return done_testing();
}
