/* nvml.c - the utilisation of a GPU, from the driver's management library (NVML), opened at run time
 *
 * There are two kinds of numbers. "Utilisation" is the fraction of time in which any kernel was running;
 * a single thread of one kernel makes it 100 %. What the multiprocessors actually did comes from the
 * counters of GPM (Hopper and later): differences between two samples, which must be at least 100 ms
 * apart.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/gpu.h"

#include "base/clock.h"
#include "base/mem.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GPM_INTERVAL_NS UINT64_C(100000000)

/* Names, numbers and structures as in the library: an ABI, so they do not change. */
struct nvmlDevice_st;
struct nvmlGpmSample_st;

enum { NVML_OK = 0, NVML_GPU_UTILIZATION_SAMPLES = 1, NVML_GPM_VERSION = 1, NVML_CLOCK_SM = 1 };
/* Reasons for a reduced clock: the power limit, and slowdowns by hardware or driver for heat or
 * power. */
enum { NVML_HELD_DOWN = 0x4 | 0x8 | 0x20 | 0x40 | 0x80 };
enum { NVML_VALUE_DOUBLE = 0, NVML_VALUE_UNSIGNED = 1, NVML_VALUE_LONG = 2, NVML_VALUE_LONG_LONG = 3 };

struct nvml_utilization {
    unsigned gpu, memory;
};
struct nvml_memory {
    unsigned long long total, free, used;
};
struct nvml_pci {
    char old_bus[16];
    unsigned domain, bus, device, id, subsystem;
    char address[32];
};
union nvml_value {
    double real;
    unsigned whole;
    unsigned long whole_long;
    unsigned long long whole_long_long;
};
struct nvml_sample {
    unsigned long long time;
    union nvml_value value;
};
struct nvml_gpm_support {
    unsigned version, supported;
};
struct nvml_gpm_metric {
    unsigned id;
    int result;
    double value;
    const char *names[3];
};

enum {
    GPM_SM_UTIL = 2,
    GPM_SM_OCCUPANCY = 3,
    GPM_TENSOR_UTIL = 5,
    GPM_DRAM_UTIL = 10,
    GPM_PCIE_TX = 20,
    GPM_PCIE_RX = 21,
    GPM_JPEG_0 = 40, /* and 7 more */
};
static const unsigned char metric_ids[] = {
    GPM_SM_UTIL,    GPM_SM_OCCUPANCY, GPM_TENSOR_UTIL, GPM_DRAM_UTIL,  GPM_PCIE_TX,
    GPM_PCIE_RX,    GPM_JPEG_0,       GPM_JPEG_0 + 1,  GPM_JPEG_0 + 2, GPM_JPEG_0 + 3,
    GPM_JPEG_0 + 4, GPM_JPEG_0 + 5,   GPM_JPEG_0 + 6,  GPM_JPEG_0 + 7,
};
enum { METRICS = sizeof metric_ids };

struct nvml_gpm_question {
    unsigned version, count;
    struct nvmlGpmSample_st *from, *to;
    struct nvml_gpm_metric metric[METRICS];
};

/* X(name, symbol, needed, arguments): all return a status. Functions that are not needed may be
 * missing. */
