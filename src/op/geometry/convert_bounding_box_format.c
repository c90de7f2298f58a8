/* convert_bounding_box_format.c - says in which format boxes are delivered
 *
 * They get it at the end, so that the steps that follow need to know only one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

struct convert {
    int32_t format;
    bool relative;
};

static const struct st_param params[] = {
    {.name = "format",
     .type = ST_PARAM_WORD,
     .offset = offsetof(struct convert, format),
     .words = st_box_format_words,
     .required = true,
     .help = "left, top, right, bottom; left, top, width, height; or centre, width, height"},
    {.name = "relative",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct convert, relative),
     .help = "as fractions of the image's width and height"},
    {0},
};

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct convert *convert = self;
    (void)rng, (void)err;
    if (image->boxes) {
        image->boxes->format = (enum st_box_format)convert->format;
        image->boxes->relative = convert->relative;
    }
    return STOKER_OK;
}

const struct st_op st_op_convert_bounding_box_format = {
    .name = "convert_bounding_box_format",
    .help = "delivers boxes as xyxy, xywh or cxcywh",
    .self_size = sizeof(struct convert),
    .params = params,
    .run = run,
};
