/* jpeg_markers.c - reads a JPEG's headers up to its first scan
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg_markers.h"

#include "codec/exif.h"

#include <string.h>

enum { SOF0 = 0xC0, DHT = 0xC4, JPG = 0xC8, DAC = 0xCC, SOF15 = 0xCF };
enum { RST0 = 0xD0, EOI = 0xD9, SOS = 0xDA, DHP = 0xDE, APP1 = 0xE1, JPG0 = 0xF0, JPG13 = 0xFD };

bool st_jpeg_probe(const uint8_t *data, size_t size)
{
    return size >= 3 && data[0] == 0xFF && data[1] == 0xD8 && data[2] == 0xFF;
}

static bool is_frame(uint8_t marker)
{
    return (marker >= SOF0 && marker <= SOF15 && marker != DHT && marker != JPG && marker != DAC) ||
           marker == DHP;
}

/* Markers without a length and a payload. */
static bool stands_alone(uint8_t marker)
{
    return marker == JPG || (marker >= RST0 && marker <= EOI) || (marker >= JPG0 && marker <= JPG13);
}

static int read_frame(struct st_bytes payload, uint8_t marker, struct st_jpeg_info *out,
                      struct stoker_error *err)
{
    const uint8_t *p = payload.data;
    if (payload.size < 6)
        return st_fail(err, STOKER_ECORRUPT, "JPEG: the frame header is too short (%zu bytes)",
                       payload.size);
    if (p[0] != 8)
        return st_fail(err, STOKER_EUNSUPPORTED, "JPEG: %u bits per sample are not supported, only 8",
                       p[0]);
    if (p[5] != 1 && p[5] != 3 && p[5] != 4)
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "JPEG: images of %u components are not supported, only 1, 3 or 4", p[5]);
    if (payload.size != 6 + 3u * p[5])
        return st_fail(err, STOKER_ECORRUPT, "JPEG: the frame header of %u components has %zu bytes",
                       p[5], payload.size);
    out->height = (uint32_t)p[1] << 8 | p[2];
    out->width = (uint32_t)p[3] << 8 | p[4];
    out->components = p[5];
    out->frame = marker;
    return STOKER_OK;
}

static int check_found(const struct st_jpeg_info *info, size_t at, struct stoker_error *err)
{
    if (info->components == 0)
        return st_fail(err, STOKER_ECORRUPT, "JPEG: the scan at byte %zu precedes any frame header",
                       at);
    if (info->width == 0 || info->height == 0)
        return st_fail(err, STOKER_ECORRUPT, "JPEG: invalid size of %u x %u pixels", info->width,
                       info->height);
    return STOKER_OK;
}

/* The payload of the marker whose length field is at `at`. */
static int read_payload(struct st_bytes in, size_t at, struct st_bytes *out, struct stoker_error *err)
{
    if (in.size - at < 2)
        return st_fail(err, STOKER_ECORRUPT, "JPEG: data ends at byte %zu, inside the header", in.size);
    const size_t length = (size_t)in.data[at] << 8 | in.data[at + 1];
    if (length > 2 && length > in.size - at)
        return st_fail(err, STOKER_ECORRUPT,
                       "JPEG: data ends at byte %zu, inside a header segment of %zu bytes at byte %zu",
                       in.size, length, at);
    *out = (struct st_bytes){in.data + at + 2, length > 2 ? length - 2 : 0};
    return STOKER_OK;
}

static int take_segment(uint8_t marker, struct st_bytes payload, struct st_jpeg_info *out,
                        struct stoker_error *err)
{
    if (is_frame(marker))
        return read_frame(payload, marker, out, err);
    if (marker == APP1 && out->orientation == 0 && payload.size >= 6 &&
        memcmp(payload.data, "Exif\0", 6) == 0)
        out->orientation = st_exif_orientation(payload.data, payload.size);
    return STOKER_OK;
}

int st_jpeg_markers(struct st_bytes in, struct st_jpeg_info *out, struct stoker_error *err)
{
    *out = (struct st_jpeg_info){0};
    if (!st_jpeg_probe(in.data, in.size))
        return st_fail(err, STOKER_ECORRUPT, "JPEG: the file does not start with a JPEG signature");
    size_t at = 2;
    for (;;) {
        /* Skips junk between segments, fill bytes and stuffed zeros. */
        while (at < in.size && in.data[at] != 0xFF)
            at++;
        while (at < in.size && in.data[at] == 0xFF)
            at++;
        if (at >= in.size)
            return st_fail(err, STOKER_ECORRUPT, "JPEG: data ends at byte %zu, before any scan",
                           in.size);
        const uint8_t marker = in.data[at++];
        if (marker == 0 || stands_alone(marker))
            continue;
        if (marker < SOF0)
            return st_fail(err, STOKER_ECORRUPT, "JPEG: expected a marker at byte %zu, found FF %02X",
                           at - 2, marker);
        struct st_bytes payload = {0};
        int rc = read_payload(in, at, &payload, err);
        if (rc < 0)
            return rc;
        if (marker == SOS)
            break;
        rc = take_segment(marker, payload, out, err);
        if (rc < 0)
            return rc;
        at += 2 + payload.size;
    }
    if (out->orientation == 0)
        out->orientation = 1;
    return check_found(out, at, err);
}

bool st_jpeg_has_end(struct st_bytes data)
{
    while (data.size > 1) {
        const uint8_t *found = memrchr(data.data + 1, EOI, data.size - 1);
        if (!found || found[-1] == 0xFF)
            return found != NULL;
        data.size = (size_t)(found - data.data);
    }
    return false;
}
