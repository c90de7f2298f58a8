/* image_make.h - what recording a lazy image's work needs of making its pixels
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_IMAGE_MAKE_H
#define ST_OP_IMAGE_MAKE_H

#include "op/image.h"

/* The size of the encoded image after its turn. */
void st_image_turned_size(const struct st_image *image, uint32_t *width, uint32_t *height);
int st_image_no_memory(int32_t width, int32_t height, struct stoker_error *err);

/* Does everything except mirroring and flipping. */
int st_image_make(struct st_image *image, struct stoker_error *err);

/* Leaves `region` of the image before its pending ops, mirroring and flipping. */
int st_image_cut(struct st_image *image, struct st_region region, struct stoker_error *err);
/* Gives the image without edges these, of which `window` is left. The lists are copied. */
int st_image_set_edges(struct st_image *image, const struct st_edges *edges, struct st_region window,
                       struct stoker_error *err);

#endif
