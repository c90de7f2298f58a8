/* How work is divided between JPEG hardware and CPUs: each rule alone, then in simulated loaders.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/jpeg_steer.h"
#include "tap.h"

#include <math.h>

enum { MS = 1000000 };
#define SECOND 1000000000u

static uint64_t dice = 1;

static uint32_t below(uint32_t n)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((dice >> 32) * n >> 32);
}

/* ---- the rules ------------------------------------------------------------------------------------- */

/* A loader with 16 CPUs, both threads open, 256 rows per batch, of which 4 are prefetched. */
static struct st_steer_seen usual(void)
{
    return (struct st_steer_seen){.now_ns = 100 * (uint64_t)SECOND, .cpus = 16, .open = 2, .workers = 16,
                                  .wanted = 16, .worker_rate = 1000, .batch_size = 256, .prefetch = 4};
}

/* A thread whose hardware makes so many rows per second. */
static struct st_steer_thread of_rate(uint32_t rows)
{
    return (struct st_steer_thread){.busy_ns = SECOND, .busy_rows = rows, .started = true};
}

/* The tickets that the thread takes, where workers rest as it is decided. */
static uint32_t take(struct st_steer *steer, struct st_steer_thread *thread, const struct st_steer_seen *seen,
                     uint32_t left, uint32_t known)
{
    const struct st_steer_choice choice = st_steer_choose(steer, thread, seen, left, known);
    st_steer_engage(steer, choice.engages, seen->now_ns);
    return choice.tickets;
}

static void rests(void)
{
    struct st_steer steer = {.rest_until = 100};
    struct st_steer_seen seen = usual();
    ok(st_steer_passes(&steer, 99, 1) && !st_steer_passes(&steer, 100, 1), "tickets are left to the workers");
    steer.slow_until_ns = 50;
    ok(st_steer_passes(&steer, 100, 49) && !st_steer_passes(&steer, 100, 50), "and a time");
    st_steer_epoch(&steer);
    ok(!st_steer_passes(&steer, 0, 50), "an epoch begins with the hardware");
    seen.ready = 1;
    ok(!st_steer_is_ahead(&seen), "one of four batches is not enough");
    seen.ready = 2;
    ok(st_steer_is_ahead(&seen), "two are");
    seen.ready = 1;
    seen.cpus = 3;
    ok(!st_steer_is_ahead(&seen), "with three CPUs one thread keeps two ready");
    seen.thread = 1;
    ok(st_steer_is_ahead(&seen), "and the other helps only while there is none");
    seen.ready = 0;
    ok(!st_steer_is_ahead(&seen), "as now");
    ok(st_steer_yields(2, 2) && !st_steer_yields(3, 2), "with two CPUs the threads give way");
}

static void makes_room(void)
{
    struct st_steer steer = {0};
    ok(st_steer_workers(&steer, 12, 16, 2) == 12, "while the hardware rests, workers work");
    steer.engaged = true;
    steer.worked_ns = 5;
    ok(st_steer_workers(&steer, 12, 16, 2) == 12 && st_steer_workers(&steer, 16, 16, 2) == 13,
       "while it works, three CPUs are left to the threads and the consumer");
    ok(st_steer_workers(&steer, 4, 4, 2) == 1 && st_steer_workers(&steer, 3, 3, 2) == 0 &&
           st_steer_workers(&steer, 1, 1, 2) == 0, "down to none");
    ok(!st_steer_is_idle(&steer, 5 + SECOND), "they rest for a second longer");
    ok(st_steer_is_idle(&steer, 6 + SECOND) && st_steer_engage(&steer, false, 6 + SECOND), "and come back then");
    ok(!st_steer_is_idle(&steer, 7 + SECOND) && !st_steer_engage(&steer, false, 7 + SECOND), "once");
    ok(!st_steer_engage(&steer, true, 9) && steer.engaged && steer.worked_ns == 9, "to rest again");
}

