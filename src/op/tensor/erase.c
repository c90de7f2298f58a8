/* erase.c - overwrites a box of a finished image
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/tensor/erase.h"

void st_erase_write(const struct st_erase *erase, const struct st_finish *finish,
                    const struct st_place *place)
{
    const struct st_region box = erase->box;
    const size_t width = (size_t)place->width, plane = width * (size_t)place->height;
    const size_t channels = (size_t)finish->channels, element = finish->element;
    const bool planar = finish->layout == STOKER_LAYOUT_NCHW;
    const uint8_t *value = erase->values;
    for (size_t c = 0; c < channels; c++)
        for (size_t y = box.y; y < box.y + box.height; y++)
            for (size_t x = box.x; x < box.x + box.width; x++) {
                const size_t at = planar ? c * plane + y * width + x : (y * width + x) * channels + c;
                uint8_t *to = (uint8_t *)place->data + at * element;
                if (value) {
                    memcpy(to, value, element);
                    value += element;
                } else {
                    st_put_bits(to, element, erase->bits[c]);
                }
            }
}
