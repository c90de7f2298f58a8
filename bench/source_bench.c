/* source_bench.c - reads a dataset in random order, as far as the source layer goes: bytes found,
 * fields split
 *
 *     source_bench URI [FIELDS [WORKERS [SECONDS]]]      prints samples a second
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/clock.h"
#include "base/threads.h"
#include "order/shuffle.h"
#include "source/reader/reader.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS_MAX = 64 };

struct race {
    struct stoker_dataset *data;
    struct st_reader *reader;
    struct st_shuffle shuffle;
    atomic_ullong next, bytes;
    atomic_bool over;
    atomic_int failed;
    uint64_t until;
};

static uint64_t plan(void *context, uint64_t ticket)
{
    const struct race *race = context;
    return st_shuffle_at(&race->shuffle, ticket % race->shuffle.network.count);
}

/* What a training loop would get: each piece copied to its place. */
static void copy_out(const struct st_field *fields, const struct st_piece *pieces, uint32_t count,
                     struct st_buffer *batch, atomic_ullong *bytes)
{
    for (uint32_t k = 0; k < count; k++) {
        if (fields[k].kind == ST_FIELD_INT || fields[k].kind == ST_FIELD_FLOAT)
            continue;
        if (st_buffer_reserve(batch, pieces[k].bytes.size) && pieces[k].bytes.size)
            memcpy(batch->data, pieces[k].bytes.data, pieces[k].bytes.size);
        atomic_fetch_add(bytes, pieces[k].bytes.size);
    }
}

static void run(void *context)
{
    struct race *race = context;
    const struct st_source *source = race->data->source;
    struct st_buffer scratch = {0}, batch = {0};
    struct st_piece pieces[ST_FIELDS_MAX];
    struct stoker_error err;
    uint32_t count;
    const struct st_field *fields = source->fields(race->data->self, &count);
    while (!atomic_load(&race->over) && !atomic_load(&race->failed)) {
        const uint64_t ticket = atomic_fetch_add(&race->next, 1), sample = plan(race, ticket);
        struct st_bytes raw;
        int rc = st_reader_get(race->reader, ticket, &raw, &err);
        if (!rc) {
            rc = source->split(race->data->self, sample, raw, &scratch, pieces, &err);
            if (!rc)
                copy_out(fields, pieces, count, &batch, &race->bytes);
            st_reader_done(race->reader, ticket);
        }
        if (rc && !atomic_exchange(&race->failed, 1))
            fprintf(stderr, "%s\n", err.message);
        if (ticket % 64 == 0 && st_now_ns() > race->until)
            atomic_store(&race->over, true);
    }
    st_buffer_free(&scratch);
    st_buffer_free(&batch);
}

int main(int argc, char **argv)
{
    struct race race = {0};
    struct stoker_error err;
    const uint32_t workers = argc > 3 ? (uint32_t)atoi(argv[3]) : 2;
    struct stoker_dataset_options opt = {.size = sizeof opt,
                                         .fields = argc > 2 && argv[2][0] ? argv[2] : NULL};
    const uint64_t opening = st_now_ns();
    if (argc < 2 || workers < 1 || workers > WORKERS_MAX ||
        st_dataset_open(&race.data, argv[1], &opt, &err) ||
        st_reader_open(&race.reader, race.data, ST_READER_AUTO, workers * 2 + st_reader_depth(race.data),
                       &err)) {
        fprintf(stderr, "%s\n",
                argc < 2 ? "usage: source_bench URI [FIELDS [WORKERS [SECONDS]]]" : err.message);
        return 1;
    }
    const uint64_t began = st_now_ns();
    race.until = began + (uint64_t)((argc > 4 ? atof(argv[4]) : 3) * 1e9);
    st_shuffle_init(&race.shuffle, st_dataset_count(race.data), 1, 0);
    st_reader_start(race.reader, UINT64_MAX, plan, &race, &err);
    st_threads_run(workers, run, &race);
    const double seconds = (double)(st_now_ns() - began) / 1e9;
    printf("%.0f samples/s, %.1f MB/s, opened in %.1f ms\n", (double)atomic_load(&race.next) / seconds,
           (double)atomic_load(&race.bytes) / seconds / 1e6, (double)(began - opening) / 1e6);
    st_reader_close(race.reader);
    st_dataset_drop(race.data);
    return atomic_load(&race.failed);
}
