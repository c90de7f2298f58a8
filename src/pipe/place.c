/* place.c - decides where a loader's images are finished and what its slots look like
 *
 * Without a device, workers write finished images into the slot. With a device, workers decode and the
 * device does the rest (raw rows), unless the user or the device requires finished rows, which are then
 * only copied.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/text.h"
#include "pipe/opening.h"
#include "pipe/pool.h"
#include "pipe/stage.h"

enum {
    ROW_BYTES = 512 << 10,    /* heap of a raw row: enough for the regions of most photographs */
    FRONT_BYTES = 1536 << 10, /* of the device, per row, for an image that is made before */
    FRONTS_MOST = 384 << 20,
};

/* The maximum size of the values of erased boxes; UINT64_MAX on overflow. */
static uint64_t erased_values(const struct st_steps *steps, const struct st_erase_into *into)
{
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < steps->count; k++) {
        const struct st_step *step = &steps->step[k];
        const uint64_t more =
            step->op->erase ? step->op->erase_most(step->self, into) : erased_values(&step->inner, into);
        if (!st_add(bytes, more, &bytes))
            return UINT64_MAX;
    }
    return bytes;
}

static bool has_pending(const struct st_steps *steps)
{
    for (uint32_t k = 0; k < steps->count; k++)
        if (steps->step[k].op->pending || has_pending(&steps->step[k].inner))
            return true;
    return false;
}

/* Whether a crop, resize or border comes after ops on values, or after warps: then images may be made of
 * others that are made before. */
static bool has_fronts(const struct st_steps *steps, bool *pending)
{
    for (uint32_t k = 0; k < steps->count; k++) {
        if ((*pending && steps->step[k].op->moves) || has_fronts(&steps->step[k].inner, pending))
            return true;
        *pending = *pending || steps->step[k].op->pending;
    }
    return false;
}

static int too_large(const struct stoker_loader *loader, struct stoker_error *err)
{
    return st_fail(
        err, STOKER_ELIMIT,
        "two batches of %u image%s of %d x %d do not fit into max_memory (%.1f MB): take smaller "
        "batches or raise it",
        loader->opt.batch_size, st_s(loader->opt.batch_size), loader->shape.width, loader->shape.height,
        (double)loader->opt.max_memory / 1e6);
}

static bool fits(const struct stoker_loader *loader, uint64_t each)
{
    uint64_t bytes;
    return st_mul(each, loader->opt.batch_size, &bytes) && bytes <= loader->opt.max_memory / 2;
}

/* Raw rows: as much heap as regions usually need, as far as all slots fit into the limits. */
static int plan_raw(struct stoker_loader *loader, struct stoker_error *err)
{
    struct st_slot_shape *shape = &loader->shape;
    const struct st_erase_into into = {&loader->pipe->finish, &loader->finish, shape->width,
                                       shape->height, NULL};
    const uint64_t half = loader->opt.max_memory / 2; /* the rest is not for batches */
    const uint64_t limit = loader->opt.pinned_limit < half ? loader->opt.pinned_limit : half;
    const uint64_t row = limit / st_pool_wanted(loader) / shape->rows;
    const uint64_t values = erased_values(&loader->pipe->steps, &into);
    if (!st_stage_reserve(shape, loader->pipe->erases, values, &shape->reserve) ||
        !fits(loader, shape->reserve + sizeof(struct st_job) + sizeof(int64_t)))
        return too_large(loader, err);
    const bool fronts = has_fronts(&loader->pipe->steps, &(bool){false});
    const uint64_t usual = fronts ? 2 * ROW_BYTES : ROW_BYTES; /* whole images */
    uint64_t heap = 2 * shape->reserve > usual ? 2 * shape->reserve : usual;
    const uint64_t fixed = sizeof(struct st_job) + sizeof(int64_t) + ST_CACHE_LINE;
    if (row < heap + fixed)
        heap = row > fixed ? row - fixed : 0;
    shape->share = heap > shape->reserve ? (heap - shape->reserve) * shape->rows : 0;
    const uint64_t made = (uint64_t)shape->rows * FRONT_BYTES;
    shape->front_bytes = !fronts ? 0 : made < FRONTS_MOST ? made : FRONTS_MOST;
    shape->raw = true;
    return 0;
}

static int open_device(struct stoker_loader *loader, const struct st_devices *devices,
                       struct stoker_error *err)
{
    struct st_slot_shape *shape = &loader->shape;
    const struct st_device_want want = {.ordinal = devices->ordinal,
                                        .rows = shape->rows,
                                        .width = shape->width,
                                        .height = shape->height,
                                        .channels = shape->channels,
                                        .finish = &loader->finish,
                                        .raw = shape->raw,
                                        .plain = !has_pending(&loader->pipe->steps),
                                        .made_bytes = shape->raw ? shape->front_bytes : 0,
                                        .host_bytes = st_slot_host_bytes(shape)};
    const int rc = devices->kind->open(&loader->device, &want, err);
    shape->device = rc ? NULL : loader->device;
    return rc;
}

