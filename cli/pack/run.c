/* run.c - packs a dataset: workers prepare samples, one thread writes them in order
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/pack.h"

#include "base/clock.h"
#include "cli/cli.h"
#include "st_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct pack_writer *const pack_writers[] = {&pack_writer_tar,  &pack_writer_tfrecord,
#if ST_HAVE_LMDB
                                                  &pack_writer_lmdb,
#endif
#if ST_HAVE_HDF5
                                                  &pack_writer_hdf5,
#endif
                                                  &pack_writer_npy,  NULL};

/* How often a single output is checkpointed: rarely enough to be cheap, often enough to lose little.
 * Both depend only on the samples, so that every run writes the same file. */
enum { SAMPLES_A_KEEP = 1000, BYTES_A_KEEP = 64 << 20 };

struct pack {
    const struct pack_options *opt;
    struct pack_result *result;
    struct stoker_error *err;
    struct stoker_error bad; /* of the latest bad sample */
    struct st_location place; /* what SRC consists of */
    struct stoker_dataset *data;
    struct stoker_order *order;
    struct pack_lock lock;
    struct st_pack manifest;
    struct pack_sample *ring;
    struct st_work *work; /* one per worker */
    void *writer;         /* state of opt->writer */
    bool open;            /* an output is open */
    struct st_pack_shard shard;
    struct pack_progress progress;
    uint64_t chain; /* the sum over all samples so far: see digest.c */
    uint64_t total, kept_size; /* kept_size: size of the output at its last checkpoint */
};

static void make(void *context, uint32_t worker, uint64_t ticket)
{
    struct pack *pack = context;
    struct pack_sample *sample = &pack->ring[ticket % PACK_RING];
    sample->number = pack->order ? stoker_order_at(pack->order, ticket) : ticket;
    sample->source = pack_digest_sample(pack->data, sample->number);
    pack_sample_make(sample, pack->data, pack->opt, &pack->work[worker]);
}

static int begin_output(struct pack *pack)
{
    const struct pack_writer *writer = pack->opt->writer;
    const struct st_pack_mark *mark = &pack->manifest.mark;
    struct st_pack_shard *shard = &pack->shard;
    *shard = (struct st_pack_shard){
        .first = pack->manifest.positions, .positions = mark->positions, .samples = mark->samples};
    if (writer->sharded)
        snprintf(shard->name, sizeof shard->name, "shard-%06llu%s",
                 (unsigned long long)pack->manifest.shard_count, writer->extension);
    else
        snprintf(shard->name, sizeof shard->name, "data%s", writer->extension);
    pack->open = true;
    const struct pack_start start = {.name = shard->name,
                                     .classes = &pack->manifest.classes,
                                     .most = pack->total,
                                     .done = mark->samples};
    return writer->begin(pack->writer, pack->opt, &start, pack->err);
}

/* Checkpoints a single output, so that a killed run can be resumed from there. Done before a good
 * sample: the resumed run then has at least one sample, which determines the fields. */
static int keep_so_far(struct pack *pack)
{
    const struct pack_writer *writer = pack->opt->writer;
    const struct st_pack_mark mark = {pack->shard.positions, pack->shard.samples, pack->chain};
    const int rc = writer->keep(pack->writer, pack->err);
    pack->kept_size = writer->size(pack->writer);
    return rc ? rc : pack_manifest_mark(&pack->manifest, pack->opt, mark, pack->err);
}

static bool is_time_to_keep(const struct pack *pack)
{
    const struct pack_writer *writer = pack->opt->writer;
    return writer->keep && pack->shard.samples > pack->manifest.mark.samples &&
           (pack->shard.samples % SAMPLES_A_KEEP == 0 ||
            writer->size(pack->writer) >= pack->kept_size + BYTES_A_KEEP);
}

static int end_output(struct pack *pack, bool last)
{
    const struct pack_writer *writer = pack->opt->writer;
    int rc = STOKER_OK;
    if (!pack->shard.samples && !pack->manifest.samples)
        return st_fail(pack->err, STOKER_ECORRUPT, "no sample could be packed. The last error: %.600s",
                       pack->bad.message);
    if (pack->shard.samples)
        rc = writer->finish(pack->writer, &pack->shard, &pack->manifest.beside, pack->err);
    if (rc)
        return rc;
    writer->drop(pack->writer, false);
    pack->open = false;
    return pack_manifest_add(&pack->manifest, pack->opt, &pack->shard, last, pack->err);
}

static int take_bad(struct pack *pack, struct pack_sample *sample)
{
    char name[512];
    if (!pack->opt->skip_bad || sample->status == STOKER_ENOMEM) {
        st_dataset_name(pack->data, sample->number, name, sizeof name);
        *pack->err = sample->error;
        if (!mentions(sample->error.message, name))
            st_fail_in(pack->err, sample->status, name);
        return sample->status;
    }
    pack->bad = sample->error;
    pack->result->bad++;
    return pack_manifest_bad(&pack->manifest, pack->data, sample, pack->err);
}

static void count(struct pack_result *result, const struct pack_sample *sample)
{
    result->done++;
    result->bytes_in += sample->bytes_in;
    result->ready += sample->ready_out > 0;
    result->kept += sample->kept_as_it_was;
    result->ready_in += sample->ready_in;
    result->ready_out += sample->ready_out;
}

static int take_good(struct pack *pack, struct pack_sample *sample)
{
    int rc = is_time_to_keep(pack) ? keep_so_far(pack) : STOKER_OK;
    if (!rc)
        rc = pack->opt->writer->add(pack->writer, pack->opt, sample, pack->err);
    if (rc)
        return rc;
    pack->shard.samples++;
    count(pack->result, sample);
    return STOKER_OK;
}

