/* fuzz_jpeg_own.c - our JPEG decoder on any bytes: it refuses them, or agrees with libjpeg-turbo
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "../codec/jpeg_own.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A box that depends on the bytes alone. */
static struct st_region box_of(struct st_bytes in, uint32_t width, uint32_t height)
{
    random_state = in.size * 2654435761u + 1;
    for (size_t k = 0; k < in.size; k += 97)
        random_state = (random_state ^ in.data[k]) * 1099511628211u;
    random_state |= 1;
    return own_box(width, height);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct st_jpeg *decoder;
    static struct st_arena arena;
    const struct st_bytes in = {data, size};
    if (!decoder && !(decoder = st_jpeg_new()))
        return 0;
    struct own_reference ref = own_reference(in);
    const bool huge = (uint64_t)ref.width * ref.height > OWN_PIXELS_MAX;
    const uint32_t width = ref.width && !huge ? ref.width : 64,
                   height = ref.height && !huge ? ref.height : 64;
    uint32_t sides[2], components;
    if (st_jpeg_is_regular(in, &sides[0], &sides[1], &components) && !huge &&
        (!ref.rgb || sides[0] != ref.width || sides[1] != ref.height))
        abort();
    struct st_jpeg_marks marks = {0};
    for (int k = 0; k < 4; k++) {
        const struct st_region box = k == 0   ? (struct st_region){0, 0, width, height}
                                     : k == 3 ? own_box(width, height)
                                              : box_of(in, width, height);
        struct st_view view;
        bool clean = false;
        st_arena_reset(&arena);
        if (st_jpeg_decode(decoder, in, box, k == 2 ? &clean : NULL, k == 1 || k == 3 ? &marks : NULL,
                           &arena, &view) != ST_JPEG_OURS ||
            huge)
            continue;
        if (!ref.rgb || !own_equal(&ref, box, &view) || (clean && ref.warnings))
            abort();
    }
    free(ref.rgb);
    return 0;
}
