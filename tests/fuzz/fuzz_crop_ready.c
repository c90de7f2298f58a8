/* fuzz_crop_ready.c - any bytes at all as a JPEG that is to be made ready for crops
 *
 * What comes out must be a file that decodes, to the same pixels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/pack.h"
#include "codec/codec.h"

#include <stdlib.h>
#include <string.h>

enum { PIXELS_MAX = 1 << 17 };

extern const struct st_codec st_codec_jpeg;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct picture {
    void *state;
    struct st_header header;
    struct st_arena arena;
    struct st_view pixels;
};

static bool read_header(struct picture *picture, struct st_bytes in)
{
    picture->state = st_calloc(1, st_codec_jpeg.state_size);
    return picture->state && st_codec_jpeg.probe(in.data, in.size) &&
           !st_codec_jpeg.header(picture->state, in, &picture->header, NULL) &&
           picture->header.width > 0 && picture->header.height > 0 &&
           (uint64_t)picture->header.width * picture->header.height <= PIXELS_MAX;
}

static bool decode(struct picture *picture, struct st_bytes in)
{
    const struct st_decode all = {1, {0, 0, picture->header.width, picture->header.height}};
    return !st_codec_jpeg.decode(picture->state, in, &all, &picture->arena, &picture->pixels, NULL);
}

static void forget(struct picture *picture)
{
    st_arena_free(&picture->arena);
    if (picture->state && st_codec_jpeg.close)
        st_codec_jpeg.close(picture->state);
    free(picture->state);
}

static void compare(struct picture *before, struct st_bytes in, struct st_bytes out)
{
    struct picture after = {0};
    if (!read_header(&after, out) || !decode(&after, out))
        abort(); /* it cannot be read any more */
    if (decode(before, in))
        for (int32_t y = 0; y < before->pixels.height; y++)
            if (memcmp(st_row(&before->pixels, y), st_row(&after.pixels, y),
                       3 * (size_t)before->pixels.width))
                abort(); /* other pixels */
    forget(&after);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct picture before = {0};
    struct st_buffer ready = {0};
    const struct st_bytes in = {data, size};
    if (read_header(&before, in) && pack_crop_ready(in, &ready))
        compare(&before, in, (struct st_bytes){ready.data, ready.size});
    st_buffer_free(&ready);
    forget(&before);
    return 0;
}
