/* object_header.c - parses the object header of an HDF5 dataset or group
 *
 * An object header is a list of messages, in one block or in several that continue each other. In
 * version 1 each message has a header of 8 bytes; in version 2 ("OHDR") of 4 or 6.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/hdf5/object_header.h"
#include "source/hdf5/links.h"
#include "source/hdf5/tree2.h"
#include "source/little.h"

#include <stdlib.h>
#include <string.h>

enum {
    BLOCKS_MAX = 64,
    BLOCK_MAX = 1 << 20,
    MESSAGE_LINK_INFO = 2,
    MESSAGE_TYPE = 3,
    MESSAGE_FILL_OLD = 4,
    MESSAGE_FILL = 5,
    MESSAGE_EXTERNAL = 7,
    MESSAGE_LAYOUT = 8,
    MESSAGE_FILTERS = 11,
    MESSAGE_CONTINUATION = 16,
    MESSAGE_SYMBOL_TABLE = 17,
    MESSAGE_SHARED = 2, /* a flag: the message is stored elsewhere */
    FILL_DEFINED = 32,
    LINKS_ORDERED = 1, /* flags of the link info message */
    LINKS_BY_ORDER = 2,
};

struct header {
    const struct st_held *file;
    uint64_t base;
    struct stoker_error *err;
    bool second;     /* version 2 */
    bool with_order; /* message headers have 2 more bytes */
    uint32_t blocks;
    bool shares; /* messages may be stored elsewhere */
    bool found;  /* a layout was found */
    struct st_h5_layout *out;
};

/* A message, and the offset of its data in the file. */
struct message {
    uint32_t type;
    bool shared;
    const uint8_t *data;
    uint64_t size, at;
};

static int damaged(const struct st_held *file, const char *what, struct stoker_error *err)
{
    return st_fail(err, STOKER_ECORRUPT, "%s: %s", file->path, what);
}

static int truncated(struct header *header)
{
    return damaged(header->file, "a message of an object header is truncated", header->err);
}

static int read_block(struct header *header, uint64_t at, uint64_t size);

/* ---- what the library reads ------------------------------------------------------------------ */

/* A chunk record is an address, the size and mask if there are filters, and coordinates. */
static int check_chunk_record(void *context, uint32_t kind, const uint8_t *record, uint32_t size,
                              uint64_t at, struct stoker_error *err)
{
    const struct header *header = context;
    const uint64_t coordinates = 8 * (uint64_t)header->out->ndim, file_size = header->file->size;
    uint64_t from, bytes = 0;
    const uint32_t width = size > 12 + coordinates ? size - 12 - (uint32_t)coordinates : 0;
    const bool possible =
        kind == ST_H5_TREE2_CHUNKS ? size == 8 + coordinates
                                   : kind == ST_H5_TREE2_FILTERED_CHUNKS && width >= 1 && width <= 8;
    for (uint32_t k = kind == ST_H5_TREE2_CHUNKS ? 0 : width; possible && k > 0; k--)
        bytes = bytes << 8 | record[8 + k - 1];
    if (!possible || !st_add(st_u64(record), header->base, &from) || from > file_size ||
        bytes > file_size - from)
        return st_fail(
            err, STOKER_ECORRUPT,
            "%s: byte %llu: a chunk is outside the file; download it again, or recover what is left of "
            "it with h5repack",
            header->file->path, (unsigned long long)at);
    return 0;
}

/* For chunks indexed by a tree of version 2, whose address follows the chunk shape and its own
 * parameters. */
static int check_chunk_tree(struct header *header, const struct message *m)
{
    enum { TREE = 5 };
    const uint64_t kind = 5 + (uint64_t)m->data[3] * m->data[4];
    if (m->size <= kind || m->data[kind] != TREE)
        return 0;
    if (m->size < kind + 7 + 8)
        return truncated(header);
    const uint64_t address = st_u64(m->data + kind + 7);
    return address == UINT64_MAX ? 0
                                 : st_h5_tree2_walk(header->file, header->base, address,
                                                    check_chunk_record, header, header->err);
}

/* ---- the layout --------------------------------------------------------------------------------- */

/* Converts an address to an offset in the file. */
static int to_offset(struct header *header, uint64_t address, uint64_t *out)
{
    *out = ST_H5_UNWRITTEN;
    if (address != UINT64_MAX && (!st_add(address, header->base, out) || *out > header->file->size))
        return damaged(header->file, "a dataset is outside the file, which may be truncated",
                       header->err);
    return 0;
}

