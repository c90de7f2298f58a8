/* fake_nvml.c - a management library whose GPU is made up, for machines without a driver
 *
 * GPU 0 and "GPU-1-2" count with GPM; bus "0000:17:00.0" is an older one that has nothing but the basics.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sample { unsigned long long time; union { double d; unsigned u; unsigned long long ull; } value; };
struct metric { unsigned id; int result; double value; const char *names[3]; };
struct question { unsigned version, count; int *from, *to; struct metric metric[]; };

static int open_count, live_samples, clock_now = 1000, gpm_order;
static int hopper, older;

/* For the test: what is still open, and time that passes. */
int fake_open(void);
int fake_live(void);
void fake_pass(int time);
int fake_open(void) { return open_count; }
int fake_live(void) { return live_samples; }
void fake_pass(int time) { clock_now += time; }

int nvmlInit_v2(void);
int nvmlInit_v2(void) { open_count++; return 0; }
int nvmlShutdown(void);
int nvmlShutdown(void) { open_count--; return 0; }
const char *nvmlErrorString(int status);
const char *nvmlErrorString(int status) { return status == 6 ? "Not Found" : "odd"; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, int **out);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, int **out) { *out = &hopper; return index == 0 ? 0 : 6; }
int nvmlDeviceGetHandleByUUID(const char *uuid, int **out);
int nvmlDeviceGetHandleByUUID(const char *uuid, int **out) { *out = &hopper; return strcmp(uuid, "GPU-1-2") ? 6 : 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, int **out);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, int **out)
{
    *out = &older;
    return strcmp(bus, "0000:17:00.0") ? 6 : 0;
}

int nvmlDeviceGetUtilizationRates(int *device, unsigned out[2]);
int nvmlDeviceGetUtilizationRates(int *device, unsigned out[2])
{
    out[0] = device == &older ? 42 : 7;
    out[1] = 1;
    return 0;
}
int nvmlDeviceGetMemoryInfo(int *device, unsigned long long out[3]);
int nvmlDeviceGetMemoryInfo(int *device, unsigned long long out[3])
{
    (void)device;
    out[0] = 1000, out[1] = 700, out[2] = 300;
    return 0;
}
int nvmlDeviceGetPowerUsage(int *device, unsigned *milliwatts);
int nvmlDeviceGetPowerUsage(int *device, unsigned *milliwatts)
{
    *milliwatts = 123456;
    return device == &older ? 3 : 0;
}

int nvmlDeviceGetClockInfo(int *device, int type, unsigned *megahertz);
int nvmlDeviceGetClockInfo(int *device, int type, unsigned *megahertz)
{
    *megahertz = 990;
    return device == &older || type != 1 ? 3 : 0;
}
int nvmlDeviceGetMaxClockInfo(int *device, int type, unsigned *megahertz);
int nvmlDeviceGetMaxClockInfo(int *device, int type, unsigned *megahertz)
{
    (void)device;
    *megahertz = 1980;
    return type == 1 ? 0 : 3;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(int *device, unsigned long long *reasons);
int nvmlDeviceGetCurrentClocksThrottleReasons(int *device, unsigned long long *reasons)
{
    *reasons = device == &older ? 1 : 0x20; /* idle; too hot */
    return 0;
}
int nvmlDeviceGetCurrPcieLinkGeneration(int *device, unsigned *out);
int nvmlDeviceGetCurrPcieLinkGeneration(int *device, unsigned *out) { *out = 4; return device == &older ? 3 : 0; }
int nvmlDeviceGetMaxPcieLinkGeneration(int *device, unsigned *out);
int nvmlDeviceGetMaxPcieLinkGeneration(int *device, unsigned *out) { *out = 5; return device == &older ? 3 : 0; }
int nvmlDeviceGetCurrPcieLinkWidth(int *device, unsigned *out);
int nvmlDeviceGetCurrPcieLinkWidth(int *device, unsigned *out) { *out = 8; return device == &older ? 3 : 0; }
int nvmlDeviceGetMaxPcieLinkWidth(int *device, unsigned *out);
int nvmlDeviceGetMaxPcieLinkWidth(int *device, unsigned *out) { *out = 16; return device == &older ? 3 : 0; }
int nvmlDeviceGetName(int *device, char *name, unsigned room);
int nvmlDeviceGetName(int *device, char *name, unsigned room) { snprintf(name, room, "Made Up"); return device == &older; }
int nvmlSystemGetDriverVersion(char *version, unsigned room);
int nvmlSystemGetDriverVersion(char *version, unsigned room) { snprintf(version, room, "555.1"); return 0; }

/* One sample for each 100 of time since 0: its value is its time, as a number of percents below 100. */
int nvmlDeviceGetSamples(int *device, int type, unsigned long long since, int *value_type, unsigned *count,
                         struct sample *samples);
int nvmlDeviceGetSamples(int *device, int type, unsigned long long since, int *value_type, unsigned *count,
                         struct sample *samples)
{
    unsigned found = 0;
    if (device == &older || type != 1)
        return 3;
    for (unsigned long long time = since / 100 * 100 + 100; time <= (unsigned long long)clock_now; time += 100) {
        if (samples && found < *count)
            samples[found] = (struct sample){.time = time, .value.u = (unsigned)(time / 100 % 100)};
        found++;
    }
    *value_type = 1;
    if (samples && found > *count)
        return 7;
    *count = found;
    return found ? 0 : 6;
}

int nvmlGpmQueryDeviceSupport(int *device, unsigned support[2]);
int nvmlGpmQueryDeviceSupport(int *device, unsigned support[2])
{
    support[1] = device != &older;
    return support[0] == 1 ? 0 : 2;
}
int nvmlGpmSampleAlloc(int **out);
int nvmlGpmSampleAlloc(int **out) { live_samples++; *out = calloc(1, sizeof **out); return *out ? 0 : 20; }
int nvmlGpmSampleFree(int *sample);
int nvmlGpmSampleFree(int *sample) { live_samples--; free(sample); return 0; }
int nvmlGpmSampleGet(int *device, int *sample);
int nvmlGpmSampleGet(int *device, int *sample) { (void)device; *sample = ++gpm_order; return 0; }

int nvmlGpmMetricsGet(struct question *question);
int nvmlGpmMetricsGet(struct question *question)
{
    if (question->version != 1 || *question->from >= *question->to)
        return 2;
    for (unsigned k = 0; k < question->count; k++) {
        struct metric *metric = &question->metric[k];
        metric->result = 0;
        switch (metric->id) {
        case 2: metric->value = 71.5; break;
        case 3: metric->value = 30; break;
        case 5: metric->result = 3; break; /* this GPU does not say */
        case 10: metric->value = 55; break;
        case 20: metric->value = 2; break;
        case 21: metric->value = 8; break;
        default:
            metric->value = 50;
            metric->result = metric->id >= 40 && metric->id < 47 ? 0 : 3;
        }
    }
    return 0;
}