#define NVML_MAP(X)                                                                                     \
    X(Init, nvmlInit_v2, true, (void))                                                                  \
    X(Shutdown, nvmlShutdown, true, (void))                                                             \
    X(GetHandleByIndex, nvmlDeviceGetHandleByIndex_v2, true,                                            \
      (unsigned index, struct nvmlDevice_st **out))                                                     \
    X(GetHandleByUUID, nvmlDeviceGetHandleByUUID, true, (const char *uuid, struct nvmlDevice_st **out)) \
    X(GetHandleByBus, nvmlDeviceGetHandleByPciBusId_v2, true,                                           \
      (const char *bus, struct nvmlDevice_st **out))                                                    \
    X(GetUtilization, nvmlDeviceGetUtilizationRates, true,                                              \
      (struct nvmlDevice_st * device, struct nvml_utilization * out))                                   \
    X(GetMemory, nvmlDeviceGetMemoryInfo, true,                                                         \
      (struct nvmlDevice_st * device, struct nvml_memory * out))                                        \
    X(GetPower, nvmlDeviceGetPowerUsage, true, (struct nvmlDevice_st * device, unsigned *milliwatts))   \
    X(GetClock, nvmlDeviceGetClockInfo, false,                                                          \
      (struct nvmlDevice_st * device, int type, unsigned *megahertz))                                   \
    X(GetMaxClock, nvmlDeviceGetMaxClockInfo, false,                                                    \
      (struct nvmlDevice_st * device, int type, unsigned *megahertz))                                   \
    X(GetReasons, nvmlDeviceGetCurrentClocksThrottleReasons, false,                                     \
      (struct nvmlDevice_st * device, unsigned long long *reasons))                                     \
    X(GetLinkGeneration, nvmlDeviceGetCurrPcieLinkGeneration, false,                                    \
      (struct nvmlDevice_st * device, unsigned *out))                                                   \
    X(GetLinkWidth, nvmlDeviceGetCurrPcieLinkWidth, false,                                              \
      (struct nvmlDevice_st * device, unsigned *out))                                                   \
    X(GetMaxLinkGeneration, nvmlDeviceGetMaxPcieLinkGeneration, false,                                  \
      (struct nvmlDevice_st * device, unsigned *out))                                                   \
    X(GetMaxLinkWidth, nvmlDeviceGetMaxPcieLinkWidth, false,                                            \
      (struct nvmlDevice_st * device, unsigned *out))                                                   \
    X(GetPci, nvmlDeviceGetPciInfo_v3, false, (struct nvmlDevice_st * device, struct nvml_pci * out))   \
    X(GetName, nvmlDeviceGetName, false,                                                                \
      (struct nvmlDevice_st * device, char *name, unsigned room))                                       \
    X(GetDriver, nvmlSystemGetDriverVersion, false, (char *version, unsigned room))                     \
    X(GetSamples, nvmlDeviceGetSamples, false,                                                          \
      (struct nvmlDevice_st * device, int type, unsigned long long since, int *value_type,              \
       unsigned *count, struct nvml_sample *samples))                                                   \
    X(GpmSupport, nvmlGpmQueryDeviceSupport, false,                                                     \
      (struct nvmlDevice_st * device, struct nvml_gpm_support * support))                               \
    X(GpmAlloc, nvmlGpmSampleAlloc, false, (struct nvmlGpmSample_st * *out))                            \
    X(GpmFree, nvmlGpmSampleFree, false, (struct nvmlGpmSample_st * sample))                            \
    X(GpmSample, nvmlGpmSampleGet, false,                                                               \
      (struct nvmlDevice_st * device, struct nvmlGpmSample_st * sample))                                \
    X(GpmMetrics, nvmlGpmMetricsGet, false, (struct nvml_gpm_question * question))

struct stoker_gpu_watch {
    void *library;
    bool began; /* Init succeeded */
#define X(name, symbol, needed, arguments) int(*name) arguments;
    NVML_MAP(X)
#undef X
    const char *(*ErrorString)(int status);
    struct nvmlDevice_st *device;
    unsigned long long seen; /* time of the newest utilisation sample that has been used */
    struct nvml_sample *ring;
    uint32_t ring_room;
    struct nvmlGpmSample_st *gpm[2]; /* NULL: no GPM; [0] is the start of the interval */
    uint64_t gpm_began;
    struct stoker_gpu_sample last; /* of the previous interval, for calls that come too soon */
};

static int fail(const struct stoker_gpu_watch *watch, int status, const char *what,
                struct stoker_error *err)
{
    const char *text = watch->ErrorString ? watch->ErrorString(status) : NULL;
    return st_fail(err, STOKER_EUNSUPPORTED, "%s: NVML error %d, %s", what, status,
                   text ? text : "unknown");
}

