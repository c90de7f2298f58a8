/* run.c - runs the pipeline on one sample: from its bytes to its row of the slot
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/run.h"

#include "base/clock.h"
#include "codec/jpeg_markers.h"
#include "pipe/alone.h"
#include "pipe/gate.h"
#include "pipe/jpeg_files.h"
#include "pipe/marks_kept.h"
#include "pipe/stage.h"
#include "pipe/steps.h"
#include "pipe/targets.h"
#include "source/known/known.h"

#include <stddef.h>
#include <string.h>

enum { MARKED_LEAST = 8192 }; /* bytes: smaller files are decoded at once */

/* st_work.reserve: memory for the image, and for its row if that is not allocated yet. */
static int reserve(struct st_work *work, const struct st_image *image, uint64_t bytes,
                   struct stoker_error *err)
{
    struct st_worker *worker =
        (struct st_worker *)(void *)((char *)work - offsetof(struct st_worker, work));
    const struct st_finish *finish = &worker->loader->finish;
    const struct st_slot *slot = worker->target.slot;
    uint64_t row = 0;
    if (slot->shape.width < 0)
        row = st_scratch_for((uint64_t)finish->channels * finish->element,
                             (uint64_t)st_image_width(image), (uint64_t)st_image_height(image));
    if (slot->item) /* memory kept from an earlier batch is already counted */
        row -= row < slot->item[worker->target.row].capacity ? row
                                                             : slot->item[worker->target.row].capacity;
    return st_gate_decode(worker, slot, worker->target.row,
                          bytes < UINT64_MAX - row ? bytes + row : UINT64_MAX, err);
}

/* st_work.reserve: fails an op that needs pixels, instead of decoding the file for it. */
static int refuse_decode(struct st_work *work, const struct st_image *image, uint64_t bytes,
                         struct stoker_error *err)
{
    (void)work, (void)image, (void)bytes;
    return st_fail(err, STOKER_EUNSUPPORTED, "an op of the pipeline needs the pixels");
}

/* Leaves everything to the device. */
static int stage(struct st_worker *worker, struct st_image *image, struct st_erases erases,
                 struct st_slot *slot, uint32_t row, struct stoker_error *err)
{
    bool resized;
    const int rc = st_stage_row(slot, row, image, erases, &resized, err);
    if (!rc)
        atomic_fetch_add_explicit(resized ? &worker->resized_rows : &worker->raw_rows, 1,
                                  memory_order_relaxed);
    return rc;
}

/* Does everything here. */
static int finish(struct st_worker *worker, struct st_image *image, struct st_erases erases,
                  struct st_slot *slot, uint32_t row, struct stoker_error *err)
{
    const struct stoker_loader *loader = worker->loader;
    const int32_t width = st_image_width(image), height = st_image_height(image);
    struct st_place place;
    const uint64_t each = (uint64_t)loader->finish.channels * loader->finish.element;
    const uint64_t bytes = (uint64_t)width * (uint64_t)height * each; /* 31 + 31 bits, and a few */
    const int rc = slot->item ? st_gate_row(worker, bytes, err) : 0;
    if (rc)
        return rc;
    if (!st_slot_place(slot, row, width, height, &place))
        return st_fail(err, STOKER_ENOMEM, "no memory for an image of %d x %d", width, height);
    return st_steps_finish(image, &loader->finish, erases, &place, err);
}

/* Makes the image's random draws and checks the resulting size against the plan. */
static int run_to_size(const struct stoker_loader *loader, const struct st_rng_key *rng_key,
                       struct st_image *image, struct stoker_error *err)
{
    const int rc = st_steps_run(&loader->pipe->steps, rng_key, image, err);
    if (rc)
        return rc;
    const int32_t width = st_image_width(image), height = st_image_height(image);
    if (loader->shape.width >= 0 && (width != loader->shape.width || height != loader->shape.height))
        return st_fail(err, STOKER_EINVAL, "the pipeline gave %d x %d instead of the planned %d x %d",
                       width, height, loader->shape.width, loader->shape.height);
    return 0;
}

/* Label and columns of a sample with fields; *image is its image, if it has one. Must be the first thing
 * done with a sample, because it resets the arena. */