static void takes(void)
{
    struct st_steer steer = {0};
    struct st_steer_seen seen = usual();
    struct st_steer_thread thread = {0};
    ok(take(&steer, &thread, &seen, 256, 64) == 64 && !steer.engaged,
       "at first as many as suit the hardware, and nobody rests");
    ok(take(&steer, &thread, &seen, 9, 9) == 9, "no more than there are");
    ok(take(&steer, &thread, &seen, 256, 32) == 64, "half of the files have to be known");
    steer.engaged = true;
    seen.next_ticket = 1000;
    ok(take(&steer, &thread, &seen, 256, 31) == 0 && steer.rest_until == 1064 && !steer.engaged,
       "otherwise the workers have them");
    thread = of_rate(10000);
    ok(take(&steer, &thread, &seen, 256, 64) == 64 && steer.engaged && steer.worked_ns == seen.now_ns,
       "workers rest for hardware that is faster than one of them");
    thread = of_rate(900);
    ok(take(&steer, &thread, &seen, 256, 64) == 32 && !steer.engaged,
       "not for slower, which has its share of half of the work in progress");
    thread = of_rate(300);
    ok(take(&steer, &thread, &seen, 256, 64) == 16, "but no fewer than the least");
}

static void probes(void)
{
    struct st_steer steer = {.engaged = true};
    struct st_steer_seen seen = usual();
    struct st_steer_thread thread = of_rate(50);
    const struct st_steer_times times = {.all = 10 * MS, .all_cpu = 10 * MS};
    ok(take(&steer, &thread, &seen, 256, 64) == 0 && !steer.engaged &&
           steer.slow_until_ns == seen.now_ns + 20 * 320 * (uint64_t)MS,
       "hardware that would delay a batch rests 20 times as long as its chunk takes");
    ok(take(&steer, &thread, &seen, 256, 64) == 16 && !thread.busy_rows,
       "then takes one chunk, which alone tells how fast it is");
    st_steer_made(&steer, &thread, &times, 16, 16);
    ok(thread.busy_rows == 16 && thread.busy_ns == 10 * MS && !thread.tries, "1,600 rows per second now");
    ok(take(&steer, &thread, &seen, 256, 64) > 16, "so it works again");
    thread = of_rate(1);
    take(&steer, &thread, &seen, 256, 64);
    ok(steer.slow_until_ns == seen.now_ns + 30 * (uint64_t)SECOND, "it never rests longer than 30 s");
}

static void rates(void)
{
    struct st_steer steer = {0};
    struct st_steer_thread thread = {0};
    const struct st_steer_times times = {.all = 30 * MS, .all_cpu = 30 * MS, .here = 10 * MS};
    st_steer_made(&steer, &thread, &times, 40, 64);
    ok(thread.started && !thread.busy_rows, "the first chunk says nothing of the rate");
    st_steer_made(&steer, &thread, &times, 40, 128);
    ok(thread.busy_rows == 40 && thread.busy_ns == 20 * MS, "nor do files that the thread decodes itself");
    for (int k = 0; k < 100; k++)
        st_steer_made(&steer, &thread, &times, 40, 128);
    ok(thread.busy_rows > 500 && thread.busy_rows <= 1024 && thread.busy_ns == thread.busy_rows * MS / 2,
       "and it forgets");
    ok(!steer.rest_until, "a chunk with files for the hardware is followed by others");
    st_steer_made(&steer, &thread, &times, 0, 500);
    ok(steer.rest_until == 756, "one without is not");
}

/* The share for work that is so far ahead. */
static uint32_t share_at(struct st_steer_thread *thread, double ahead, bool waits)
{
    struct st_steer steer = {0};
    struct st_steer_seen seen = usual();
    seen.begun = ahead * seen.prefetch;
    seen.waits = waits;
    take(&steer, thread, &seen, 256, 64);
    return thread->share;
}

static void levels(void)
{
    struct st_steer_thread thread = of_rate(10000);
    thread.share_fastest = 5;
    ok(share_at(&thread, 0, false) == 5 && share_at(&thread, 0.25, false) == 5, "little is ahead: what is fastest");
    ok(share_at(&thread, 0.4, false) == 25 && share_at(&thread, 0.5, false) == 42,
       "the more is ahead, the larger the share");
    ok(share_at(&thread, 0.625, false) == 48 && share_at(&thread, 3, false) == 48,
       "but the hardware has a quarter of the files");
    ok(st_steer_own(&thread, 64) == 48 && st_steer_own(&thread, 10) == 7 && !st_steer_own(&thread, 0),
       "of any number");
    ok(share_at(&thread, 0.5, true) == 5, "while the consumer waits: what is fastest");
    thread.share_fastest = 0;
    ok(share_at(&thread, 2, true) == 0 && !st_steer_own(&thread, 64), "none at all");
}

