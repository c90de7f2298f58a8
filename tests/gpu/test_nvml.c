/* test_nvml.c - watching a GPU: where there is none, and one made up by a library of our own
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/gpu.h"

#include "tap.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>
#include <time.h>

static bool near(double got, double wanted) { return fabs(got - wanted) < 1e-9; }

static void absent(void)
{
    struct stoker_gpu_watch *watch = NULL;
    struct stoker_error err = {0};
    int rc = st_nvml_open(&watch, "libno-such-library.so.1", NULL, &err);
    ok(rc == STOKER_EUNSUPPORTED && !watch, "no driver is EUNSUPPORTED");
    ok(strstr(err.message, "driver") && strstr(err.message, "libno-such-library.so.1"),
       "and the message names what was looked for: %s", err.message);
    rc = st_nvml_open(&watch, "libc.so.6", NULL, &err);
    ok(rc == STOKER_EUNSUPPORTED && strstr(err.message, "nvml"), "a library without the functions: %s",
       err.message);
    st_nvml_close(NULL);
}

static void nap(long ms)
{
    const struct timespec time = {0, ms * 1000000};
    nanosleep(&time, NULL);
}

static void counted(const char *library, void (*pass)(int))
{
    struct stoker_gpu_watch *watch = NULL;
    struct stoker_gpu_sample sample;
    struct stoker_error err = {0};
    if (!ok(st_nvml_open(&watch, library, NULL, &err) == STOKER_OK, "the made-up GPU opens: %s",
            err.message))
        return;
    st_nvml_sample(watch, &sample);
    ok(sample.sm_active == -1 && sample.seconds == -1, "before 100 ms have passed GPM says nothing");
    ok(near(sample.watts, 123.456) && sample.memory_used == 300 && sample.memory_total == 1000,
       "power and memory are now's");
    ok(near(sample.busy, 0.07), "without new measurements: the rate that the driver shows (%g)",
       sample.busy);
    ok(near(sample.clock, 0.5) && sample.limited == 1, "half the clock, held down by heat");
    ok(sample.link_generation == 4 && sample.link_generation_most == 5 && sample.link_width == 8 &&
           sample.link_width_most == 16 && sample.node == -1, "the link now, and at most; no node is known");
    ok(!strcmp(sample.name, "Made Up") && !strcmp(sample.driver, "555.1"), "names of GPU and driver");
    pass(300); /* 1100, 1200 and 1300: 11, 12 and 13 % */
    st_nvml_sample(watch, &sample);
    ok(near(sample.busy, 0.12), "busy is the mean of the measurements since (%g)", sample.busy);
    pass(100);
    nap(110);
    st_nvml_sample(watch, &sample);
    ok(near(sample.busy, 0.14), "and none is counted twice (%g)", sample.busy);
    ok(near(sample.sm_active, 0.715) && near(sample.sm_occupancy, 0.30) &&
           near(sample.dram_active, 0.55),
       "after 100 ms: the multiprocessors' activity");
    ok(sample.tensor_active == -1, "a counter that this GPU lacks is not known");
    ok(near(sample.jpeg_hardware, 3.5), "seven decoders, each half busy (%g)", sample.jpeg_hardware);
    ok(near(sample.pcie_out, 2 << 20) && near(sample.pcie_in, 8 << 20), "PCIe in bytes a second");
    ok(sample.seconds >= 0.1 && sample.seconds < 60, "of an interval of %g s", sample.seconds);
    const double seconds = sample.seconds;
    st_nvml_sample(watch, &sample);
    ok(sample.seconds == seconds && near(sample.sm_active, 0.715), "too soon: the interval before");
    st_nvml_close(watch);
}

static void named(const char *library)
{
    struct stoker_gpu_watch *watch = NULL;
    struct stoker_gpu_sample sample;
    struct stoker_error err = {0};
    ok(st_nvml_open(&watch, library, "GPU-1-2", &err) == STOKER_OK, "by identifier");
    st_nvml_close(watch);
    ok(st_nvml_open(&watch, library, "0000:17:00.0", &err) == STOKER_OK, "by PCI address");
    nap(110);
    st_nvml_sample(watch, &sample);
    ok(near(sample.busy, 0.42) && sample.sm_active == -1 && sample.watts == -1,
       "an older GPU: busy is there, counters and power are not");
    ok(sample.clock == -1 && sample.limited == 0 && sample.link_width == -1 && !sample.name[0],
       "nor are clock, link and name; being at rest is not being held down");
    st_nvml_close(watch);
    watch = NULL;
    ok(st_nvml_open(&watch, library, "5", &err) == STOKER_EUNSUPPORTED && !watch &&
           strstr(err.message, "\"5\"") && strstr(err.message, "Not Found"),
       "one that is not there: %s", err.message);
}

int main(int argc, char **argv)
{
    char library[4096];
    (void)argc;
    const char *slash = strrchr(argv[0], '/');
    snprintf(library, sizeof library, "%.*s/gpu/libfake_nvml.so", slash ? (int)(slash - argv[0]) : 1,
             slash ? argv[0] : ".");
    absent();
    void *fake = dlopen(library, RTLD_NOW);
    if (!fake) {
        ok(false, "the made-up library opens: %s", dlerror());
        return done_testing();
    }
    int (*open_count)(void) = (int (*)(void))(uintptr_t)dlsym(fake, "fake_open");
    int (*live)(void) = (int (*)(void))(uintptr_t)dlsym(fake, "fake_live");
    counted(library, (void (*)(int))(uintptr_t)dlsym(fake, "fake_pass"));
    named(library);
    ok(open_count() == 0 && live() == 0, "everything opened was closed (%d, %d)", open_count(), live());
    dlclose(fake);
    return done_testing();
}