static int split(struct st_worker *worker, struct st_bytes bytes, uint64_t sample,
                 const struct st_rng_key *rng_key, struct st_slot *slot, uint32_t row,
                 struct st_piece *image, struct stoker_error *err)
{
    const struct stoker_loader *loader = worker->loader;
    const struct st_columns_plan *plan = &loader->columns;
    const struct stoker_dataset *data = loader->data;
    struct st_piece pieces[ST_FIELDS_MAX];
    memset(pieces, 0, plan->fields * sizeof *pieces);
    int rc = data->source->split(data->self, sample, bytes, &worker->pieces, pieces, err);
    if (!rc)
        rc = st_pictures_decode(&worker->work, plan, loader->opt.exif_rotate, pieces, err);
    if (!rc && plan->targets)
        rc = st_targets_make(&(struct st_targets){.work = &worker->work,
                                                  .plan = plan,
                                                  .pipe = loader->pipe,
                                                  .finish = &loader->finish,
                                                  .rng_key = rng_key,
                                                  .exif_rotate = loader->opt.exif_rotate},
                             pieces, err);
    if (!rc)
        rc = st_columns_put(slot->columns, row, pieces, err);
    st_arena_reset(&worker->work.arena);
    if (plan->image >= 0)
        *image = pieces[plan->image];
    slot->labels[row] = plan->label >= 0 ? pieces[plan->label].whole : st_dataset_label(data, sample);
    return rc;
}

static int open_image(struct st_worker *worker, const struct st_piece *piece, struct st_image *image,
                      struct stoker_error *err)
{
    if (!piece->ndim)
        return st_image_open(image, &worker->work, piece->bytes, worker->loader->opt.exif_rotate, err);
    if (piece->dtype != STOKER_DTYPE_U8 || piece->ndim < 2 || piece->ndim > 3)
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "an array used as an image must be uint8 [H, W] or [H, W, C]");
    const int rc = st_gate_decode(worker, worker->target.slot, worker->target.row,
                                  3 * (uint64_t)piece->bytes.size, err);
    if (rc)
        return rc;
    return st_image_raw(image, &worker->work, piece->bytes, piece->shape[1], piece->shape[0],
                        piece->ndim == 3 ? piece->shape[2] : 1, piece->followed, err);
}

static int make_image(struct st_worker *worker, const struct st_piece *piece, uint64_t sample,
                      const struct st_rng_key *rng_key, struct st_slot *slot, uint32_t row,
                      struct stoker_error *err)
{
    const struct stoker_loader *loader = worker->loader;
    struct st_image image;
    struct st_erases erases;
    bool clean = false;
    int rc = open_image(worker, piece, &image, err);
    if (!rc)
        rc = run_to_size(loader, rng_key, &image, err);
    if (!rc)
        rc = st_steps_erases(loader->pipe, &loader->finish, rng_key, &image, &erases, err);
    if (rc)
        return rc;
    if (!loader->columns.fields)
        slot->labels[row] = st_dataset_label(loader->data, sample);
    if (!slot->shape.raw)
        return finish(worker, &image, erases, slot, row, err);
    if (image.encoded && st_jpeg_files_want_check(loader, sample, piece->bytes))
        worker->work.clean = &clean;
    rc = stage(worker, &image, erases, slot, row, err);
    worker->work.clean = NULL;
    if (!rc && clean)
        st_known_learn(loader->jpeg.known, sample, st_known_sum(piece->bytes));
    return rc;
}

/* With the marks of earlier epochs, if it is a JPEG. */
static int make_marked(struct st_worker *worker, const struct st_piece *piece, uint64_t sample,
                       const struct st_rng_key *rng_key, struct st_slot *slot, uint32_t row,
                       struct stoker_error *err)
{
    struct st_marks_kept *kept = worker->loader->marks;
    struct st_jpeg_marks marks;
    if (!kept || piece->ndim || piece->bytes.size < MARKED_LEAST ||
        !st_jpeg_probe(piece->bytes.data, piece->bytes.size))
        return make_image(worker, piece, sample, rng_key, slot, row, err);
    st_marks_kept_get(kept, sample, piece->bytes, &marks);
    const uint32_t before = marks.count;
    worker->work.marks = &marks;
    const int rc = make_image(worker, piece, sample, rng_key, slot, row, err);
    worker->work.marks = NULL;
    if (marks.count > before)
        st_marks_kept_put(kept, sample, piece->bytes, &marks);
    return rc;
}

static int make(struct st_worker *worker, struct st_bytes bytes, uint64_t sample,
                const struct st_rng_key *rng_key, struct st_slot *slot, uint32_t row,
                struct stoker_error *err)
{
    const struct stoker_loader *loader = worker->loader;
    struct st_piece piece = {.bytes = bytes};
    const int rc =
        loader->columns.fields ? split(worker, bytes, sample, rng_key, slot, row, &piece, err) : 0;
    if (rc || slot->shape.imageless)
        return rc;
    if (!loader->pipe->sounds)
        return make_marked(worker, &piece, sample, rng_key, slot, row, err);
    if (!loader->columns.fields)
        slot->labels[row] = st_dataset_label(loader->data, sample);
    return st_run_sound(worker, piece.bytes, rng_key->key, slot, row, err);
}

