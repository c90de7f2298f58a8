/* many_files.c - how long it takes to open a dataset of very many files or archives, and how much memory
 *
 *     many_files URI [INDEX_DIR]        twice: the second time with what the first has kept, if anything
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/clock.h"
#include "source/source.h"

#include <stdio.h>
#include <string.h>

/* "VmRSS" or "VmHWM" of this process, in MiB. */
static double memory(const char *name)
{
    char line[256];
    double kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name)))
            sscanf(line + strlen(name), ": %lf", &kib);
    if (file)
        fclose(file);
    return kib / 1024;
}

int main(int argc, char **argv)
{
    const struct stoker_dataset_options opt = {.size = sizeof opt, .index_dir = argc > 2 ? argv[2] : NULL};
    for (int round = 0; argc > 1 && round < 2; round++) {
        struct stoker_dataset *data;
        struct stoker_error err;
        const double before = memory("VmRSS");
        const uint64_t began = st_now_ns();
        if (st_dataset_open(&data, argv[1], &opt, &err)) {
            fprintf(stderr, "%s\n", err.message);
            return 1;
        }
        printf("%llu samples in %.3f s, %.1f MiB more than before, %.1f MiB at most\n",
               (unsigned long long)st_dataset_count(data), (double)(st_now_ns() - began) / 1e9,
               memory("VmRSS") - before, memory("VmHWM"));
        st_dataset_drop(data);
    }
    return argc > 1 ? 0 : 2;
}
