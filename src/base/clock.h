/* clock.h - monotonic time, and CPU time
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_BASE_CLOCK_H
#define ST_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t st_clock_ns(clockid_t clock)
{
    struct timespec t = {0};
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t st_now_ns(void) { return st_clock_ns(CLOCK_MONOTONIC); }
static inline uint64_t st_process_cpu_ns(void) { return st_clock_ns(CLOCK_PROCESS_CPUTIME_ID); }
static inline uint64_t st_thread_cpu_ns(void) { return st_clock_ns(CLOCK_THREAD_CPUTIME_ID); }

#endif
