/* gpu.c - the first GPU visible to the run, through the management library of the driver
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/probe/probes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gpu {
    struct stoker_gpu_watch *watch;
    struct dr_limits *limits;
    struct dr_absent *absent;
    uint64_t since_ns;
    bool judged; /* whether this GPU has GPM */
};

/* The first of CUDA_VISIBLE_DEVICES; "" if no GPU is visible. Numbers are those of CUDA; they agree with
 * the driver's unless GPUs of several kinds are mixed. */
static void first_visible(char *out, size_t room)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    snprintf(out, room, "0");
    if (visible)
        snprintf(out, room, "%.*s", (int)strcspn(visible, ","), visible);
    if (out[0] == '-')
        out[0] = '\0';
}

double dr_link_bytes(double generation, double width)
{
    static const double lane[] = {NAN, 250e6, 500e6, 985e6, 1969e6, 3938e6, 7563e6};
    return generation >= 1 && generation <= 6 && width >= 1 ? lane[(int)generation] * width : NAN;
}

static double known(double value) { return value < 0 ? NAN : value; }

static bool gpu_open(void *state, const char *root, struct dr_limits *limits, struct dr_absent *absent)
{
    struct gpu *gpu = state;
    struct stoker_error err = {0};
    struct stoker_gpu_sample now = {.size = sizeof now};
    char which[96];
    (void)root;
    gpu->limits = limits;
    gpu->absent = absent;
    first_visible(which, sizeof which);
    if (!which[0]) {
        dr_absent_all(absent, DR_GPU_BUSY, DR_GPU_LIMITED, "CUDA_VISIBLE_DEVICES hides every GPU",
                      "set it to a GPU, or unset it");
        return false;
    }
    if (stoker_gpu_watch_open(&gpu->watch, which, &err)) {
        dr_absent_all(absent, DR_GPU_BUSY, DR_GPU_LIMITED, err.message,
                      "use a machine with an NVIDIA GPU and its driver; in a container also "
                      "NVIDIA_DRIVER_CAPABILITIES=compute,utility");
        return false;
    }
    if (stoker_gpu_watch_sample(gpu->watch, &now, &err))
        return true;
    snprintf(limits->gpu_name, sizeof limits->gpu_name, "%s", now.name);
    limits->gpu_memory = now.memory_total ? (double)now.memory_total : NAN;
    limits->gpu_node = known(now.node);
    limits->pcie_limit = dr_link_bytes(now.link_generation, now.link_width);
    return true;
}

/* An idle GPU slows its link down, so the fastest state seen counts. */
static void note_link(struct gpu *gpu, const struct stoker_gpu_sample *now)
{
    const double bytes = dr_link_bytes(now->link_generation, now->link_width);
    gpu->limits->pcie_limit = fmax(gpu->limits->pcie_limit, bytes);
}

/* These counters need a while before they report anything. */
static void judge_counters(struct gpu *gpu, const struct dr_tick *tick)
{
    if (!gpu->since_ns)
        gpu->since_ns = tick->now_ns;
    if (gpu->judged || tick->now_ns - gpu->since_ns < UINT64_C(2000000000))
        return;
    gpu->judged = true;
    for (int k = DR_GPU_SM; k <= DR_GPU_PCIE_OUT; k++)
        if (isnan(tick->machine[k]))
            dr_absent_add(gpu->absent, dr_machine_signals[k].name,
                          "this GPU or its driver does not provide these counters (GPM)",
                          "use a Hopper GPU or newer, without MIG, and driver 525 or newer");
}

static void gpu_sample(void *state, struct dr_tick *tick, const struct dr_watched *watched)
{
    struct gpu *gpu = state;
    struct stoker_gpu_sample now = {.size = sizeof now};
    double *to = tick->machine;
    (void)watched;
    if (stoker_gpu_watch_sample(gpu->watch, &now, NULL))
        return;
    to[DR_GPU_BUSY] = known(now.busy);
    to[DR_GPU_SM] = known(now.sm_active);
    to[DR_GPU_TENSOR] = known(now.tensor_active);
    to[DR_GPU_DRAM] = known(now.dram_active);
    to[DR_GPU_PCIE_IN] = known(now.pcie_in);
    to[DR_GPU_PCIE_OUT] = known(now.pcie_out);
    to[DR_GPU_MEMORY] = now.memory_total ? (double)now.memory_used : NAN;
    to[DR_GPU_CLOCK] = known(now.clock);
    to[DR_GPU_WATTS] = known(now.watts);
    to[DR_GPU_LIMITED] = known(now.limited);
    note_link(gpu, &now);
    judge_counters(gpu, tick);
}

static void gpu_close(void *state) { stoker_gpu_watch_close(((struct gpu *)state)->watch); }

_Static_assert(DR_GPU_LIMITED == DR_MACHINE_COUNT - 1 && DR_GPU_BUSY < DR_GPU_SM,
               "the signals of the GPU come last");
const struct dr_probe dr_probe_gpu = {"gpu", sizeof(struct gpu), gpu_open, gpu_sample, gpu_close};