static void gives_priority(void)
{
    struct st_steer steer = {0};
    struct st_steer_seen seen = usual();
    struct st_steer_thread thread = of_rate(10000);
    seen.begun = 10;
    st_steer_awaited(&steer, seen.now_ns - 249 * MS);
    take(&steer, &thread, &seen, 256, 64);
    ok(thread.share == 0, "a consumer that has waited long counts as waiting");
    st_steer_awaited(&steer, seen.now_ns - 251 * MS);
    take(&steer, &thread, &seen, 256, 64);
    ok(thread.share == 48, "for a quarter of a second");
}

static void adapts(void)
{
    static const struct {
        const char *text;
        struct st_steer_times times;
        bool awaited;
        uint32_t fastest_after;
    } cases[] = {
        {"it waited for the hardware", {10 * MS, 8 * MS, 5 * MS}, true, 17},
        {"it did not", {10 * MS, 10 * MS, 5 * MS}, true, 13},
        {"a moment says nothing", {MS / 20, MS / 50, 0}, true, 13},
        {"nobody needed it", {10 * MS, 8 * MS, 5 * MS}, false, 16},
    };
    const struct st_steer_times waited = {10 * MS, 1 * MS, 0}, worked = {10 * MS, 10 * MS, 0};
    struct st_steer steer = {0};
    struct st_steer_thread thread = {0};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        thread.share_fastest = 16;
        thread.awaited = cases[k].awaited;
        st_steer_made(&steer, &thread, &cases[k].times, 16, 64);
        ok(thread.share_fastest == cases[k].fastest_after, "%s: fastest with %u", cases[k].text, thread.share_fastest);
    }
    thread.awaited = true;
    for (int k = 0; k < 50; k++)
        st_steer_made(&steer, &thread, &worked, 16, 64);
    ok(thread.share_fastest == 0, "down to none");
    for (int k = 0; k < 100; k++)
        st_steer_made(&steer, &thread, &waited, 16, 64);
    ok(thread.share_fastest == 48, "and up to three quarters");
}

/* ---- anything ---------------------------------------------------------------------------------------- */

static double any_rate(void)
{
    static const double rates[] = {0, 1e-300, 1, 800, 1e6, 1e300, INFINITY, -1, NAN};
    return rates[below(sizeof rates / sizeof *rates)];
}

static uint64_t any_number(void)
{
    static const uint64_t numbers[] = {0, 1, 2, 63, 64, 1000, SECOND, UINT32_MAX, UINT64_MAX / 2, UINT64_MAX};
    return numbers[below(sizeof numbers / sizeof *numbers)];
}

static void survives_anything(void)
{
    uint32_t wrong = 0;
    struct st_steer steer = {0};
    struct st_steer_thread thread = {0};
    for (uint32_t k = 0; k < 200000; k++) {
        const struct st_steer_seen seen = {
            .now_ns = any_number(), .next_ticket = any_number(), .thread = below(2), .cpus = below(5),
            .open = below(3), .workers = below(5), .wanted = below(5), .worker_rate = any_rate(),
            .batch_size = (uint32_t)any_number(), .prefetch = below(4), .ready = below(6),
            .begun = any_rate(), .waits = below(2)};
        const struct st_steer_times times = {any_number(), any_number(), any_number()};
        const uint32_t left = (uint32_t)any_number() | 1, count = below(65);
        const uint32_t size = take(&steer, &thread, &seen, left, below(65));
        wrong += size > left || size > ST_STEER_CHUNK_MOST || thread.share > 48;
        wrong += st_steer_own(&thread, count) > count;
        wrong += st_steer_workers(&steer, seen.wanted, seen.cpus, seen.open) > seen.wanted;
        st_steer_is_ahead(&seen);
        st_steer_made(&steer, &thread, &times, below(65), any_number());
        wrong += thread.share_fastest > 48;
    }
    ok(wrong == 0, "whatever is seen, a thread takes no more than there is, and leaves the hardware its part");
}

int main(void)
{
    rests();
    makes_room();
    takes();
    probes();
    rates();
    levels();
    gives_priority();
    adapts();
    survives_anything();
    return done_testing();
}