static int load(struct stoker_gpu_watch *watch, const char *library, struct stoker_error *err)
{
    watch->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!watch->library)
        return st_fail(err, STOKER_EUNSUPPORTED, "no NVIDIA driver is installed: %s", dlerror());
    const char *absent = NULL;
#define X(name, symbol, needed, arguments)                                                              \
    watch->name = (int(*) arguments)(uintptr_t)dlsym(watch->library, #symbol);                          \
    if (needed && !watch->name)                                                                         \
        absent = #symbol;
    NVML_MAP(X)
#undef X
    watch->ErrorString = (const char *(*)(int))(uintptr_t)dlsym(watch->library, "nvmlErrorString");
    if (absent)
        return st_fail(err, STOKER_EUNSUPPORTED, "%s has no %s: install a newer driver", library,
                       absent);
    return STOKER_OK;
}

static int find_device(struct stoker_gpu_watch *watch, const char *which, struct stoker_error *err)
{
    char what[128];
    int status;
    if (!which || !*which)
        which = "0";
    if (strspn(which, "0123456789") == strlen(which))
        status = watch->GetHandleByIndex((unsigned)strtoul(which, NULL, 10), &watch->device);
    else if (strchr(which, '-'))
        status = watch->GetHandleByUUID(which, &watch->device);
    else
        status = watch->GetHandleByBus(which, &watch->device);
    if (status == NVML_OK)
        return STOKER_OK;
    snprintf(what, sizeof what, "no GPU \"%.80s\"", which);
    return fail(watch, status, what, err);
}

static double value_of(int type, union nvml_value value)
{
    switch (type) {
    case NVML_VALUE_DOUBLE:
        return value.real;
    case NVML_VALUE_UNSIGNED:
        return value.whole;
    case NVML_VALUE_LONG:
        return (double)value.whole_long;
    case NVML_VALUE_LONG_LONG:
        return (double)value.whole_long_long;
    default:
        return -1;
    }
}

/* The mean of the driver's measurements since the last call; negative if there is nothing new. */
static double busy_since(struct stoker_gpu_watch *watch)
{
    unsigned count = 0;
    int type = 0;
    if (!watch->GetSamples ||
        watch->GetSamples(watch->device, NVML_GPU_UTILIZATION_SAMPLES, watch->seen, &type, &count,
                          NULL) != NVML_OK ||
        !count)
        return -1;
    if (count > watch->ring_room) {
        struct nvml_sample *ring = st_grow(watch->ring, count, sizeof *ring);
        if (!ring)
            return -1;
        watch->ring = ring;
        watch->ring_room = count;
    }
    count = watch->ring_room;
    if (watch->GetSamples(watch->device, NVML_GPU_UTILIZATION_SAMPLES, watch->seen, &type, &count,
                          watch->ring) != NVML_OK)
        return -1;
    double sum = 0;
    unsigned counted = 0;
    const unsigned long long since = watch->seen;
    for (unsigned k = 0; k < count && k < watch->ring_room; k++)
        if (watch->ring[k].time > since) {
            sum += value_of(type, watch->ring[k].value);
            counted++;
            if (watch->ring[k].time > watch->seen)
                watch->seen = watch->ring[k].time;
        }
    return counted ? sum / counted / 100 : -1;
}

/* GPM is optional: without it, the other values are still available. */
static void open_gpm(struct stoker_gpu_watch *watch)
{
    struct nvml_gpm_support support = {.version = NVML_GPM_VERSION};
    if (!watch->GpmSupport || !watch->GpmAlloc || !watch->GpmFree || !watch->GpmSample ||
        !watch->GpmMetrics || watch->GpmSupport(watch->device, &support) != NVML_OK ||
        !support.supported)
        return;
    for (int k = 0; k < 2; k++)
        if (watch->GpmAlloc(&watch->gpm[k]) != NVML_OK)
            watch->gpm[k] = NULL;
    if (watch->gpm[0] && watch->gpm[1] && watch->GpmSample(watch->device, watch->gpm[0]) == NVML_OK) {
        watch->gpm_began = st_now_ns();
        return;
    }
    for (int k = 0; k < 2; k++) {
        if (watch->gpm[k])
            watch->GpmFree(watch->gpm[k]);
        watch->gpm[k] = NULL;
    }
}