static struct st_rng_key rng_key_of(const struct stoker_loader *loader, const struct st_slot *slot,
                               uint32_t row, uint64_t key)
{
    return (struct st_rng_key){
        .seed = slot->seeds[row],
        .epoch = loader->epoch.number,
        .key = key,
        .view = slot->views[row],
        .crops = slot->crops ? &slot->crops[(uint64_t)row * slot->shape.crops] : NULL,
    };
}

/* A sample of this row is about to be made. What the row takes is part of what the worker promises for
 * it. */
static void begin(struct st_worker *worker, struct st_slot *slot, uint32_t row)
{
    if (slot->item)
        slot->item[row].lender = &worker->memory;
    st_arena_reset(&worker->work.arena);
    worker->work.decode_ns = worker->waited_ns = worker->memory.refused = 0;
    worker->again = worker->wants_alone = false;
    worker->work.reserve = reserve;
    worker->target.slot = slot;
    worker->target.row = row;
    worker->stopped = worker->too_large = worker->over_memory = false;
}

static void end(struct st_worker *worker, struct st_slot *slot, uint32_t row)
{
    if (slot->item)
        slot->item[row].lender = NULL;
    st_gate_leave(worker);
}

bool st_run_find(struct st_worker *worker, struct st_bytes bytes, struct st_slot *slot, uint32_t row,
                 struct st_bytes *file)
{
    const uint64_t sample = slot->samples[row];
    const struct st_rng_key rng_key = rng_key_of(worker->loader, slot, row, sample);
    struct st_piece piece = {.bytes = bytes};
    begin(worker, slot, row);
    const bool whole =
        !worker->loader->columns.fields ||
        (!slot->shape.imageless && !split(worker, bytes, sample, &rng_key, slot, row, &piece, NULL) &&
         !piece.ndim);
    end(worker, slot, row);
    if (!whole)
        return false;
    const uintptr_t at = (uintptr_t)piece.bytes.data, scratch = (uintptr_t)worker->pieces.data;
    *file = piece.bytes;
    return at < scratch ||
           at >= scratch + worker->pieces.capacity; /* that buffer is reused for the next sample */
}

int st_run_lazily(struct st_worker *worker, struct st_bytes bytes, const struct st_slot *slot,
                  uint32_t row, struct st_image *image, struct stoker_error *err)
{
    const struct st_rng_key rng_key = rng_key_of(worker->loader, slot, row, slot->samples[row]);
    st_arena_reset(&worker->work.arena);
    worker->work.reserve = refuse_decode;
    const int rc = st_image_open(image, &worker->work, bytes, worker->loader->opt.exif_rotate, err);
    return rc ? rc : run_to_size(worker->loader, &rng_key, image, err);
}

bool st_run_decoded(struct st_worker *worker, const struct st_image *image, uint64_t key,
                    struct st_slot *slot, uint32_t row, const struct st_jpeg_hw_image *decoded)
{
    const struct st_rng_key rng_key = rng_key_of(worker->loader, slot, row, key);
    struct st_erases erases;
    st_arena_reset(&worker->work.arena);
    if (!worker->loader->columns.fields)
        slot->labels[row] = st_dataset_label(worker->loader->data, key);
    /* If the batch is too large, the CPU's attempt at this row says so. */
    slot->made[row] = !st_steps_erases(worker->loader->pipe, &worker->loader->finish, &rng_key, image,
                                       &erases, NULL) &&
                      st_stage_decoded(slot, row, image, erases, decoded) &&
                      !st_gate_batch(worker, slot, row, NULL);
    return slot->made[row];
}

int st_run_sample(struct st_worker *worker, struct st_bytes bytes, uint64_t sample, uint64_t key,
                  struct st_slot *slot, uint32_t row, struct stoker_error *err)
{
    const struct st_rng_key rng_key = rng_key_of(worker->loader, slot, row, key);
    const uint64_t began = st_now_ns();

    begin(worker, slot, row);
    st_gate_charge(worker, bytes);
    int rc = make(worker, bytes, sample, &rng_key, slot, row, err);
    rc = rc ? st_gate_refused(worker, rc, err) : st_gate_batch(worker, slot, row, err);
    st_arena_reset(&worker->work.arena);
    slot->made[row] = !rc;
    if (atomic_load(&worker->memory.bytes) > worker->work.arena.keep)
        st_alone_shed(worker);
    end(worker, slot, row);

    const uint64_t took = st_now_ns() - began - worker->waited_ns, decode = worker->work.decode_ns;
    st_worker_count(&worker->stage_ns[STOKER_STAGE_DECODE], decode);
    st_worker_count(&worker->stage_ns[STOKER_STAGE_AUGMENT], took > decode ? took - decode : 0);
    return rc;
}
