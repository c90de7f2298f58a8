/* digest.c - whether a source is still what it was when a pack was begun
 *
 * A digest over names, sizes and times, in the order of the samples. It has a part for each span of samples,
 * so that a difference can be told, and that several threads can ask a slow disk.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/pack.h"

#include "base/threads.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Who asks waits for the disk or a server, not for the CPU. */
enum { THREADS = 16 };

struct digesting {
    const struct stoker_dataset *data;
    bool files; /* samples are files of their own */
    uint64_t sums[ST_PACK_SPANS];
    atomic_uint next;
};

/* FNV-1a */
static uint64_t add(uint64_t sum, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ at[i]) * 0x100000001b3ull;
    return sum;
}

static uint64_t begin(void) { return 0xcbf29ce484222325ull; }

/* Its size and time; of a database's folder those of the file in it. */
static uint64_t add_file(uint64_t sum, const char *path)
{
    struct stat info;
    char inside[PATH_MAX];
    bool there = !stat(path, &info);
    if (there && S_ISDIR(info.st_mode))
        there = !pack_path(inside, path, "data.mdb", NULL) && !stat(inside, &info);
    const uint64_t facts[3] = {there ? (uint64_t)info.st_size : UINT64_MAX,
                               there ? (uint64_t)info.st_mtim.tv_sec : 0,
                               there ? (uint64_t)info.st_mtim.tv_nsec : 0};
    return add(sum, facts, sizeof facts);
}

static uint64_t first_of(uint64_t count, uint32_t span)
{
    return count / ST_PACK_SPANS * span + count % ST_PACK_SPANS * span / ST_PACK_SPANS;
}

static uint64_t sum_span(const struct digesting *d, uint32_t span)
{
    const uint64_t count = st_dataset_count(d->data), end = first_of(count, span + 1);
    uint64_t sum = begin();
    for (uint64_t i = first_of(count, span); i < end; i++) {
        char name[PATH_MAX];
        struct st_extent extent = {0};
        st_dataset_name(d->data, i, name, sizeof name);
        sum = add(sum, name, strlen(name) + 1);
        if (d->files && !d->data->source->locate(d->data->self, i, &extent, NULL) && !extent.objects)
            sum = add_file(sum, extent.path);
    }
    return sum;
}

static void take_spans(void *context)
{
    struct digesting *d = context;
    for (uint32_t span; (span = atomic_fetch_add(&d->next, 1)) < ST_PACK_SPANS;)
        d->sums[span] = sum_span(d, span);
}

static bool is_of_files(const char *kind)
{
    return !strcmp(kind, "folder") || !strcmp(kind, "flat") || !strcmp(kind, "csv") || !strcmp(kind, "jsonl");
}

void pack_digest(char out[ST_PACK_DIGEST + 1], const struct stoker_dataset *data,
                 const struct st_location *place)
{
    struct digesting d = {.data = data, .files = data->source->locate && is_of_files(data->kind)};
    uint64_t archives = begin();
    for (uint64_t i = 0; i < place->paths.count; i++)
        archives = add_file(add(archives, place->paths.items[i], strlen(place->paths.items[i]) + 1),
                            place->paths.items[i]);
    st_threads_run(THREADS, take_spans, &d);
    for (uint32_t i = 0; i < ST_PACK_SPANS; i++)
        sprintf(out + 16 * i, "%016llx", (unsigned long long)d.sums[i]);
    sprintf(out + 16 * ST_PACK_SPANS, "%016llx", (unsigned long long)archives);
}

int pack_digest_differs(const char *then, const char *now, const struct pack_options *opt,
                        const struct stoker_dataset *data, struct stoker_error *err)
{
    char name[300];
    const uint64_t count = st_dataset_count(data);
    uint32_t span = 0;
    while (span < ST_PACK_SPANS && !strncmp(then + 16 * span, now + 16 * span, 16))
        span++;
    static const char remedy[] = "remove the folder to pack anew, or name another one";
    if (span == ST_PACK_SPANS)
        return st_fail(err, STOKER_EINVAL,
                       "%.300s: %.300s was changed since this pack was begun (its size or its time): %s",
                       opt->folder, opt->source, remedy);
    const uint64_t first = first_of(count, span), behind = first_of(count, span + 1);
    st_dataset_name(data, first, name, sizeof name);
    return st_fail(err, STOKER_EINVAL,
                   "%.200s: %.200s is not what it was when this pack was begun: names, sizes or times differ, "
                   "first among samples %llu to %llu (the first of them is %.200s): %s",
                   opt->folder, opt->source, (unsigned long long)first,
                   (unsigned long long)(behind > first ? behind - 1 : first), name, remedy);
}
