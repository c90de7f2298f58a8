/* exchange_common.c - shared by both sides of an exchange: waiting, and checks of arguments
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exchange.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- waiting ------------------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void ext_wake(_Atomic uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0); }

bool ext_sleep_on(_Atomic uint32_t *word, uint32_t seen, uint64_t deadline)
{
    const uint64_t now = now_ns();
    if (now >= deadline)
        return false;
    const uint64_t left = deadline - now;
    const struct timespec t = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
    return syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0) == 0 || errno == EAGAIN;
}

uint64_t ext_deadline_in(double seconds)
{
    return now_ns() + (uint64_t)((seconds < 0 ? 0 : seconds > 86400 ? 86400 : seconds) * 1e9);
}

/* ---- arguments ----------------------------------------------------------------------------------- */

bool ext_is_slot(const struct exchange *self, long k)
{
    if (k >= 0 && k < (long)self->slots)
        return true;
    PyErr_Format(PyExc_IndexError, "slot %ld is out of range: there are %u", k, self->slots);
    return false;
}

bool ext_is_worker(const struct exchange *self, long k)
{
    if (k >= 0 && k < (long)self->workers)
        return true;
    PyErr_Format(PyExc_IndexError, "worker %ld is out of range: there are %u", k, self->workers);
    return false;
}