/* Reads `count` numbers of `width` bytes; the last one is the size of an element. */
static int read_chunk_shape(struct header *header, const uint8_t *at, uint64_t left, uint32_t count,
                            uint32_t width)
{
    struct st_h5_layout *out = header->out;
    if (count < 2 || count > ST_DIMS_MAX + 2 || width < 1 || width > 8 || left < (uint64_t)count * width)
        return damaged(header->file, "its layout states an impossible chunk shape", header->err);
    out->ndim = (int32_t)count - 1;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t *to = i + 1 < count ? &out->chunk[i] : &out->unit;
        for (uint32_t k = 0; k < width; k++)
            *to |= (uint64_t)at[i * width + k] << (8 * k);
        if (!*to)
            return damaged(header->file, "its layout states an impossible chunk shape", header->err);
    }
    return 0;
}

/* Versions 1 and 2, before HDF5 1.6.3: all classes contain the shape; a contiguous one contains nothing
 * else. */
static int read_layout_old(struct header *header, const struct message *m)
{
    struct st_h5_layout *out = header->out;
    const uint32_t count = m->data[1], address = out->class == ST_H5_LAYOUT_COMPACT ? 0 : 8;
    const uint8_t *shape = m->data + 8 + address;
    if (m->size < 8 + address + 4 * (uint64_t)count + (address ? 0 : 4))
        return truncated(header);
    if (out->class == ST_H5_LAYOUT_COMPACT) {
        out->size = st_u32(shape + 4 * count);
        out->at = m->at + 8 + 4 * count + 4;
        return out->size <= m->size - 12 - 4 * count ? 0 : truncated(header);
    }
    if (out->class == ST_H5_LAYOUT_CHUNKED) {
        out->tree = true;
        const int rc = read_chunk_shape(header, shape, 4 * (uint64_t)count, count, 4);
        return rc ? rc : to_offset(header, st_u64(m->data + 8), &out->at);
    }
    out->size = UINT64_MAX; /* not stated */
    return to_offset(header, st_u64(m->data + 8), &out->at);
}

static int read_layout_new(struct header *header, const struct message *m)
{
    struct st_h5_layout *out = header->out;
    const uint8_t *data = m->data;
    switch (out->class) {
    case ST_H5_LAYOUT_COMPACT:
        out->at = m->at + 4;
        out->size = st_u16(data + 2);
        return out->size <= m->size - 4 ? 0 : truncated(header);
    case ST_H5_LAYOUT_CONTIGUOUS:
        if (m->size < 18)
            return truncated(header);
        out->size = st_u64(data + 10);
        return to_offset(header, st_u64(data + 2), &out->at);
    case ST_H5_LAYOUT_CHUNKED:
        if (m->size < 11)
            return truncated(header);
        if (data[0] == 4) {
            out->bare_edges = data[2] & 1;
            const int shape = read_chunk_shape(header, data + 5, m->size - 5, data[3], data[4]);
            return shape ? shape : check_chunk_tree(header, m);
        }
        out->tree = true;
        const int rc = read_chunk_shape(header, data + 11, m->size - 11, data[2], 4);
        return rc ? rc : to_offset(header, st_u64(data + 3), &out->at);
    default:
        return 0;
    }
}

static int read_layout(struct header *header, const struct message *m)
{
    const uint32_t version = m->size >= 8 ? m->data[0] : 0,
                   class = version ? m->data[version < 3 ? 2 : 1] : 0;
    if (version < 1 || version > 4 || class > ST_H5_LAYOUT_VIRTUAL)
        return damaged(header->file, "unknown layout version or class", header->err);
    header->found = true;
    header->out->class = (enum st_h5_layout_class) class;
    header->out->at = ST_H5_UNWRITTEN;
    return version < 3 ? read_layout_old(header, m) : read_layout_new(header, m);
}

/* ---- filters and fill values -------------------------------------------------------------------- */

/* Each filter has a number, a name, flags, and values; version 2 omits the names of HDF5's own
 * filters. */
static int read_filters(struct header *header, const struct message *m)
{
    struct st_h5_layout *out = header->out;
    const uint32_t version = m->size >= 2 ? m->data[0] : 0;
    uint64_t at = version == 1 ? 8 : 2;
    if (version < 1 || version > 2 || m->data[1] > ST_H5_FILTERS_MAX || m->shared || out->filter_count) {
        out->filters_unknown = true;
        return 0;
    }
    for (uint32_t left = m->data[1]; left; left--) {
        if (at > m->size || m->size - at < 6)
            return truncated(header);
        const uint32_t id = st_u16(m->data + at);
        const bool named = version == 1 || id >= 256;
        if (named && m->size - at < 8)
            return truncated(header);
        const uint64_t name = named ? st_u16(m->data + at + 2) : 0;
        const uint64_t values = st_u16(m->data + at + (named ? 6 : 4));
        out->filters[out->filter_count++] = id;
        at += (named ? 8 : 6) + (version == 1 ? st_align(name, 8) : name) + 4 * values;
        at += version == 1 && values % 2 ? 4 : 0;
    }
    return at <= m->size ? 0 : truncated(header);
}

