/* steps.c - runs the steps of a pipeline on one image; used by loaders and by single calls
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/steps.h"

static struct st_rng rng_for(const struct st_rng_key *rng_key, const struct st_step *step)
{
    struct st_rng rng;
    st_rng_init(&rng, rng_key->seed, rng_key->epoch, rng_key->key,
                step->number + ST_HELD_MAX * rng_key->repeat);
    return rng;
}

uint32_t st_steps_choose(const struct st_step *step, const struct st_rng_key *rng_key,
                         uint8_t order[ST_HELD_MAX])
{
    if (step->op->by_view) {
        order[0] = (uint8_t)rng_key->view;
        return 1;
    }
    struct st_rng rng = rng_for(rng_key, step);
    return step->op->choose(step->self, &rng, step->inner.count, order);
}

static int run_step(const struct st_step *step, const struct st_rng_key *rng_key, struct st_image *image,
                    struct stoker_error *err);

static int run_held(const struct st_step *step, const struct st_rng_key *rng_key, struct st_image *image,
                    struct stoker_error *err)
{
    uint8_t order[ST_HELD_MAX];
    const uint32_t count = st_steps_choose(step, rng_key, order);
    int rc = 0;
    for (uint32_t k = 0; !rc && k < count; k++)
        rc = run_step(&step->inner.step[order[k]], rng_key, image, err);
    return rc;
}

struct repeated {
    struct st_held_ops held;
    const struct st_steps *inner;
    struct st_rng_key rng_key;
};

static int run_repeated(const struct st_held_ops *held, uint32_t which, uint32_t repeat,
                        struct st_image *image, struct stoker_error *err)
{
    const struct repeated *of = (const struct repeated *)held;
    struct st_rng_key rng_key = of->rng_key;
    rng_key.repeat = 1 + repeat;
    return run_step(&of->inner->step[which], &rng_key, image, err);
}

static int run_mixed(const struct st_step *step, const struct st_rng_key *rng_key,
                     struct st_image *image, struct stoker_error *err)
{
    const struct repeated repeated = {{step->inner.count, run_repeated}, &step->inner, *rng_key};
    struct st_rng rng = rng_for(rng_key, step);
    return step->op->mix(step->self, &rng, &repeated.held, image, err);
}

static int run_step(const struct st_step *step, const struct st_rng_key *rng_key, struct st_image *image,
                    struct stoker_error *err)
{
    if (step->op->holds == ST_HOLDS_MIXED)
        return run_mixed(step, rng_key, image, err);
    if (step->op->holds)
        return run_held(step, rng_key, image, err);
    if (!step->op->run)
        return 0;
    struct st_rng rng = rng_for(rng_key, step);
    image->chosen = step->op->guide && rng_key->crops ? &rng_key->crops[step->crop] : NULL;
    const int rc = step->op->run(step->self, &rng, image, err);
    return st_steps_at_fault(rc) ? st_fail_in(err, rc, step->op->name) : rc;
}

int st_steps_run(const struct st_steps *steps, const struct st_rng_key *rng_key, struct st_image *image,
                 struct stoker_error *err)
{
    int rc = 0;
    for (uint32_t k = 0; !rc && k < steps->count; k++)
        rc = run_step(&steps->step[k], rng_key, image, err);
    return rc;
}

/* Appends the boxes of the finished image to be erased to `list`, in order. */
static int draw_erases(const struct st_step *step, const struct st_rng_key *rng_key,
                       const struct st_erase_into *into, struct st_erase *list, uint32_t *count,
                       struct stoker_error *err)
{
    int rc = 0;
    if (step->op->holds == ST_HOLDS_MIXED)
        return rc; /* contains none */
    if (step->op->holds) {
        uint8_t order[ST_HELD_MAX];
        const uint32_t chosen = st_steps_choose(step, rng_key, order);
        for (uint32_t k = 0; !rc && k < chosen; k++)
            rc = draw_erases(&step->inner.step[order[k]], rng_key, into, list, count, err);
    } else if (step->op->erase) {
        struct st_rng rng = rng_for(rng_key, step);
        rc = step->op->erase(step->self, &rng, into, &list[*count], err);
        *count += !rc && list[*count].box.width > 0;
    }
    return rc;
}

int st_steps_erases(const struct stoker_pipeline *pipe, const struct st_finish *finish,
                    const struct st_rng_key *rng_key, const struct st_image *image,
                    struct st_erases *out, struct stoker_error *err)
{
    struct st_arena *arena = &image->work->arena;
    const struct st_erase_into into = {&pipe->finish, finish, st_image_width(image),
                                       st_image_height(image), arena};
    *out = (struct st_erases){0};
    if (!pipe->shape.erased)
        return 0;
    struct st_erase *list = st_arena_take(arena, pipe->erases * sizeof *list);
    if (!list)
        return st_fail(err, STOKER_ENOMEM, "no memory for %u boxes", pipe->erases);
    out->list = list;
    int rc = 0;
    for (uint32_t k = 0; !rc && k < pipe->steps.count; k++)
        rc = draw_erases(&pipe->steps.step[k], rng_key, &into, list, &out->count, err);
    return rc;
}

int st_steps_finish(struct st_image *image, const struct st_finish *finish, struct st_erases erases,
                    const struct st_place *place, struct stoker_error *err)
{
    const int rc = st_image_finish(image, finish, place, err);
    for (uint32_t k = 0; !rc && k < erases.count; k++)
        st_erase_write(&erases.list[k], finish, place);
    return rc;
}
