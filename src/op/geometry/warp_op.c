/* warp_op.c - what the ops that warp images have in common: their parameters
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/warp_op.h"

#include "base/text.h"

int st_warp_plan(const struct st_warp_params *params, const struct st_shape *shape,
                 const struct st_finish_spec *finish, const char *op, struct stoker_error *err)
{
    const int rc = st_plan_bytes(shape, finish, op, err);
    if (rc < 0)
        return rc;
    if (params->filter != ST_FILTER_NEAREST && params->filter != ST_FILTER_BILINEAR &&
        params->filter != ST_FILTER_BICUBIC)
        return st_fail(err, STOKER_EINVAL,
                       "%s: interpolation=%s is for resizing; use nearest, bilinear or bicubic", op,
                       st_filter_words[params->filter]);
    if (params->fill.count > 1 && params->fill.count != (uint32_t)shape->channels)
        return st_fail(err, STOKER_EINVAL, "%s: fill has %u values, but the image has %d channel%s", op,
                       params->fill.count, shape->channels, st_s((uint64_t)shape->channels));
    if (params->centre.count && params->centre.count != 2)
        return st_fail(err, STOKER_EINVAL, "%s: center must be two numbers (x, y), not %u", op,
                       params->centre.count);
    return STOKER_OK;
}

const double *st_warp_centre(const struct st_warp_params *params)
{
    return params->centre.count ? params->centre.value : NULL;
}

int st_warp_run(const struct st_warp_params *params, struct st_warp *warp, struct st_image *image,
                const char *op, struct stoker_error *err)
{
    const struct st_list *fill = &params->fill;
    warp->filter = (enum st_filter)params->filter;
    for (uint32_t c = 0; c < sizeof warp->fill; c++)
        warp->fill[c] = fill->count == 0 ? 0 : (uint8_t)fill->value[c < fill->count ? c : 0];
    return st_image_warp(image, warp, op, err);
}

int st_param_angles(struct st_list *list, const char *op, const char *name, struct stoker_error *err)
{
    if (list->count == 1) {
        const double most = list->value[0];
        if (most < 0)
            return st_fail(err, STOKER_EINVAL, "%s: %s as a single number must not be negative", op,
                           name);
        *list = (struct st_list){.count = 2, .value = {-most, most}};
    }
    return st_param_range(list, op, name, 0, 0, err);
}
