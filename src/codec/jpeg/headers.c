/* headers.c - reads everything before a scan
 *
 * Reads the markers like libjpeg, but strictly: where libjpeg warns, guesses or skips, the file is not
 * ours.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/headers.h"

#include <string.h>

enum { SOF0 = 0xC0, SOF1 = 0xC1, SOF2 = 0xC2, DHT = 0xC4, SOF9 = 0xC9, SOF10 = 0xCA, DAC = 0xCC };
enum { SOF15 = 0xCF, SOI = 0xD8, EOI = 0xD9, SOS = 0xDA, DQT = 0xDB, DRI = 0xDD, APP0 = 0xE0 };
enum { APP14 = 0xEE, APP15 = 0xEF, COM = 0xFE };
enum { BLOCK = 8, SIDE_MAX = 65500 /* libjpeg's limit */, LOW_MAX = 13 /* so is this */ };

/* What determines whether three components are YCbCr or RGB. */
struct colour_marks {
    bool jfif, adobe;
    uint8_t transform;
};

static uint32_t two_bytes(const uint8_t *p) { return (uint32_t)p[0] << 8 | p[1]; }

static enum st_jpeg_reason read_steps(struct st_bytes s, struct st_jpeg_frame *frame)
{
    while (s.size > 0) {
        const uint32_t wide = s.data[0] >> 4 ? 2 : 1, table = s.data[0] & 15;
        const size_t size = 1 + 64 * (size_t)wide;
        if (s.size < size || table >= ST_JPEG_TABLES_MAX)
            return ST_JPEG_HEADER;
        for (uint32_t k = 0; k < 64; k++) {
            const uint8_t *value = s.data + 1 + k * wide;
            frame->steps[table][k] = (uint16_t)(wide == 2 ? two_bytes(value) : *value);
        }
        frame->has_steps[table] = true;
        frame->extended |= wide == 2;
        s = (struct st_bytes){s.data + size, s.size - size};
    }
    return ST_JPEG_OURS;
}

static enum st_jpeg_reason read_codes(struct st_bytes s, struct st_jpeg_frame *frame)
{
    while (s.size > 0) {
        if (s.size < 17)
            return ST_JPEG_HEADER;
        const uint32_t class = s.data[0] >> 4, table = s.data[0] & 15;
        struct st_jpeg_code code = {s.data + 1, s.data + 17, 0};
        for (uint32_t length = 0; length < 16; length++)
            code.total += code.counts[length];
        const size_t size = 17 + (size_t)code.total;
        if (class > 1 || table >= ST_JPEG_TABLES_MAX || code.total > 256 || s.size < size)
            return ST_JPEG_HEADER;
        (class ? frame->ac : frame->dc)[table] = code;
        s = (struct st_bytes){s.data + size, s.size - size};
    }
    return ST_JPEG_OURS;
}

static enum st_jpeg_reason read_frame(struct st_bytes s, struct st_jpeg_frame *frame)
{
    if (frame->components != 0 || s.size < 6)
        return ST_JPEG_HEADER;
    if (s.data[0] != 8)
        return ST_JPEG_PRECISION;
    if (s.data[5] != 1 && s.data[5] != 3)
        return ST_JPEG_COMPONENTS;
    if (s.size != 6 + 3u * s.data[5])
        return ST_JPEG_HEADER;
    frame->height = two_bytes(s.data + 1);
    frame->width = two_bytes(s.data + 3);
    frame->components = s.data[5];
    if (frame->width == 0 || frame->height == 0)
        return ST_JPEG_HEADER;
    if (frame->width > SIDE_MAX || frame->height > SIDE_MAX)
        return ST_JPEG_SIZE;
    for (uint32_t c = 0; c < frame->components; c++) {
        const uint8_t *p = s.data + 6 + 3 * c;
        frame->component[c] =
            (struct st_jpeg_component){.id = p[0], .h = p[1] >> 4, .v = p[1] & 15, .quant = p[2]};
        for (uint32_t other = 0; other < c; other++)
            if (frame->component[other].id == p[0])
                return ST_JPEG_HEADER;
    }
    return ST_JPEG_OURS;
}

/* A single component is coded block by block whatever its factors; of three, the first may be finer. */
static bool sampling_is_ours(struct st_jpeg_frame *frame)
{
    struct st_jpeg_component *c = frame->component;
    if (frame->components == 1) {
        const bool valid = c[0].h >= 1 && c[0].h <= 4 && c[0].v >= 1 && c[0].v <= 4;
        frame->ignored_factors = c[0].h > 1 || c[0].v > 1;
        c[0].h = c[0].v = 1;
        return valid;
    }
    return c[0].h >= 1 && c[0].h <= 2 && c[0].v >= 1 && c[0].v <= 2 && c[1].h == 1 && c[1].v == 1 &&
           c[2].h == 1 && c[2].v == 1;
}

