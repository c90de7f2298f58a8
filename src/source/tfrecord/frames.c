/* frames.c - the frames of a TFRecord file: length, its checksum, the record, its checksum
 *
 * The file is little-endian. Its checksums are CRC32C, rotated and offset by a constant so that a
 * checksum of data that contains checksums is not degenerate.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/tfrecord/frames.h"
#include "source/checksum/crc32c.h"
#include "source/shards/trails.h"
#include "source/text/numbers.h"

#include <endian.h>
#include <string.h>

static uint32_t masked(const void *data, size_t size)
{
    const uint32_t crc = st_crc32c(data, size);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static uint32_t word(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return le32toh(value);
}

bool st_record_length(const uint8_t head[ST_RECORD_HEAD], uint64_t *length)
{
    *length = word(head) | (uint64_t)word(head + 4) << 32;
    return masked(head, 8) == word(head + 8);
}

const char *st_record_open(struct st_bytes frame, struct st_bytes *record)
{
    uint64_t length;
    if (frame.size < ST_RECORD_FRAME || !st_record_length(frame.data, &length) ||
        length != frame.size - ST_RECORD_FRAME)
        return "not the record that was indexed: the file changed while it was open";
    *record = (struct st_bytes){frame.data + ST_RECORD_HEAD, length};
    if (masked(record->data, length) != word(record->data + length))
        return "the record's checksum is wrong: its bytes are damaged";
    return NULL;
}

/* ---- scanning -------------------------------------------------------------------------- */

static int out_of_memory(const struct st_window *window, struct stoker_error *err)
{
    return st_fail(err, STOKER_ENOMEM, "%s: out of memory for its index", window->path);
}

static bool add_record(struct st_shard_builder *into, uint64_t start, uint64_t end)
{
    const struct st_bytes none = {0};
    return st_shard_begin(into, none) && st_shard_add(into, start, end, none);
}

/* Finds the end of the record at `at`; ST_SHARD_LOST if that cannot be a record. */
static int read_record(struct st_window *window, uint64_t at, uint64_t *end, struct stoker_error *err)
{
    uint64_t length = 0;
    const bool whole = st_window_has(window, at, ST_RECORD_HEAD);
    const uint8_t *head = whole ? st_window_at(window, at, ST_RECORD_HEAD, err) : NULL;
    if (whole && !head)
        return window->failed;
    if (!whole || !st_record_length(head, &length) || !st_add(at, ST_RECORD_FRAME, end) ||
        !st_add(*end, length, end))
        *end = ST_SHARD_LOST;
    return 0;
}

/* ---- with several threads -------------------------------------------------------------------- */

static bool trail_looks_like(const uint8_t *head)
{
    uint64_t length;
    return st_record_length(head, &length);
}

struct trail_walk {
    struct st_window *window;
};

static void trail_begin(void *walk, struct st_window *window)
{
    ((struct trail_walk *)walk)->window = window;
}

static int trail_next(void *walk, uint64_t at, struct st_trail_note *out)
{
    struct st_window *window = ((struct trail_walk *)walk)->window;
    *out = (struct st_trail_note){.start = at, .regular = true};
    const int rc = read_record(window, at, &out->end, NULL);
    return rc ? rc : out->end > window->end ? STOKER_ECORRUPT : 0;
}

static void trail_end(void *walk) { (void)walk; }

static const struct st_trail_kind trail_kind = {
    .head = ST_RECORD_HEAD,
    .step = 1,
    .walk_size = sizeof(struct trail_walk),
    .looks_like = trail_looks_like,
    .begin = trail_begin,
    .next = trail_next,
    .end = trail_end,
};

/* ---- from the front -------------------------------------------------------------------------- */

static int record_scan(struct st_window *window, uint32_t threads, struct st_shard_builder *into,
                       struct stoker_error *err)
{
    struct st_trails *trails = NULL;
    int rc = 0;
    for (uint64_t at = 0; !rc && at < window->end;) {
        struct st_trail_note note = {.start = at};
        if (!trails && st_trails_due(window, into->part_count))
            trails = st_trails_find(&trail_kind, window, at, into->part_count, threads);
        if (!st_trails_take(trails, &at, &note)) {
            rc = read_record(window, at, &note.end, err);
            at = note.end;
        }
        if (!rc && note.start == 0 && note.end == ST_SHARD_LOST)
            rc = st_fail(err, STOKER_ECORRUPT,
                         "%s: byte 0: the first length or its checksum is wrong: damaged, or not a "
                         "TFRecord file",
                         window->path);
        if (!rc && !add_record(into, note.start, note.end))
            rc = out_of_memory(window, err);
    }
    st_trails_free(trails);
    return rc; /* a truncated or damaged record represents everything that is lost */
}

/* Imports lines of "offset size", as written by DALI's tfrecord2idx and others. They must cover the file
 * without gaps and agree with the heads of the first 64 records and of every 64th after that. */
static bool record_import(struct st_window *window, struct st_bytes text, struct st_shard_builder *into)
{
    uint64_t at = 0;
    while (text.size) {
        const uint8_t *line_end = memchr(text.data, '\n', text.size);
        const size_t size = line_end ? (size_t)(line_end - text.data) : text.size;
        const uint8_t *space = memchr(text.data, ' ', size);
        const size_t first = space ? (size_t)(space - text.data) : size;
        int64_t offset, bytes;
        uint64_t length;
        if (!space || !st_text_int((struct st_bytes){text.data, first}, &offset) ||
            !st_text_int((struct st_bytes){space, size - first}, &bytes) || offset < 0 ||
            (uint64_t)offset != at || bytes < ST_RECORD_FRAME ||
            !st_window_has(window, at, (uint64_t)bytes))
            return false;
        if (into->sample_count < 64 || into->sample_count % 64 == 0) {
            const uint8_t *head = st_window_at(window, at, ST_RECORD_HEAD, NULL);
            if (!head || !st_record_length(head, &length) || length != (uint64_t)bytes - ST_RECORD_FRAME)
                return false;
        }
        if (!add_record(into, at, at + (uint64_t)bytes))
            return false;
        at += (uint64_t)bytes;
        text.data += size + (line_end != NULL);
        text.size -= size + (line_end != NULL);
    }
    return at == window->end && at > 0;
}

/* An uncompressed file begins with a matching checksum, others with the magic of their compression. */
static enum st_packing record_packing(const uint8_t *head, size_t size)
{
    uint64_t length;
    if (size >= ST_RECORD_HEAD && st_record_length(head, &length))
        return ST_PACKED_NOT;
    const enum st_packing packing = st_packing_of(head, size);
    if (packing != ST_PACKED_NOT || size < 2)
        return packing;
    return (head[0] & 15) == 8 && (head[0] << 8 | head[1]) % 31 == 0 ? ST_PACKED_ZLIB : ST_PACKED_NOT;
}

const struct st_shard_kind st_shard_kind_record = {
    .name = "TFRecord file",
    .extension = ".tfrecord",
    .number = 2,
    .packing = record_packing,
    .scan = record_scan,
    .import = record_import,
};