static const struct stoker_gpu_sample nothing = {
    .size = sizeof(struct stoker_gpu_sample),
    .busy = -1,
    .sm_active = -1,
    .sm_occupancy = -1,
    .tensor_active = -1,
    .dram_active = -1,
    .jpeg_hardware = -1,
    .pcie_in = -1,
    .pcie_out = -1,
    .watts = -1,
    .seconds = -1,
    .clock = -1,
    .limited = -1,
    .link_generation = -1,
    .link_width = -1,
    .link_generation_most = -1,
    .link_width_most = -1,
    .node = -1,
};

/* Finds the NUMA node by the PCI address, which NVML writes with a domain of eight digits. */
static double node_of(struct stoker_gpu_watch *watch)
{
    struct nvml_pci pci;
    char path[128];
    int node = -1;
    if (!watch->GetPci || watch->GetPci(watch->device, &pci) != NVML_OK)
        return -1;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%04x:%02x:%02x.0/numa_node", pci.domain, pci.bus,
             pci.device);
    FILE *file = fopen(path, "re");
    if (!file)
        return -1;
    if (fscanf(file, "%d", &node) != 1)
        node = -1;
    fclose(file);
    return node;
}

/* Values that do not change. */
static void describe(struct stoker_gpu_watch *watch)
{
    struct stoker_gpu_sample *to = &watch->last;
    unsigned value;
    if (!watch->GetName || watch->GetName(watch->device, to->name, sizeof to->name) != NVML_OK)
        to->name[0] = '\0';
    if (!watch->GetDriver || watch->GetDriver(to->driver, sizeof to->driver) != NVML_OK)
        to->driver[0] = '\0';
    to->name[sizeof to->name - 1] = to->driver[sizeof to->driver - 1] = '\0';
    if (watch->GetMaxLinkGeneration && watch->GetMaxLinkGeneration(watch->device, &value) == NVML_OK)
        to->link_generation_most = value;
    if (watch->GetMaxLinkWidth && watch->GetMaxLinkWidth(watch->device, &value) == NVML_OK)
        to->link_width_most = value;
    to->node = node_of(watch);
}

int st_nvml_open(struct stoker_gpu_watch **out, const char *library, const char *which,
                 struct stoker_error *err)
{
    struct stoker_gpu_watch *watch = st_calloc(1, sizeof *watch);
    if (!watch)
        return st_fail(err, STOKER_ENOMEM, "no memory to watch a GPU");
    watch->last = nothing;
    int rc = load(watch, library, err);
    if (!rc) {
        const int status = watch->Init();
        watch->began = status == NVML_OK;
        if (!watch->began)
            rc = fail(watch, status, "the NVIDIA driver cannot be queried", err);
    }
    if (!rc)
        rc = find_device(watch, which, err);
    if (rc) {
        st_nvml_close(watch);
        return rc;
    }
    describe(watch);
    open_gpm(watch);
    busy_since(watch); /* discards measurements from before the watch */
    *out = watch;
    return STOKER_OK;
}

void st_nvml_close(struct stoker_gpu_watch *watch)
{
    if (!watch)
        return;
    for (int k = 0; k < 2; k++)
        if (watch->gpm[k])
            watch->GpmFree(watch->gpm[k]);
    if (watch->began)
        watch->Shutdown();
    if (watch->library)
        dlclose(watch->library);
    free(watch->ring);
    free(watch);
}

