/* pipeline.c - plans a pipeline: determines every shape and type, or refuses it with an error
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/audio.h"

#include <stdlib.h>
#include <string.h>

static int plan_steps(struct st_steps *steps, struct st_shape *shape, struct st_finish_spec *finish,
                      struct stoker_error *err);

/* Inner ops run for only some samples, so they must not change the type or number of channels. */
static int plan_holder(struct st_step *step, struct st_shape *shape, struct st_finish_spec *finish,
                       struct stoker_error *err)
{
    struct st_shape after = *shape;
    struct st_finish_spec same = *finish;
    const int rc = plan_steps(&step->inner, &after, &same, err);
    if (rc)
        return rc;
    if (memcmp(&same, finish, sizeof same) || after.tensor != shape->tensor)
        return st_fail(
            err, STOKER_EINVAL,
            "pipeline: %s cannot contain to_tensor, normalize or a change of type: put it outside",
            step->op->name);
    if (after.channels != shape->channels)
        return st_fail(
            err, STOKER_EINVAL,
            "pipeline: the ops in %s would change the number of channels of only some images; use "
            "grayscale(num_output_channels=3)",
            step->op->name);
    if (after.width != shape->width || after.height != shape->height)
        shape->width = shape->height = ST_SIZE_DIFFERS;
    shape->erased = after.erased;
    return 0;
}

static int plan_steps(struct st_steps *steps, struct st_shape *shape, struct st_finish_spec *finish,
                      struct stoker_error *err)
{
    for (uint32_t k = 0; k < steps->count; k++) {
        struct st_step *step = &steps->step[k];
        int rc = 0;
        if (step->op->run_audio)
            rc = st_fail(err, STOKER_EINVAL,
                         "pipeline: %s works on sounds and cannot follow an op on images",
                         step->op->name);
        else if (step->op->plan)
            rc = step->op->plan(step->self, shape, finish, err);
        if (!rc && step->op->holds)
            rc = plan_holder(step, shape, finish, err);
        if (rc)
            return rc;
    }
    return 0;
}

static uint32_t count_erases(const struct st_steps *steps)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < steps->count; k++)
        count += steps->step[k].op->erase ? 1 : count_erases(&steps->step[k].inner);
    return count;
}

/* Whether the first op works on sounds. */
static bool on_sounds(const struct st_steps *steps)
{
    return steps->count && (steps->step[0].op->run_audio || on_sounds(&steps->step[0].inner));
}

int st_pipeline_open(struct stoker_pipeline **out, const char *text, struct stoker_error *err)
{
    *out = NULL;
    struct stoker_pipeline *pipe = st_calloc(1, sizeof *pipe);
    if (!pipe)
        return st_fail(err, STOKER_ENOMEM, "pipeline: out of memory");
    pipe->shape = (struct st_shape){.width = ST_SIZE_AS_READ, .height = ST_SIZE_AS_READ, .channels = 3};
    pipe->finish.dtype = STOKER_DTYPE_U8;
    atomic_init(&pipe->holders, 1);

    int rc = st_spec_parse(&pipe->steps, text, err);
    pipe->sounds = !rc && on_sounds(&pipe->steps);
    if (!rc)
        rc = pipe->sounds ? st_audio_plan(pipe, err)
                          : plan_steps(&pipe->steps, &pipe->shape, &pipe->finish, err);
    if (rc) {
        st_pipeline_drop(pipe);
        return rc;
    }
    pipe->erases = count_erases(&pipe->steps);
    *out = pipe;
    return 0;
}

struct stoker_pipeline *st_pipeline_hold(struct stoker_pipeline *pipe)
{
    atomic_fetch_add_explicit(&pipe->holders, 1, memory_order_relaxed);
    return pipe;
}

void st_pipeline_drop(struct stoker_pipeline *pipe)
{
    if (!pipe || atomic_fetch_sub_explicit(&pipe->holders, 1, memory_order_acq_rel) != 1)
        return;
    st_steps_free(&pipe->steps);
    free(pipe);
}
