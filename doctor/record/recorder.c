/* recorder.c - samples a command, its processes and the machine into RUN/samples
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/record/recorder.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "doctor/record/samples.h"
#include "doctor/record/watched.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS      UINT64_C(100000000)
#define PERIOD_MOST_NS UINT64_C(1000000000)
enum { OWN_SHARE = 100 /* ticks may take 1/N of the time */ };

struct dr_recorder {
    struct dr_samples *samples;
    struct dr_tree *tree;
    struct dr_limits limits, written;
    struct dr_absent absent;
    uint32_t absent_written;
    void *state[DR_PROBES_MOST]; /* NULL: this probe provides nothing */
    uint64_t probed_ns[DR_PROBES_MOST];
    double machine[DR_MACHINE_COUNT]; /* the latest values */
    int8_t source[DR_MACHINE_COUNT];  /* the probes that they are from */
    uint64_t before_ns, flushed_ns;
    double used_before; /* CPU seconds of this program before the recording: no cost of the run */
    double cost;        /* CPU seconds of a tick, smoothed */
    double sum[DR_MACHINE_COUNT];
    uint32_t summed[DR_MACHINE_COUNT];
};

static double own_seconds(void)
{
    struct rusage used;
    if (getrusage(RUSAGE_SELF, &used))
        return NAN;
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static void write_absent(struct dr_recorder *recorder)
{
    for (; recorder->absent_written < recorder->absent.count; recorder->absent_written++)
        dr_samples_missing(recorder->samples, &recorder->absent.missing[recorder->absent_written]);
}

static void write_limits(struct dr_recorder *recorder)
{
    recorder->limits.cpu_node = dr_tree_node(recorder->tree);
    if (!memcmp(&recorder->limits, &recorder->written, sizeof recorder->limits))
        return;
    recorder->written = recorder->limits;
    dr_samples_limits(recorder->samples, &recorder->limits);
}

static void flush(struct dr_recorder *recorder, uint64_t now_ns)
{
    recorder->flushed_ns = now_ns;
    write_absent(recorder);
    write_limits(recorder);
    /* A failed write is repeated the next time. */
    dr_samples_flush(recorder->samples, own_seconds() - recorder->used_before, NULL);
}

/* Samples a probe and replaces the values that it provided before. */
static void sample(struct dr_recorder *recorder, int k, uint64_t now_ns)
{
    double fresh[DR_MACHINE_COUNT];
    for (int s = 0; s < DR_MACHINE_COUNT; s++)
        fresh[s] = NAN;
    struct dr_tick tick = {now_ns, recorder->probed_ns[k], fresh};
    dr_probes[k]->sample(recorder->state[k], &tick, dr_tree_now(recorder->tree));
    recorder->probed_ns[k] = now_ns;
    for (int s = 0; s < DR_MACHINE_COUNT; s++)
        if (!isnan(fresh[s]) || recorder->source[s] == k) {
            recorder->machine[s] = fresh[s];
            recorder->source[s] = (int8_t)k;
        }
}

uint64_t dr_recorder_tick(struct dr_recorder *recorder)
{
    const uint64_t now = st_now_ns(), cpu = st_thread_cpu_ns();
    dr_tree_sample(recorder->tree, now);
    for (int k = 0; dr_probes[k]; k++)
        if (recorder->state[k] &&
            now - recorder->probed_ns[k] + PERIOD_NS / 2 >= dr_probes[k]->pause_ms * UINT64_C(1000000))
            sample(recorder, k, now);
    const struct dr_tick tick = {now, recorder->before_ns, recorder->machine};
    dr_samples_tick(recorder->samples, &tick, dr_tree_now(recorder->tree));
    for (int k = 0; k < DR_MACHINE_COUNT; k++)
        if (!isnan(recorder->machine[k])) {
            recorder->sum[k] += recorder->machine[k];
            recorder->summed[k]++;
        }
    recorder->before_ns = now;
    if (now - recorder->flushed_ns >= UINT64_C(1000000000))
        flush(recorder, now);
    const double cost = (double)(st_thread_cpu_ns() - cpu) / 1e9;
    recorder->cost += (cost - recorder->cost) / 16;
    const double wanted = recorder->cost * 1e9 * OWN_SHARE;
    uint64_t period = wanted > (double)PERIOD_MOST_NS ? PERIOD_MOST_NS : (uint64_t)wanted;
    return now + (period > PERIOD_NS ? period : PERIOD_NS);
}

double dr_recorder_mean(struct dr_recorder *recorder, enum dr_machine_signal signal)
{
    const double mean =
        recorder->summed[signal] ? recorder->sum[signal] / recorder->summed[signal] : NAN;
    recorder->sum[signal] = recorder->summed[signal] = 0;
    return mean;
}

const struct dr_limits *dr_recorder_limits(const struct dr_recorder *recorder)
{
    return &recorder->limits;
}

uint32_t dr_recorder_processes(const struct dr_recorder *recorder)
{
    return dr_tree_now(recorder->tree)->processes;
}

static void open_probes(struct dr_recorder *recorder)
{
    for (int k = 0; dr_probes[k]; k++) {
        void *state = st_calloc(1, dr_probes[k]->state_size);
        if (state && !dr_probes[k]->open(state, "", &recorder->limits, &recorder->absent)) {
            dr_probes[k]->close(state);
            free(state);
            state = NULL;
        }
        recorder->state[k] = state;
    }
    for (int s = 0; s < DR_MACHINE_COUNT; s++) {
        recorder->machine[s] = NAN;
        recorder->source[s] = -1;
    }
}

int dr_recorder_open(struct dr_recorder **out, const char *directory, int command, int ignored,
                     struct stoker_error *err)
{
    struct dr_recorder *recorder = st_calloc(1, sizeof *recorder);
    if (!recorder)
        return st_fail(err, STOKER_ENOMEM, "out of memory to record a run");
    for (size_t at = 0; at < offsetof(struct dr_limits, gpu_name); at += sizeof(double))
        memcpy((char *)&recorder->limits + at, &(double){NAN}, sizeof(double));
    recorder->used_before = own_seconds();
    recorder->before_ns = recorder->flushed_ns = st_now_ns();
    int rc = dr_samples_open(&recorder->samples, directory, recorder->before_ns, time(NULL), err);
    if (!rc)
        rc = dr_tree_open(&recorder->tree, "", command, getpid(), ignored, &recorder->absent, err);
    if (rc) {
        dr_recorder_close(recorder);
        return rc;
    }
    open_probes(recorder);
    flush(recorder, recorder->before_ns);
    *out = recorder;
    return STOKER_OK;
}

int dr_recorder_finish(struct dr_recorder *recorder, int exit_code, struct stoker_error *err)
{
    write_absent(recorder);
    write_limits(recorder);
    return dr_samples_finish(recorder->samples, st_now_ns(), exit_code,
                             own_seconds() - recorder->used_before, err);
}

void dr_recorder_close(struct dr_recorder *recorder)
{
    if (!recorder)
        return;
    for (int k = 0; dr_probes[k]; k++)
        if (recorder->state[k]) {
            dr_probes[k]->close(recorder->state[k]);
            free(recorder->state[k]);
        }
    dr_tree_close(recorder->tree);
    dr_samples_close(recorder->samples);
    dr_absent_free(&recorder->absent);
    free(recorder);
}
