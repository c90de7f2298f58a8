/* others.c - the CPUs that other programs use, which disturb a measurement
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* As DR_NEIGHBOUR_SHARE of the rules: that much is more than what systems do at rest. */
static const double MATTERS = 0.25;
enum { LOOK_MS = 250 };

/* Guest time is part of user; idle and iowait are not work. */
double busy_cpu_seconds(const char *stat, double *stolen)
{
    enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, FIELDS };
    const double hertz = (double)sysconf(_SC_CLK_TCK);
    double field[FIELDS] = {0};
    int k = 0;
    if (!strncmp(stat, "cpu ", 4))
        for (char *end = NULL; k < FIELDS; k++) {
            const char *from = k ? end : stat + 4;
            field[k] = (double)strtoull(from, &end, 10);
            if (end == from)
                break;
        }
    if (stolen)
        *stolen = k < FIELDS ? NAN : field[STEAL] / hertz;
    return k <= IDLE ? NAN
                     : (field[USER] + field[NICE] + field[SYSTEM] + field[IRQ] + field[SOFTIRQ] +
                        field[STEAL]) /
                           hertz;
}

/* CPU seconds of all other processes so far. */
static double others_seconds(void)
{
    char text[512] = "";
    struct timespec own;
    FILE *file = fopen("/proc/stat", "re");
    if (!file)
        return NAN;
    const bool read = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    if (!read || clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own))
        return NAN;
    return busy_cpu_seconds(text, NULL) - ((double)own.tv_sec + (double)own.tv_nsec / 1e9);
}

double cpus_of_others(void)
{
    const double before = others_seconds();
    const uint64_t start = st_now_ns();
    nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    const double used = others_seconds() - before;
    const uint64_t took = st_now_ns() - start;
    return took ? (used < 0 ? 0 : used) / ((double)took / 1e9) : NAN;
}

bool others_text(char *out, size_t room, double others, double cpus)
{
    if (!(others >= MATTERS * cpus))
        return false;
    snprintf(out, room,
             "other programs use %.1f of this machine's %.0f CPUs: what is measured now is theirs, too",
             others, cpus);
    return true;
}