static int place_on_device(struct stoker_loader *loader, const struct st_devices *devices,
                           struct stoker_error *err)
{
    const enum stoker_place place = loader->opt.augment_on;
    struct st_slot_shape *shape = &loader->shape;
    if (shape->width < 0 && shape->sound)
        return st_fail(
            err, STOKER_EINVAL,
            "this pipeline's sounds vary in size, but a batch on a device (%s) is one tensor: use a "
            "fixed length (RandomCrop or PadTrim, audio_crop) and fixed channels (Mono or Channels, "
            "audio_mono or audio_channels), or omit device",
            devices->kind->name);
    if (shape->width < 0)
        return st_fail(
            err, STOKER_EINVAL,
            "this pipeline's images vary in size, but a batch on a device (%s) is one tensor: end "
            "it with a fixed size (resize(size=[h,w]), center_crop, random_resized_crop), or omit "
            "device",
            devices->kind->name);
    if (place == STOKER_PLACE_CPU || shape->sound)
        return open_device(loader, devices, err);
    int rc = plan_raw(loader, err);
    if (!rc)
        rc = open_device(loader, devices, err);
    if (rc != STOKER_EUNSUPPORTED || place == STOKER_PLACE_DEVICE)
        return rc;
    shape->raw = false;
    return open_device(loader, devices, err);
}

static int place_on_cpu(struct stoker_loader *loader, const struct st_devices *devices,
                        struct stoker_error *err)
{
    if (loader->opt.augment_on == STOKER_PLACE_DEVICE)
        return st_fail(err, STOKER_EINVAL, "augment_on requests the device, but no device was given");
    if (!loader->opt.pin_memory)
        return 0;
    if (loader->shape.width < 0)
        st_fail(&loader->pinned_note, STOKER_EUNSUPPORTED,
                "batches of images that vary in size are not pinned");
    else if (!devices || !devices->pinned)
        st_fail(&loader->pinned_note, STOKER_EUNSUPPORTED,
                "this build has no support for pinned memory");
    else
        loader->shape.pinned = devices->pinned;
    return 0;
}

/* A side of an array's images, and what the pipeline adds to it; ST_SIZE_DIFFERS if unknown. */
static int32_t side_read(int64_t side, int32_t more)
{
    const bool fits = side >= 1 && side <= INT32_MAX && side + more >= 1 && side + more <= INT32_MAX;
    return fits ? (int32_t)(side + more) : ST_SIZE_DIFFERS;
}

/* The pipeline's shape; where that follows from the size that images were read in, by the size of the
 * dataset if it is an array, whose rows all have one. */
static struct st_shape planned_shape(const struct stoker_loader *loader)
{
    struct st_shape shape = loader->pipe->shape;
    if (!loader->columns.fields || loader->columns.image < 0)
        return shape;
    const struct st_field *image = &loader->columns.field[loader->columns.image];
    if (image->kind != ST_FIELD_IMAGE || shape.width != ST_SIZE_AS_READ ||
        shape.height != ST_SIZE_AS_READ || image->ndim < 2)
        return shape;
    shape.height = side_read(image->shape[0], shape.more_height);
    shape.width = side_read(image->shape[1], shape.more_width);
    return shape;
}

int st_loader_place(struct stoker_loader *loader, const struct st_devices *devices,
                    struct stoker_error *err)
{
    const struct st_shape planned = planned_shape(loader), *shape = &planned;
    const struct st_columns_plan *columns = loader->columns.fields ? &loader->columns : NULL;
    const bool imageless = columns && columns->image < 0;
    const bool ragged = shape->width < 0 || shape->height < 0 || imageless;
    uint64_t pixels;

    if (imageless && (loader->pipe->steps.count || (devices && devices->kind)))
        return st_fail(
            err, STOKER_EINVAL,
            "the samples of this dataset have no image for transforms or a device to work on: omit "
            "transform and device, or choose fields with an image");
    loader->shape = (struct st_slot_shape){.rows = loader->opt.batch_size,
                                           .budget = &loader->gate.budget,
                                           .width = ragged ? -1 : shape->width,
                                           .height = ragged ? -1 : shape->height,
                                           .channels = shape->channels,
                                           .finish = &loader->finish,
                                           .ragged = loader->opt.ragged,
                                           .columns = columns,
                                           .sound = loader->pipe->sounds ? &loader->pipe->sound : NULL,
                                           .crops = loader->pipe->crops,
                                           .imageless = imageless};
    if (!ragged && (!ST_PRODUCT(&pixels, (uint64_t)shape->width, (uint64_t)shape->height,
                                (uint64_t)shape->channels, loader->finish.element) ||
                    !fits(loader, pixels)))
        return too_large(loader, err);
    return devices && devices->kind ? place_on_device(loader, devices, err)
                                    : place_on_cpu(loader, devices, err);
}
