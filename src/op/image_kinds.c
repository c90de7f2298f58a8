/* image_kinds.c - lazy images that are masks, or boxes without pixels
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/image.h"

void st_image_is_mask(struct st_image *image, struct st_numbers *numbers)
{
    *numbers = (struct st_numbers){0};
    image->numbers = numbers;
}

void st_image_number(const struct st_image *mask, uint8_t number, uint8_t pixel[4])
{
    memset(pixel, mask->numbers->bits ? 0 : number, 4);
    if (mask->numbers->wide)
        pixel[1] = pixel[2] = 0;
}

void st_image_of_boxes(struct st_image *image, struct st_work *work, int32_t width, int32_t height,
                       struct st_boxes *boxes)
{
    *image = (struct st_image){
        .work = work, .boxes = boxes, .crop = {0, 0, (uint32_t)width, (uint32_t)height}};
}