/* Versions differ in how they state whether there is a value; its size and the value follow. */
static int read_fill(struct header *header, const struct message *m)
{
    struct st_h5_layout *out = header->out;
    uint64_t skip = 0;
    bool defined = true;
    if (m->type == MESSAGE_FILL) {
        const uint8_t version = m->size >= 2 ? m->data[0] : 0;
        skip = version == 3 ? 2 : 4;
        if (version < 1 || version > 3 || m->size < skip || m->shared) {
            out->fill_unknown = true;
            return 0;
        }
        defined = version == 3 ? (m->data[1] & FILL_DEFINED) != 0 : version == 1 || m->data[3];
    }
    if (defined && m->size < skip + 4)
        return truncated(header);
    const uint64_t fill = defined ? st_u32(m->data + skip) : 0;
    if (!fill || fill == UINT32_MAX || out->fill)
        return 0;
    if (fill > m->size - skip - 4)
        return truncated(header);
    out->fill = malloc(fill);
    if (!out->fill)
        return st_fail(header->err, STOKER_ENOMEM, "%s: out of memory", header->file->path);
    memcpy(out->fill, m->data + skip + 4, fill);
    out->fill_size = (uint32_t)fill;
    return 0;
}

/* ---- groups ------------------------------------------------------------------------------------- */

/* Many links are in a heap with an index of their names; both must be inside the file, or neither
 * exists. */
static int check_links(struct header *header, const struct message *m)
{
    const uint8_t flags = m->size >= 2 ? m->data[1] : 0;
    const uint64_t at = 2 + (flags & LINKS_ORDERED ? 8 : 0), count = flags & LINKS_BY_ORDER ? 3 : 2;
    if (m->size < at + 8 * count)
        return truncated(header);
    for (uint64_t k = 0; k < count && st_u64(m->data + at) != UINT64_MAX; k++) {
        const uint64_t address = st_u64(m->data + at + 8 * k);
        if (address >= header->file->size)
            return damaged(header->file, "the links of a group are outside the file", header->err);
        const int rc = k ? st_h5_links_check_tree(header->file, header->base, address, header->err)
                         : 0; /* first a heap, then trees of its contents */
        if (rc)
            return rc;
    }
    return 0;
}

/* ---- types -------------------------------------------------------------------------------------- */

/* An enumeration ends with one value per name: the library copies them without checking where the
 * message ends. */
static int check_type(struct header *header, const struct message *m)
{
    enum { CLASS_ENUMERATION = 8, BASE = 8, HEAD = 8 };
    if (m->shared || m->size < BASE + HEAD || (m->data[0] & 15) != CLASS_ENUMERATION)
        return 0;
    const uint64_t count = st_u16(m->data + 1), each = st_u32(m->data + BASE + 4);
    return count * each <= m->size - BASE - HEAD ? 0 : truncated(header);
}

/* ---- messages ----------------------------------------------------------------------------------- */

/* A message that is stored elsewhere: in another header (a named type), or in a table. */
static int check_shared(struct header *header, const struct message *m)
{
    const uint32_t version = m->size >= 10 ? m->data[0] : 0;
    const bool in_table = version >= 2 && m->data[1] == 1;
    if (version < 1 || version > 3 || (version == 1 && m->size < 16))
        return truncated(header);
    if (in_table && header->shares)
        return 0;
    if (in_table || st_u64(m->data + (version == 1 ? 8 : 2)) >= header->file->size)
        return damaged(header->file, "an object header refers to a shared message that does not exist",
                       header->err);
    return 0;
}

static int read_message(struct header *header, const struct message *m)
{
    int rc;
    if (m->type == MESSAGE_CONTINUATION)
        return m->size >= 16 ? read_block(header, st_u64(m->data), st_u64(m->data + 8)) : 0;
    if (m->shared && (rc = check_shared(header, m)) != 0)
        return rc;
    switch (m->type) {
    case MESSAGE_LINK_INFO:
        return check_links(header, m);
    case MESSAGE_TYPE:
        return check_type(header, m);
    case MESSAGE_SYMBOL_TABLE:
        return m->size >= 16 ? st_h5_links_check(header->file, header->base, st_u64(m->data),
                                                 st_u64(m->data + 8), header->err)
                             : truncated(header);
    case MESSAGE_LAYOUT:
        return header->found ? 0 : read_layout(header, m);
    case MESSAGE_FILTERS:
        return read_filters(header, m);
    case MESSAGE_FILL:
    case MESSAGE_FILL_OLD:
        return read_fill(header, m);
    case MESSAGE_EXTERNAL:
        header->out->external = true;
        return 0;
    default:
        return 0;
    }
}