static void measure(struct st_jpeg_frame *frame)
{
    frame->h = frame->component[0].h;
    frame->v = frame->component[0].v;
    frame->mcu_blocks = 0;
    for (uint32_t k = 0; k < frame->components; k++) {
        struct st_jpeg_component *c = &frame->component[k];
        c->width = (frame->width * c->h + frame->h - 1) / frame->h;
        c->height = (frame->height * c->v + frame->v - 1) / frame->v;
        frame->mcu_blocks += (uint32_t)c->h * c->v;
    }
    frame->mcus_across = (frame->width + BLOCK * frame->h - 1) / (BLOCK * frame->h);
    frame->mcus_down = (frame->height + BLOCK * frame->v - 1) / (BLOCK * frame->v);
}

/* libjpeg's rule: JFIF means YCbCr; otherwise Adobe's marker decides; otherwise the component ids. */
static enum st_jpeg_reason find_colours(const struct colour_marks *marks, struct st_jpeg_frame *frame)
{
    const struct st_jpeg_component *c = frame->component;
    frame->rgb = false;
    if (frame->components == 1 || marks->jfif)
        return ST_JPEG_OURS;
    if (marks->adobe) {
        frame->rgb = marks->transform == 0;
        return marks->transform <= 1 ? ST_JPEG_OURS : ST_JPEG_HEADER;
    }
    frame->rgb = c[0].id == 'R' && c[1].id == 'G' && c[2].id == 'B';
    return ST_JPEG_OURS;
}

/* The tables of a component in a scan. The first scan of a coefficient needs a code, and so does a later
 * one of AC. */
static enum st_jpeg_reason set_tables(struct st_jpeg_frame *frame, struct st_jpeg_component *c,
                                      uint8_t tables, bool dc, bool ac)
{
    c->dc = tables >> 4;
    c->ac = tables & 15;
    return c->dc < ST_JPEG_TABLES_MAX && c->ac < ST_JPEG_TABLES_MAX && c->quant < ST_JPEG_TABLES_MAX &&
                   (!dc || frame->dc[c->dc].counts) && (!ac || frame->ac[c->ac].counts) &&
                   frame->has_steps[c->quant]
               ? ST_JPEG_OURS
               : ST_JPEG_TABLES;
}

static enum st_jpeg_reason read_baseline_scan(struct st_bytes s, struct st_jpeg_frame *frame)
{
    if (s.data[0] != frame->components)
        return s.data[0] < frame->components ? ST_JPEG_SCANS : ST_JPEG_HEADER;
    if (s.size != 4 + 2u * frame->components)
        return ST_JPEG_HEADER;
    for (uint32_t k = 0; k < frame->components; k++) {
        struct st_jpeg_component *c = &frame->component[k];
        if (s.data[1 + 2 * k] != c->id)
            return ST_JPEG_HEADER;
        const enum st_jpeg_reason reason = set_tables(frame, c, s.data[2 + 2 * k], true, true);
        if (reason != ST_JPEG_OURS)
            return reason;
    }
    const uint8_t *selection = s.data + 1 + 2 * frame->components;
    return selection[0] == 0 && selection[1] == 63 && selection[2] == 0 ? ST_JPEG_OURS : ST_JPEG_HEADER;
}

/* Scans of AC are of one component; those of DC may be of several, in the frame's order. */
static enum st_jpeg_reason read_progressive_scan(struct st_bytes s, struct st_jpeg_frame *frame)
{
    const uint32_t count = s.data[0];
    if (count < 1 || count > frame->components || s.size != 4 + 2u * count)
        return ST_JPEG_HEADER;
    const uint8_t *end = s.data + 1 + 2 * count;
    const bool dc = end[0] == 0;
    struct st_jpeg_selection *to = &frame->selection;
    *to = (struct st_jpeg_selection){
        .count = count, .first = end[0], .last = end[1], .high = end[2] >> 4, .low = end[2] & 15};
    if (dc ? to->last != 0 : count != 1 || to->last < to->first || to->last > 63)
        return ST_JPEG_HEADER;
    if (to->low > LOW_MAX || (to->high && to->high != to->low + 1))
        return ST_JPEG_HEADER;
    for (uint32_t k = 0, c = 0; k < count; k++, c++) {
        while (c < frame->components && frame->component[c].id != s.data[1 + 2 * k])
            c++;
        if (c == frame->components)
            return ST_JPEG_HEADER;
        const enum st_jpeg_reason reason =
            set_tables(frame, &frame->component[c], s.data[2 + 2 * k], dc && !to->high, !dc);
        if (reason != ST_JPEG_OURS)
            return reason;
        to->component[k] = (uint8_t)c;
    }
    return ST_JPEG_OURS;
}