static int take(void *context, uint64_t ticket)
{
    struct pack *pack = context;
    const struct pack_writer *writer = pack->opt->writer;
    struct pack_sample *sample = &pack->ring[ticket % PACK_RING];
    const bool last = ticket + 1 == pack->total;
    int rc = pack->open ? STOKER_OK : begin_output(pack);
    if (!rc)
        rc = sample->status ? take_bad(pack, sample) : take_good(pack, sample);
    if (rc)
        return rc;
    pack->shard.positions++;
    pack->chain = pack_digest_add(pack->chain, sample->source);
    pack->shard.source = pack->chain;
    const uint64_t size = writer->size(pack->writer);
    pack_progress_show(&pack->progress, ticket + 1, pack->manifest.bytes + size);
    if (last || (writer->sharded && size >= pack->opt->shard_size && pack->shard.samples))
        rc = end_output(pack, last);
    return rc;
}

/* Positions finished by earlier runs. */
static uint64_t pack_done(const struct pack *pack)
{
    return pack->manifest.positions + pack->manifest.mark.positions;
}

static int prepare(struct pack *pack)
{
    const struct pack_options *opt = pack->opt;
    int rc = pack_place_check(opt, pack->err);
    if (!rc)
        rc = pack_data_open(&pack->data, &pack->place, opt->source, opt->fields, pack->err);
    if (rc)
        return rc;
    if (pack->place.pack.settings && !pack->place.pack.complete)
        return st_fail(
            pack->err, STOKER_EINVAL,
            "%.500s: the pack is not complete: first run the same 'stoker pack' again that writes it",
            opt->source);
    if (opt->writer->beside && !opt->writer->beside(pack->data->kind))
        return st_fail(pack->err, STOKER_EUNSUPPORTED,
                       "the %s library of this machine cannot read and write at the same time: use "
                       "another --format",
                       opt->writer->name);
    pack->total = st_dataset_count(pack->data);
    if (!pack->total)
        return st_fail(pack->err, STOKER_EINVAL, "%.500s: contains no samples", opt->source);
    rc = pack_lock_take(&pack->lock, opt->folder, pack->err);
    if (!rc)
        rc = pack_manifest_open(&pack->manifest, opt, pack->data, pack_digest_archives(&pack->place),
                                pack->err);
    if (!rc && !pack->manifest.complete && pack_done(pack) >= pack->total)
        rc = pack_was_changed(opt->folder, pack->err);
    if (!rc && opt->shuffle) {
        const struct stoker_order_options order = {
            .size = sizeof order, .kind = STOKER_ORDER_SHUFFLE, .seed = opt->seed};
        rc = stoker_order_open(&pack->order, pack->total, &order, pack->err);
        if (!rc)
            rc = stoker_order_start(pack->order, 0, NULL, 0, pack->err);
    }
    if (!rc)
        rc = pack_digest_check(&pack->manifest, opt, pack->data, pack->order, &pack->chain, pack->err);
    if (rc)
        return rc;
    pack->ring = st_calloc(PACK_RING, sizeof *pack->ring);
    pack->work = st_calloc(opt->workers, sizeof *pack->work);
    pack->writer = st_calloc(1, opt->writer->self_size);
    if (!pack->ring || !pack->work || !pack->writer)
        return st_fail(pack->err, STOKER_ENOMEM, "out of memory");
    for (uint64_t i = 0; i < opt->workers; i++)
        pack->work[i] = pack_work();
    return STOKER_OK;
}

static void clean_up(struct pack *pack)
{
    if (pack->writer && pack->open)
        pack->opt->writer->drop(pack->writer, pack->manifest.mark.positions != 0);
    for (uint64_t i = 0; pack->ring && i < PACK_RING; i++)
        pack_sample_free(&pack->ring[i]);
    for (uint64_t i = 0; pack->work && i < pack->opt->workers; i++)
        pack_work_free(&pack->work[i]);
    free(pack->writer);
    free(pack->work);
    free(pack->ring);
    st_pack_free(&pack->manifest);
    stoker_order_close(pack->order);
    stoker_dataset_close(pack->data);
    st_location_free(&pack->place);
    pack_lock_drop(&pack->lock);
}

int pack_run(const struct pack_options *opt, struct pack_result *result, struct stoker_error *err)
{
    struct pack pack = {
        .opt = opt, .result = result, .err = err, .lock.fd = -1, .chain = PACK_DIGEST_BEGIN};
    const uint64_t start = st_now_ns();
    *result = (struct pack_result){0};
    int rc = prepare(&pack);
    if (!rc) {
        const struct st_pack_mark mark = pack.manifest.mark;
        result->resumed = pack_done(&pack);
        result->nothing_to_do = pack.manifest.complete;
        result->bad = pack.manifest.bad + mark.positions - mark.samples;
        const struct pack_line line = {.work = make,
                                       .done = take,
                                       .context = &pack,
                                       .first = result->resumed,
                                       .last = pack.total,
                                       .workers = (uint32_t)opt->workers};
        pack_progress_begin(&pack.progress, "packing", line.first, pack.total, opt->quiet);
        if (!pack.manifest.complete)
            rc = pack_line_run(&line, err);
        pack_progress_end(&pack.progress);
        result->bytes_out = pack.manifest.bytes;
        result->shards = pack.manifest.shard_count;
        result->samples = pack.manifest.samples;
    }
    result->seconds = (double)(st_now_ns() - start) / 1e9;
    clean_up(&pack);
    return rc;
}