/* Copies what GPM counted between two samples. */
static void read_metrics(const struct nvml_gpm_question *asked, struct stoker_gpu_sample *out)
{
    const double mebibyte = 1 << 20;
    for (uint32_t k = 0; k < METRICS; k++) {
        const struct nvml_gpm_metric *metric = &asked->metric[k];
        if (metric->result != NVML_OK || !isfinite(metric->value))
            continue;
        switch (metric->id) {
        case GPM_SM_UTIL:
            out->sm_active = metric->value / 100;
            break;
        case GPM_SM_OCCUPANCY:
            out->sm_occupancy = metric->value / 100;
            break;
        case GPM_TENSOR_UTIL:
            out->tensor_active = metric->value / 100;
            break;
        case GPM_DRAM_UTIL:
            out->dram_active = metric->value / 100;
            break;
        case GPM_PCIE_TX:
            out->pcie_out = metric->value * mebibyte;
            break;
        case GPM_PCIE_RX:
            out->pcie_in = metric->value * mebibyte;
            break;
        default:
            out->jpeg_hardware = (out->jpeg_hardware < 0 ? 0 : out->jpeg_hardware) + metric->value / 100;
        }
    }
}

/* Ends the interval and starts the next one, if it was long enough. */
static void sample_gpm(struct stoker_gpu_watch *watch, struct stoker_gpu_sample *out)
{
    const uint64_t now = st_now_ns();
    if (!watch->gpm[0] || now - watch->gpm_began < GPM_INTERVAL_NS ||
        watch->GpmSample(watch->device, watch->gpm[1]) != NVML_OK)
        return;
    struct nvml_gpm_question asked = {
        .version = NVML_GPM_VERSION, .count = METRICS, .from = watch->gpm[0], .to = watch->gpm[1]};
    for (uint32_t k = 0; k < METRICS; k++)
        asked.metric[k] = (struct nvml_gpm_metric){.id = metric_ids[k], .result = -1};
    if (watch->GpmMetrics(&asked) == NVML_OK) {
        out->sm_active = out->sm_occupancy = out->tensor_active = out->dram_active = -1;
        out->jpeg_hardware = out->pcie_in = out->pcie_out = -1;
        read_metrics(&asked, out);
        out->seconds = (double)(now - watch->gpm_began) / 1e9;
    }
    struct nvmlGpmSample_st *ended = watch->gpm[0];
    watch->gpm[0] = watch->gpm[1];
    watch->gpm[1] = ended;
    watch->gpm_began = now;
}

static void sample_clock(struct stoker_gpu_watch *watch, struct stoker_gpu_sample *out)
{
    unsigned now, most;
    unsigned long long reasons;
    out->clock = out->limited = -1;
    if (watch->GetClock && watch->GetMaxClock &&
        watch->GetClock(watch->device, NVML_CLOCK_SM, &now) == NVML_OK &&
        watch->GetMaxClock(watch->device, NVML_CLOCK_SM, &most) == NVML_OK && most)
        out->clock = (double)now / most;
    if (watch->GetReasons && watch->GetReasons(watch->device, &reasons) == NVML_OK)
        out->limited = (reasons & NVML_HELD_DOWN) != 0;
}

static void sample_link(struct stoker_gpu_watch *watch, struct stoker_gpu_sample *out)
{
    unsigned value;
    if (watch->GetLinkGeneration && watch->GetLinkGeneration(watch->device, &value) == NVML_OK)
        out->link_generation = value;
    if (watch->GetLinkWidth && watch->GetLinkWidth(watch->device, &value) == NVML_OK)
        out->link_width = value;
}

void st_nvml_sample(struct stoker_gpu_watch *watch, struct stoker_gpu_sample *out)
{
    struct nvml_utilization utilization;
    struct nvml_memory memory;
    unsigned milliwatts;
    struct stoker_gpu_sample *now = &watch->last;

    now->busy = busy_since(watch);
    if (now->busy < 0 && watch->GetUtilization(watch->device, &utilization) == NVML_OK)
        now->busy = utilization.gpu / 100.0;
    if (watch->GetMemory(watch->device, &memory) == NVML_OK) {
        now->memory_used = memory.used;
        now->memory_total = memory.total;
    }
    if (watch->GetPower(watch->device, &milliwatts) == NVML_OK)
        now->watts = milliwatts / 1e3;
    sample_clock(watch, now);
    sample_link(watch, now);
    sample_gpm(watch, now);
    *out = *now;
}
