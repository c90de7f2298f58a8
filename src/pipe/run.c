/* run.c - the pipeline on one sample: from its bytes to its row of the slot
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/clock.h"
#include "pipe/loader.h"

/* Whose chance it is. */
struct chance {
    uint64_t seed, epoch, key;
};

static struct st_rng rng_for(const struct chance *chance, const struct st_step *step)
{
    struct st_rng rng;
    st_rng_init(&rng, chance->seed, chance->epoch, chance->key, step->number);
    return rng;
}

static bool inner_chosen(const struct chance *chance, const struct st_step *step)
{
    struct st_rng rng = rng_for(chance, step);
    return step->op->chosen(step->self, &rng);
}

static int run_steps(const struct st_steps *steps, const struct chance *chance, struct st_image *image,
                     struct stoker_error *err)
{
    for (uint32_t k = 0; k < steps->count; k++) {
        const struct st_step *step = &steps->step[k];
        int rc = 0;
        if (step->op->holds) {
            if (inner_chosen(chance, step))
                rc = run_steps(&step->inner, chance, image, err);
        } else if (step->op->run) {
            struct st_rng rng = rng_for(chance, step);
            rc = step->op->run(step->self, &rng, image, err);
        }
        if (rc)
            return rc;
    }
    return 0;
}

/* What is done to the finished tensor (erasing). */
static void run_late(const struct st_steps *steps, const struct chance *chance,
                     const struct st_finish_spec *spec, const struct st_finish *finish,
                     const struct st_place *place)
{
    for (uint32_t k = 0; k < steps->count; k++) {
        const struct st_step *step = &steps->step[k];
        if (step->op->holds) {
            if (inner_chosen(chance, step))
                run_late(&step->inner, chance, spec, finish, place);
        } else if (step->op->late) {
            struct st_rng rng = rng_for(chance, step);
            step->op->late(step->self, &rng, spec, finish, place);
        }
    }
}

static int make(struct st_worker *worker, struct st_bytes bytes, const struct chance *chance,
                struct st_slot *slot, uint32_t row, struct stoker_error *err)
{
    const struct stoker_loader *loader = worker->loader;
    const struct stoker_pipeline *pipe = loader->pipe;
    struct st_image image;
    struct st_place place;

    int rc = st_image_open(&image, &worker->work, bytes, loader->opt.exif_rotate, err);
    if (!rc)
        rc = run_steps(&pipe->steps, chance, &image, err);
    if (rc)
        return rc;
    const int32_t width = st_image_width(&image), height = st_image_height(&image);
    if (loader->shape.width >= 0 && (width != loader->shape.width || height != loader->shape.height))
        return st_fail(err, STOKER_EINVAL, "the pipeline gave %d x %d where it planned %d x %d", width,
                       height, loader->shape.width, loader->shape.height);
    if (!st_slot_place(slot, row, width, height, &place))
        return st_fail(err, STOKER_ENOMEM, "no memory for an image of %d x %d", width, height);
    if ((rc = st_image_finish(&image, &loader->finish, &place, err)))
        return rc;
    run_late(&pipe->steps, chance, &pipe->finish, &loader->finish, &place);
    return 0;
}

int st_run_sample(struct st_worker *worker, struct st_bytes bytes, uint64_t key, struct st_slot *slot,
                  uint32_t row, struct stoker_error *err)
{
    const struct stoker_loader *loader = worker->loader;
    const struct chance chance = {loader->opt.order.seed, loader->epoch.number, key};
    const uint64_t began = st_now_ns();

    st_arena_reset(&worker->work.arena);
    worker->work.decode_ns = 0;
    const int rc = make(worker, bytes, &chance, slot, row, err);

    const uint64_t took = st_now_ns() - began, decode = worker->work.decode_ns;
    atomic_fetch_add_explicit(&worker->stage_ns[STOKER_STAGE_DECODE], decode, memory_order_relaxed);
    atomic_fetch_add_explicit(&worker->stage_ns[STOKER_STAGE_AUGMENT], took > decode ? took - decode : 0,
                              memory_order_relaxed);
    atomic_store_explicit(&worker->scratch, worker->work.arena.size + worker->bytes.capacity,
                          memory_order_relaxed);
    return rc;
}
