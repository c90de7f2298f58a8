/* jpeg_steer.c - divides the work between a GPU's JPEG hardware and the CPUs
 *
 * Tickets are taken in order by whoever is free, so hardware and CPUs share the work according to
 * their actual speed. A chunk is as large as suits the hardware, but at most its share of half of the
 * work in progress, by the rates measured lately. Hardware that other processes keep busy may be so
 * slow that a chunk would delay its batch: then it only gets one from time to time, to see whether it
 * still is.
 *
 * Submitting an image takes an eighth of the CPU time of decoding it (100 of 800 us). So while the
 * hardware is at work, enough workers rest for each of its threads and the consumer to have a CPU of
 * their own; with few CPUs, all of them. Not before a thread is known to make more samples than a
 * worker. Workers that decode as long as the consumer need not wait save a training step up to 1 % of
 * its time, because the hardware does less, but on machines with slower CPUs they delay the consumer's
 * kernels, and a step loses up to a quarter.
 *
 * The GPU should not decode what nobody is waiting for: threads rest while half of the prefetched
 * batches are ready, so that a training run that the CPUs can feed alone has the whole GPU. In short
 * rests the workers that made room for them do not take over: they would need eight times the CPU
 * time, which the consumer may lack.
 *
 * What the hardware takes for an image, and what a training step loses by it, hardly depends on the
 * image's size: about 10 us of the GPU. What a CPU takes does, from 60 us for a small crop of a small
 * file to more than 1000. And a thread often has nothing to do: it waits for the hardware, or rests
 * because batches are ready. So it decodes a share of the files itself, those that are cheapest for a
 * CPU (st_steer_own). How many depends on how far ahead of the consumer the work is: none up to a
 * reserve, then more and more. So the hardware is used for what the CPUs cannot do, and as soon as
 * batches become scarce it does all it can. While the consumer waits in any case, the share is what
 * makes the most of hardware and thread: it grows while the thread waits for the hardware, and shrinks
 * while it does not.
 *
 * The constants were measured on one H200 (bench/RESULTS-GPU.md, which also says what was tried
 * without success).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/jpeg_steer.h"

enum {
    CHUNK_LEAST = 16, /* smaller chunks leave the hardware idle */
    /* left to the workers after a chunk without a file for the hardware: */
    PAUSE_TICKETS = 4 * ST_STEER_CHUNK_MOST,
    RECENT_ROWS = 1024, /* rates are of about this many rows */
    PROBE_TIMES = 20,   /* slow hardware rests this many times as long as it works, */
    PAUSE_SECONDS = 30, /* but at most so long */
    CONSUMERS = 1,      /* threads of the training program at a time; they launch kernels */
    SHARE_MOST = 48,    /* the rest is for the hardware: a thread without files for it would pause */
    LESS = 8,           /* a share is reduced by this fraction, but grows by one at a time */
};
#define AWAITED_NS 250000000u  /* a consumer that has waited long is given priority for so long */
#define IDLE_NS    1000000000u /* hardware that has rested for so long is not needed */
#define MUCH_NS    100000u     /* shorter times say nothing of a thread */
/* relative to the batches that are to be ready: */
#define RESERVE          0.25
#define FULL_SHARE_AHEAD 0.625

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t most(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* ---- rests ----------------------------------------------------------------------------------- */

bool st_steer_passes(const struct st_steer *steer, uint64_t next_ticket, uint64_t now_ns)
{
    return next_ticket < steer->rest_until || now_ns < steer->slow_until_ns;
}

/* The threads keep half of the prefetched batches ready. Where they and the consumer have all CPUs, one
 * of them does, and the second helps if that is not enough: two would only disturb the consumer more
 * often. */
bool st_steer_is_ahead(const struct st_steer_seen *seen)
{
    const bool few = seen->cpus <= seen->open + CONSUMERS;
    const bool helper = few && seen->thread && seen->open > 1;
    return seen->ready && (helper || 2 * (uint64_t)seen->ready >= seen->prefetch);
}

bool st_steer_yields(uint32_t cpus, uint32_t threads)
{
    return cpus <= threads;
}

/* How many workers work while the hardware does. */
static uint32_t beside_hardware(uint32_t wanted, uint32_t cpus, uint32_t open)
{
    const uint32_t others = open + CONSUMERS;
    return least(wanted, cpus > others ? cpus - others : 0);
}

uint32_t st_steer_workers(const struct st_steer *steer, uint32_t wanted, uint32_t cpus, uint32_t open)
{
    return steer->engaged ? beside_hardware(wanted, cpus, open) : wanted;
}

bool st_steer_engage(struct st_steer *steer, bool engages, uint64_t now_ns)
{
    const bool ended = steer->engaged && !engages;
    steer->engaged = engages;
    if (engages)
        steer->worked_ns = now_ns;
    return ended;
}

bool st_steer_is_idle(const struct st_steer *steer, uint64_t now_ns)
{
    return steer->engaged && now_ns - steer->worked_ns > IDLE_NS;
}

/* ---- the share ------------------------------------------------------------------------------- */

/* Whether the thread waited for an eighth of the time. */
static bool has_waited(const struct st_steer_times *times)
{
    return times->all > MUCH_NS && times->all - times->all / 8 > times->all_cpu;
}

static uint32_t share_ahead(double ahead)
{
    const double part = (ahead - RESERVE) / (FULL_SHARE_AHEAD - RESERVE);
    return part >= 1 ? ST_STEER_SHARES : part > 0 ? (uint32_t)(part * ST_STEER_SHARES) : 0;
}

static uint32_t changed(uint32_t share, bool grows)
{
    return grows ? least(share + 1, SHARE_MOST) : share - share / LESS - (share > 0);
}

void st_steer_awaited(struct st_steer *steer, uint64_t now_ns)
{
    steer->awaited_ns = now_ns;
}

void st_steer_epoch(struct st_steer *steer)
{
    steer->rest_until = 0;
}

uint32_t st_steer_own(const struct st_steer_thread *thread, uint32_t count)
{
    return (uint32_t)((uint64_t)count * thread->share / ST_STEER_SHARES);
}

/* While the consumer waits, the fastest share; else one that follows from how far ahead the work is. */
static void set_share(const struct st_steer *steer, struct st_steer_thread *thread,
                      const struct st_steer_seen *seen)
{
    const double ahead = seen->begun / seen->prefetch;
    thread->awaited =
        seen->waits || (steer->awaited_ns && seen->now_ns - steer->awaited_ns < AWAITED_NS);
    const uint32_t spare = thread->awaited ? 0 : share_ahead(ahead);
    thread->share = least(most(spare, thread->share_fastest), SHARE_MOST);
}

/* ---- chunks ---------------------------------------------------------------------------------- */

/* Rows per second of the hardware with this thread lately; 0: not known yet. */
static double own_rate(const struct st_steer_thread *thread)
{
    return thread->busy_ns ? (double)thread->busy_rows / (double)thread->busy_ns * 1e9 : 0;
}

/* Rows of batches that may be in progress or ready at the same time. */
static double rows_ahead(const struct st_steer_seen *seen)
{
    return seen->batch_size * (seen->prefetch + 1.0);
}

/* This thread's share of the work in progress. Batches are delivered in order, so a chunk must not take
 * longer than the workers need for the other batches that may be begun meanwhile. */
static uint32_t chunk_size(const struct st_steer_thread *thread, const struct st_steer_seen *seen,
                           uint32_t left, bool engages)
{
    const uint32_t active =
        engages ? beside_hardware(seen->wanted, seen->cpus, seen->open) : seen->wanted;
    const double cpus = seen->worker_rate * active, mine = own_rate(thread);
    uint32_t size = ST_STEER_CHUNK_MOST;
    if (cpus > 0 && mine > 0) {
        const double share = rows_ahead(seen) / 2 * mine / (mine * seen->open + cpus);
        if (share < size)
            size = share > CHUNK_LEAST ? (uint32_t)share : CHUNK_LEAST;
    }
    return least(size, left);
}

/* Leaves the work to the workers for a while if they would make all other rows in progress, twice over,
 * while this thread makes its smallest chunk. */
static bool is_too_slow(struct st_steer *steer, struct st_steer_thread *thread,
                        const struct st_steer_seen *seen, uint32_t left)
{
    const double cpus = seen->worker_rate * seen->workers, mine = own_rate(thread);
    const double rows = least(left, CHUNK_LEAST), others = rows_ahead(seen) - rows;
    if (!(cpus > 0) || !(mine > 0) || rows / mine <= 2 * others / cpus || thread->tries)
        return false;
    thread->tries = true; /* with the next chunk */
    const double pause = PROBE_TIMES * rows / mine;
    steer->slow_until_ns =
        seen->now_ns + (uint64_t)((pause < PAUSE_SECONDS ? pause : PAUSE_SECONDS) * 1e9);
    return true;
}

/* Whether at least half of the next tickets can go to the hardware; otherwise the workers have them. */
static bool enough_known(struct st_steer *steer, const struct st_steer_seen *seen, uint32_t left,
                         uint32_t known)
{
    const uint32_t next = least(left, ST_STEER_CHUNK_MOST);
    if (2 * (uint64_t)known >= next)
        return true;
    steer->rest_until = seen->next_ticket + next;
    return false;
}

struct st_steer_choice st_steer_choose(struct st_steer *steer, struct st_steer_thread *thread,
                                       const struct st_steer_seen *seen, uint32_t left, uint32_t known)
{
    if (!enough_known(steer, seen, left, known) || is_too_slow(steer, thread, seen, left))
        return (struct st_steer_choice){0};
    set_share(steer, thread, seen);
    const bool engages = seen->worker_rate > 0 && own_rate(thread) >= seen->worker_rate;
    const struct st_steer_choice choice = {chunk_size(thread, seen, left, engages), engages};
    if (thread->tries) /* only this chunk says how fast the hardware is now */
        thread->busy_ns = thread->busy_rows = 0;
    return choice;
}

/* Without what the thread decoded itself: that says nothing of the hardware. Nor does the first chunk:
 * the hardware's library still allocates memory and loads code. */
static void note_rate(struct st_steer_thread *thread, const struct st_steer_times *times, uint32_t given)
{
    thread->busy_ns += given ? times->all - times->here : 0;
    thread->busy_rows += given;
    thread->tries = false;
    if (!thread->started)
        thread->busy_ns = thread->busy_rows = 0;
    thread->started = true;
    if (thread->busy_rows > RECENT_ROWS) {
        thread->busy_rows /= 2;
        thread->busy_ns /= 2;
    }
}

void st_steer_made(struct st_steer *steer, struct st_steer_thread *thread,
                   const struct st_steer_times *times, uint32_t given, uint64_t next_ticket)
{
    note_rate(thread, times, given);
    if (thread->awaited)
        thread->share_fastest = changed(thread->share_fastest, has_waited(times));
    if (!given) /* taking more would only make this thread another worker, with one resting for it */
        steer->rest_until = next_ticket + PAUSE_TICKETS;
}
