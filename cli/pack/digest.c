/* digest.c - checks that a source is unchanged since the pack was started
 *
 * Every packed sample adds its name, and if it is a file its size and time, to a chain of sums, which
 * the manifest records at the end of each file. A run that resumes computes the sums of the same samples
 * again. Samples that are not packed yet may change: a damaged file may be repaired.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/pack.h"

#include "base/threads.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* These threads wait for the disk or a server, not for a CPU. */
enum { THREADS = 16, BLOCK = 1 << 16, STEP = 64 };

/* FNV-1a */
static uint64_t add(uint64_t sum, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ at[i]) * 0x100000001b3ull;
    return sum;
}

uint64_t pack_digest_add(uint64_t chain, uint64_t sum) { return add(chain, &sum, sizeof sum); }

/* Size and time; for the folder of a database, those of the file in it. */
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

uint64_t pack_digest_archives(const struct st_location *place)
{
    uint64_t sum = PACK_DIGEST_BEGIN;
    for (uint64_t i = 0; i < place->paths.count; i++)
        sum = add_file(add(sum, place->paths.items[i], strlen(place->paths.items[i]) + 1),
                       place->paths.items[i]);
    return sum;
}

/* Whether each sample is a file. */
static bool is_of_files(const struct stoker_dataset *data)
{
    static const char *const kinds[] = {"folder", "flat", "csv", "jsonl"};
    bool known = false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        known |= !strcmp(kinds[i], data->kind);
    return known && data->source->locate;
}

uint64_t pack_digest_sample(const struct stoker_dataset *data, uint64_t number)
{
    char name[PATH_MAX];
    struct st_extent extent = {0};
    st_dataset_name(data, number, name, sizeof name);
    const uint64_t sum = add(PACK_DIGEST_BEGIN, name, strlen(name) + 1);
    const bool file = is_of_files(data) && !data->source->locate(data->self, number, &extent, NULL) &&
                      !extent.objects;
    return file ? add_file(sum, extent.path) : sum;
}

/* ---- all that was packed ------------------------------------------------------------------------ */

/* The sums of some positions, computed in several threads. */
struct block {
    const struct stoker_dataset *data;
    struct stoker_order *order;
    uint64_t first, count;
    uint64_t *sums;
    atomic_ullong next;
};

static void take_steps(void *context)
{
    struct block *b = context;
    for (uint64_t at; (at = atomic_fetch_add(&b->next, STEP)) < b->count;)
        for (uint64_t i = at; i < at + STEP && i < b->count; i++) {
            const uint64_t position = b->first + i;
            b->sums[i] =
                pack_digest_sample(b->data, b->order ? stoker_order_at(b->order, position) : position);
        }
}

static int differs(const struct pack_options *opt, const char *file, const struct block *b,
                   uint64_t position, struct stoker_error *err)
{
    char name[300];
    st_dataset_name(b->data, b->order ? stoker_order_at(b->order, position) : position, name,
                    sizeof name);
    return st_fail(
        err, STOKER_EINVAL,
        "%.200s: %.200s has changed since this pack was started: names, sizes or times differ, first "
        "among the samples of %.64s (now from %.200s on): remove the folder to start over, or choose "
        "another one",
        opt->folder, opt->source, file, name);
}

int pack_digest_check(const struct st_pack *m, const struct pack_options *opt,
                      const struct stoker_dataset *data, struct stoker_order *order, uint64_t *chain,
                      struct stoker_error *err)
{
    struct block b = {.data = data, .order = order, .sums = st_calloc(BLOCK, sizeof *b.sums)};
    uint64_t position = 0;
    int rc = b.sums ? STOKER_OK : st_fail(err, STOKER_ENOMEM, "out of memory");
    for (uint64_t k = 0; k <= m->shard_count && !rc; k++) {
        const bool marked = k == m->shard_count;
        const uint64_t first = position;
        const uint64_t end = first + (marked ? m->mark.positions : m->shards[k].positions);
        if (end > st_dataset_count(data))
            rc = pack_was_changed(opt->folder, err);
        while (position < end && !rc) {
            b.first = position;
            b.count = end - position < BLOCK ? end - position : BLOCK;
            atomic_store(&b.next, 0);
            st_threads_run(THREADS, take_steps, &b);
            for (uint64_t i = 0; i < b.count; i++)
                *chain = pack_digest_add(*chain, b.sums[i]);
            position += b.count;
        }
        if (!rc && end > first && *chain != (marked ? m->mark.source : m->shards[k].source))
            rc = differs(opt, marked ? "the unfinished file" : m->shards[k].name, &b, first, err);
    }
    free(b.sums);
    return rc;
}