/* `from` is the offset of the messages in the file. */
static int read_messages(struct header *header, const uint8_t *messages, uint64_t size, uint64_t from)
{
    const uint64_t head = header->second ? (header->with_order ? 6 : 4) : 8;
    for (uint64_t at = 0; size - at >= head;) {
        const uint8_t *data = messages + at;
        const struct message message = {.type = header->second ? data[0] : st_u16(data),
                                        .size = header->second ? st_u16(data + 1) : st_u16(data + 2),
                                        .shared = (data[header->second ? 3 : 4] & MESSAGE_SHARED) != 0,
                                        .data = data + head,
                                        .at = from + at + head};
        if (message.size > size - at - head)
            return damaged(header->file, "a message extends past its object header", header->err);
        const int rc = read_message(header, &message);
        if (rc)
            return rc;
        at += head + message.size;
    }
    return 0;
}

/* Reads a block that continues a header; in version 2 it begins with a signature and ends with a
 * checksum. */
static int read_block(struct header *header, uint64_t at, uint64_t size)
{
    uint64_t from;
    if (++header->blocks > BLOCKS_MAX || size > BLOCK_MAX || !st_add(at, header->base, &from))
        return damaged(header->file, "an object header has too many or too large continuation blocks",
                       header->err);
    uint8_t *block = malloc(size ? size : 1);
    if (!block)
        return st_fail(header->err, STOKER_ENOMEM, "%s: out of memory", header->file->path);
    int rc = st_held_read(header->file, from, block, size, header->err);
    if (!rc && header->second)
        rc = size >= 8 && !memcmp(block, "OCHK", 4)
                 ? read_messages(header, block + 4, size - 8, from + 4)
                 : damaged(header->file, "a continued object header is damaged", header->err);
    else if (!rc)
        rc = read_messages(header, block, size, from);
    free(block);
    return rc;
}

/* Reads the first block, which is preceded by its size. */
static int read_header(struct header *header, uint64_t at)
{
    uint8_t head[64] = {0}; /* enough for the longest prefix */
    uint64_t from;
    if (!st_add(at, header->base, &from) || from > header->file->size)
        return damaged(header->file, "an object header is outside the file", header->err);
    const uint64_t there =
        header->file->size - from < sizeof head ? header->file->size - from : sizeof head;
    int rc = st_held_read(header->file, from, head, there, header->err);
    if (rc)
        return rc;
    uint64_t skip = 16, size = st_u32(head + 8);
    if (!memcmp(head, "OHDR", 4)) {
        const uint8_t flags = head[5];
        const uint32_t width = 1u << (flags & 3);
        const uint32_t place = 6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0);
        header->second = true;
        header->with_order = (flags & 4) != 0;
        size = 0;
        for (uint32_t i = width; i > 0; i--)
            size = size << 8 | head[place + i - 1];
        skip = place + width;
    } else if (head[0] != 1) {
        return damaged(header->file, "unknown version of an object header", header->err);
    }
    if (size > BLOCK_MAX)
        return damaged(header->file, "an object header is too large", header->err);
    uint8_t *block = malloc(size ? size : 1);
    if (!block)
        return st_fail(header->err, STOKER_ENOMEM, "%s: out of memory", header->file->path);
    rc = st_held_read(header->file, from + skip, block, size, header->err);
    if (!rc)
        rc = read_messages(header, block, size, from + skip);
    free(block);
    return rc;
}

static int read_all(struct header *header, uint64_t at)
{
    struct st_h5_layout *out = header->out;
    *out = (struct st_h5_layout){0};
    const int rc = read_header(header, at);
    if (rc) {
        free(out->fill);
        out->fill = NULL;
    }
    return rc;
}

int st_h5_layout_read(struct st_h5_layout *out, const struct st_held *file, uint64_t base, uint64_t at,
                      struct stoker_error *err)
{
    struct header header = {.file = file, .base = base, .err = err, .out = out, .shares = true};
    const int rc = read_all(&header, at);
    return rc || header.found ? rc : damaged(file, "a dataset has no layout", err);
}

int st_h5_object_check(const struct st_held *file, uint64_t base, uint64_t at, bool shares,
                       struct stoker_error *err)
{
    struct st_h5_layout layout;
    struct header header = {.file = file, .base = base, .err = err, .out = &layout, .shares = shares};
    const int rc = read_all(&header, at);
    free(layout.fill);
    return rc;
}
