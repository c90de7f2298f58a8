/* Which files are given to the JPEG hardware by nvJPEG.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/headers.h"
#include "gpu/gpu.h"
#include "gpu/small_jpeg.h"
#include "tap.h"

#include <string.h>

static bool takes(struct st_bytes bytes)
{
    struct st_jpeg_frame frame;
    const bool taken = st_jpeg_headers(bytes, &frame) == ST_JPEG_OURS && st_jpeg_hw_nvjpeg.takes(&frame);
    free((void *)(uintptr_t)bytes.data);
    return taken;
}

static void kinds_of_file(void)
{
    ok(takes(file((struct jpeg_kind){.components = 3})), "4:4:4 is taken");
    ok(takes(file((struct jpeg_kind){.components = 3, .h = {2}})), "4:2:2 is taken");
    ok(takes(file((struct jpeg_kind){.components = 3, .v = {2}})), "4:4:0 is taken");
    ok(takes(file((struct jpeg_kind){.components = 3, .h = {2}, .v = {2}, .restart = 3})),
       "4:2:0 with restarts is taken");
    ok(!takes(file((struct jpeg_kind){.components = 3, .h = {4}})), "4:1:1 is not");
    ok(takes(file((struct jpeg_kind){.components = 1})), "grey is taken");
    ok(!takes(file((struct jpeg_kind){.components = 1, .h = {2}, .v = {2}})), "grey with factors is not");
    ok(!takes(file((struct jpeg_kind){.components = 4})), "CMYK is not");
    ok(!takes(file((struct jpeg_kind){.components = 3, .progressive = true})), "progressive is not");
    ok(!takes(file((struct jpeg_kind){.components = 3, .separate = true})), "nor are three scans");
    ok(!takes(file((struct jpeg_kind){.components = 3, .space = JCS_RGB})),
       "nor components that are red, green, blue");
    ok(!takes(file((struct jpeg_kind){.components = 3, .width = 20000, .height = 8})),
       "nor sides beyond 16384");
}

/* Whether a file is taken after one of its bytes has been changed: the one at `at` after this marker. */
static bool takes_changed(uint8_t marker, size_t at, uint8_t value)
{
    const struct st_bytes bytes = file((struct jpeg_kind){.components = 3});
    uint8_t *data = (uint8_t *)(uintptr_t)bytes.data;
    size_t k = 2;
    while (data[k + 1] != marker)
        k += 2 + ((size_t)data[k + 2] << 8 | data[k + 3]);
    data[k + 1 + at] = value;
    return takes(bytes);
}

/* What baseline does not have. */
static void beyond_baseline(void)
{
    enum { SOF0 = 0xC0, SOF1 = 0xC1, DHT = 0xC4, FIRST_SYMBOL = 20 };
    struct st_jpeg_frame frame;
    struct st_bytes bytes = file((struct jpeg_kind){.components = 3, .wide = true});
    ok(st_jpeg_headers(bytes, &frame) == ST_JPEG_OURS && frame.extended && !takes(bytes),
       "16-bit quantisation tables are not taken");
    ok(takes_changed(SOF0, 0, SOF0) && !takes_changed(SOF0, 0, SOF1), "nor is extended sequential coding");
    ok(takes_changed(DHT, FIRST_SYMBOL, 11) && !takes_changed(DHT, FIRST_SYMBOL, 12), "nor differences of 12 bits");
    bytes = file((struct jpeg_kind){.components = 3});
    st_jpeg_headers(bytes, &frame);
    uint8_t symbols[256];
    struct st_jpeg_code *ac = &frame.ac[frame.component[0].ac];
    memcpy(symbols, ac->symbols, ac->total);
    ac->symbols = symbols;
    ok(st_jpeg_hw_nvjpeg.takes(&frame), "the usual symbols are taken");
    symbols[3] = 0x50;
    ok(!st_jpeg_hw_nvjpeg.takes(&frame), "a run without a value is not");
    symbols[3] = 0x1B;
    ok(!st_jpeg_hw_nvjpeg.takes(&frame), "nor are values of 11 bits");
    symbols[3] = 0xF0;
    frame.component[2].ac = 2;
    ok(!st_jpeg_hw_nvjpeg.takes(&frame), "nor a third Huffman table");
    free((void *)(uintptr_t)bytes.data);
}

int main(void)
{
    kinds_of_file();
    beyond_baseline();
    return done_testing();
}
