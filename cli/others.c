/* others.c - the CPUs that other programs use, which disturb a measurement
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"

#include "base/clock.h"
#include "base/cpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* As DR_NEIGHBOUR_SHARE of the rules: that much is more than what systems do at rest. */
static const double MATTERS = 0.25;
enum { LOOK_MS = 250 };

/* Of a line of /proc/stat, behind the name of the CPU. Guest time is part of user; idle and iowait are
 * not work. */
static double busy_seconds(const char *line, double *stolen)
{
    enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, FIELDS };
    const double hertz = (double)sysconf(_SC_CLK_TCK);
    double field[FIELDS] = {0};
    int k = 0;
    for (char *end = NULL; k < FIELDS; k++) {
        const char *from = k ? end : line;
        from += strspn(from, " ");
        if (*from < '0' || *from > '9')
            break;
        field[k] = (double)strtoull(from, &end, 10);
    }
    if (stolen)
        *stolen = k < FIELDS ? NAN : field[STEAL] / hertz;
    return k <= IDLE ? NAN
                     : (field[USER] + field[NICE] + field[SYSTEM] + field[IRQ] + field[SOFTIRQ] +
                        field[STEAL]) /
                           hertz;
}

double busy_cpu_seconds(const char *stat, double *stolen)
{
    return busy_seconds(strncmp(stat, "cpu ", 4) ? "" : stat + 4, stolen);
}

double allowed_cpu_seconds(const char *stat, const bool *allowed, uint32_t room, uint32_t count)
{
    double sum = 0;
    uint32_t found = 0;
    for (const char *line = strchr(stat, '\n'); line && !strncmp(line, "\ncpu", 4);
         line = strchr(line + 1, '\n')) {
        char *end;
        const unsigned long cpu = strtoul(line + 4, &end, 10);
        /* a text that was cut off lacks the end of its last line */
        if (end == line + 4 || *end != ' ' || cpu >= room || !allowed[cpu] || !strchr(end, '\n'))
            continue;
        sum += busy_seconds(end, NULL);
        found++;
    }
    return found == count && count ? sum : NAN;
}

/* CPU seconds of all other processes so far, on these CPUs. */
static double others_seconds(const bool *allowed, uint32_t count)
{
    struct timespec own;
    char *text = malloc(STAT_ROOM);
    FILE *file = text ? fopen("/proc/stat", "re") : NULL;
    if (!file || clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own)) {
        if (file)
            fclose(file);
        free(text);
        return NAN;
    }
    text[fread(text, 1, STAT_ROOM - 1, file)] = '\0';
    fclose(file);
    double busy = allowed_cpu_seconds(text, allowed, STAT_CPUS, count);
    if (isnan(busy) && count >= sysconf(_SC_NPROCESSORS_ONLN))
        busy = busy_cpu_seconds(text, NULL);
    free(text);
    return busy - ((double)own.tv_sec + (double)own.tv_nsec / 1e9);
}

struct others cpus_of_others(void)
{
    bool allowed[STAT_CPUS] = {false};
    const uint32_t count = st_affinity_add(0, allowed, STAT_CPUS);
    const double before = others_seconds(allowed, count);
    const uint64_t start = st_now_ns();
    nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    const double used = others_seconds(allowed, count) - before;
    const uint64_t took = st_now_ns() - start;
    return (struct others){.used = took ? (used < 0 ? 0 : used) / ((double)took / 1e9) : NAN,
                           .allowed = count,
                           .paid = fmin(count, st_cgroup_quota(""))};
}

bool others_text(char *out, size_t room, const struct others *others)
{
    const double left = others->allowed - others->paid; /* a quota leaves CPUs to others */
    if (!(others->used - left >= MATTERS * others->paid))
        return false;
    snprintf(out, room,
             "other programs use %.1f of the %.0f CPU%s that this one may use: what is measured now is "
             "theirs, too",
             others->used, others->allowed, others->allowed == 1 ? "" : "s");
    return true;
}
