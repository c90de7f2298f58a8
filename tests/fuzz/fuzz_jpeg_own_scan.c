/* fuzz_jpeg_own_scan.c - our JPEG decoder on any scan data, and any Huffman tables, behind a sound
 * header
 *
 * The first bytes of the input choose the kind of file, and whether the bytes behind them replace the
 * symbols of its tables; the rest is scan data.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "../codec/jpeg_own.h"

enum { CHOICES = 5, SOS = 0xDA, DHT = 0xC4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The size of the header, SOS included; symbols of its tables replaced where `symbols` has some. */
static size_t take_header(uint8_t *file, size_t size, struct st_bytes *symbols)
{
    size_t at = 2;
    while (at + 4 < size && file[at + 1] != SOS) {
        const size_t length = (size_t)file[at + 2] << 8 | file[at + 3];
        if (file[at + 1] == DHT && length > 19 && file[at + 4] >= 0x10)
            for (size_t k = 19; k < length && symbols->size > 0; k++, symbols->data++, symbols->size--)
                file[at + 2 + k] = *symbols->data;
        at += 2 + length;
    }
    return at + 2 + ((size_t)file[at + 2] << 8 | file[at + 3]);
}

static struct st_bytes build(const uint8_t *data, size_t size)
{
    const struct own_kind kind = {.width = 1 + data[0] % 90,
                                  .height = 1 + data[1] % 90,
                                  .sampling = (enum own_sampling)(data[2] % OWN_SAMPLINGS),
                                  .quality = 1 + data[3] % 100,
                                  .restart = data[4] % 16,
                                  .optimised = data[2] & 128};
    const struct st_bytes sound = own_make(&kind);
    struct st_bytes rest = {data + CHOICES, size - CHOICES};
    uint8_t *file = malloc(sound.size + 2 * size + 2);
    memcpy(file, sound.data, sound.size);
    struct st_bytes none = {0};
    size_t at = take_header(file, sound.size, data[3] & 128 ? &rest : &none);
    for (size_t k = 0; k < rest.size; k++) {
        file[at++] = rest.data[k];
        if (rest.data[k] == 0xFF &&
            !(k + 1 < rest.size && rest.data[k + 1] >= 0xD0 && rest.data[k + 1] <= 0xD9))
            file[at++] = 0;
    }
    file[at++] = 0xFF;
    file[at++] = 0xD9;
    free((void *)(uintptr_t)sound.data);
    return (struct st_bytes){file, at};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct st_jpeg *decoder;
    static struct st_arena arena;
    if (size < CHOICES || (!decoder && !(decoder = st_jpeg_new())))
        return 0;
    random_state = 1;
    const struct st_bytes file = build(data, size);
    const struct own_reference ref = own_reference(file);
    struct st_jpeg_marks marks = {0};
    for (int k = 0; k < 6 && ref.rgb; k++) {
        const struct st_region box =
            k ? own_box(ref.width, ref.height) : (struct st_region){0, 0, ref.width, ref.height};
        struct st_view view;
        bool clean = false;
        st_arena_reset(&arena);
        if (st_jpeg_decode(decoder, file, box, k == 3 ? &clean : NULL, k < 3 ? NULL : &marks, &arena,
                           &view) == ST_JPEG_OURS &&
            (!own_equal(&ref, box, &view) || (clean && ref.warnings)))
            abort();
    }
    free(ref.rgb);
    free((void *)(uintptr_t)file.data);
    return 0;
}