static enum st_jpeg_reason read_scan(struct st_bytes s, struct st_jpeg_frame *frame)
{
    if (frame->components == 0 || s.size < 1)
        return ST_JPEG_HEADER;
    return frame->progressive ? read_progressive_scan(s, frame) : read_baseline_scan(s, frame);
}

static enum st_jpeg_reason unusual_marker(uint8_t marker)
{
    if (marker == SOF9 || marker == SOF10 || marker == DAC)
        return ST_JPEG_ARITHMETIC;
    return marker > SOF2 && marker <= SOF15 ? ST_JPEG_KIND : ST_JPEG_MARKER;
}

static enum st_jpeg_reason read_segment(uint8_t marker, struct st_bytes s, struct st_jpeg_frame *frame,
                                        struct colour_marks *marks)
{
    if (marker == DQT) /* between scans, libjpeg keeps the earlier ones for some components */
        return frame->selection.count ? ST_JPEG_MARKER : read_steps(s, frame);
    if (marker == DHT)
        return read_codes(s, frame);
    if (marker == SOF0 || marker == SOF1 || marker == SOF2) {
        frame->extended |= marker == SOF1;
        frame->progressive = marker == SOF2;
        return read_frame(s, frame);
    }
    if (marker == SOS)
        return read_scan(s, frame);
    if (marker == DRI) {
        frame->restart_interval = s.size == 2 ? two_bytes(s.data) : 0;
        return s.size == 2 ? ST_JPEG_OURS : ST_JPEG_HEADER;
    }
    if (marker == APP0 && s.size >= 14 && memcmp(s.data, "JFIF", 5) == 0)
        marks->jfif = true;
    if (marker == APP14 && s.size >= 12 && memcmp(s.data, "Adobe", 5) == 0) {
        marks->adobe = true;
        marks->transform = s.data[11];
    }
    return (marker >= APP0 && marker <= APP15) || marker == COM ? ST_JPEG_OURS : unusual_marker(marker);
}

/* Reads segments up to the start of a scan, or to the end of the image. */
static enum st_jpeg_reason read_segments(struct st_bytes in, struct st_jpeg_frame *frame,
                                         struct colour_marks *marks)
{
    for (size_t at = 0; at < in.size && in.data[at] == 0xFF;) {
        while (at < in.size && in.data[at] == 0xFF) /* a marker may be preceded by any number of these */
            at++;
        frame->scan = (struct st_bytes){NULL, 0};
        if (at < in.size && in.data[at] == EOI)
            return ST_JPEG_OURS;
        if (in.size - at < 3)
            break;
        const uint8_t marker = in.data[at];
        const size_t length = two_bytes(in.data + at + 1);
        if (length < 2 || length > in.size - at - 1)
            return unusual_marker(marker) == ST_JPEG_MARKER ? ST_JPEG_HEADER : unusual_marker(marker);
        const struct st_bytes segment = {in.data + at + 3, length - 2};
        enum st_jpeg_reason reason = read_segment(marker, segment, frame, marks);
        if (reason != ST_JPEG_OURS)
            return reason;
        at += 1 + length;
        if (marker != SOS)
            continue;
        frame->scan = (struct st_bytes){in.data + at, in.size - at};
        return ST_JPEG_OURS;
    }
    return ST_JPEG_HEADER;
}

enum st_jpeg_reason st_jpeg_headers(struct st_bytes in, struct st_jpeg_frame *frame)
{
    struct colour_marks marks = {0};
    memset(frame, 0, sizeof *frame);
    if (in.size < 4 || in.data[0] != 0xFF || in.data[1] != SOI)
        return ST_JPEG_HEADER;
    enum st_jpeg_reason reason =
        read_segments((struct st_bytes){in.data + 2, in.size - 2}, frame, &marks);
    if (reason != ST_JPEG_OURS)
        return reason;
    if (!frame->scan.data)
        return ST_JPEG_HEADER;
    if (!sampling_is_ours(frame))
        return ST_JPEG_SAMPLING;
    measure(frame);
    reason = find_colours(&marks, frame);
    return reason == ST_JPEG_OURS && frame->progressive ? ST_JPEG_PROGRESSIVE : reason;
}

enum st_jpeg_reason st_jpeg_next_scan(struct st_bytes in, struct st_jpeg_frame *frame)
{
    struct colour_marks ignored = {0};
    return read_segments(in, frame, &ignored);
}
