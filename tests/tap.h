/* tap.h - a test is a program that prints "ok 1 - what" lines: the Test Anything Protocol
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_TAP_H
#define ST_TESTS_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static int tap_done, tap_failed;

/* One check, with a sentence that says what must hold. */
static inline bool ok(bool holds, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline bool ok(bool holds, const char *format, ...)
{
    va_list args;
    printf("%s %d - ", holds ? "ok" : "not ok", ++tap_done);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    tap_failed += !holds;
    fflush(stdout);
    return holds;
}

/* A remark that stands beside the checks. */
static inline void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline void note(const char *format, ...)
{
    va_list args;
    printf("# ");
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

/* A check that this machine cannot make. */
static inline void skip(const char *what, const char *why)
{
    printf("ok %d - %s # SKIP %s\n", ++tap_done, what, why);
}

/* Whether this program is of another architecture than the machine: Meson names the emulator. */
static inline bool emulated(void) { return getenv("MESON_EXE_WRAPPER") != NULL; }

/* How many of `count` repetitions to do: STOKER_TEST_SHARE percent of them, which is all unless it is set
 * (as for emulated programs), and at least one. */
static inline unsigned share_of(unsigned count)
{
    const char *percent = getenv("STOKER_TEST_SHARE");
    const unsigned part = percent ? (unsigned)((double)count * atof(percent) / 100) : count;
    return part < 1 ? 1 : part;
}

/* The end of main. */
static inline int done_testing(void)
{
    printf("1..%d\n", tap_done);
    return tap_failed != 0;
}

#endif
