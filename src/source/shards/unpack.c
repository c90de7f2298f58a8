/* unpack.c - decompresses whole buffers: gzip, zlib and zstd
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/shards/unpack.h"
#include "st_config.h"

#include <endian.h>
#include <string.h>
#include <zlib.h>
#if ST_HAVE_DEFLATE
#include <libdeflate.h>
#endif
#if ST_HAVE_ZSTD
#include <zstd.h>
#endif

#define STEP      (1u << 20)
#define LAST_STEP (64u << 10)

static const char *const packing_names[] = {"nothing", "gzip", "zlib", "zstd", "xz", "bzip2"};

const char *st_packing_name(enum st_packing packing) { return packing_names[packing]; }

enum st_packing st_packing_of(const uint8_t *head, size_t size)
{
    static const struct {
        enum st_packing packing;
        char magic[7];
        uint8_t size;
    } known[] = {{ST_PACKED_GZIP, "\x1f\x8b", 2},
                 {ST_PACKED_ZSTD, "\x28\xb5\x2f\xfd", 4},
                 {ST_PACKED_XZ,
                  "\xfd"
                  "7zXZ",
                  6},
                 {ST_PACKED_BZIP2, "BZh", 3}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (size >= known[i].size && !memcmp(head, known[i].magic, known[i].size))
            return known[i].packing;
    return ST_PACKED_NOT;
}

uint64_t st_unpack_limit(uint64_t packed)
{
    const uint64_t least = 64ull << 20, most = 4ull << 30;
    const uint64_t scaled = packed < most / 100 ? packed * 100 : most;
    return scaled < least ? least : scaled;
}

/* ---- output ----------------------------------------------------------------------------------- */

struct output {
    struct st_buffer *buffer;
    uint64_t began, limit;
    const char *name;
    struct stoker_error *err;
    struct st_allowance *shared; /* NULL: none; otherwise the buffer's capacity is counted in it */
};

bool st_allowance_take(struct st_allowance *allowance, uint64_t bytes)
{
    unsigned long long used = atomic_load(&allowance->used);
    do
        if (used > allowance->limit || bytes > allowance->limit - used)
            return false;
    while (!atomic_compare_exchange_weak(&allowance->used, &used, used + bytes));
    return true;
}

void st_allowance_give(struct st_allowance *allowance, uint64_t bytes)
{
    atomic_fetch_sub(&allowance->used, bytes);
}

/* Makes room for `wanted` bytes of output in total; false: out of memory or allowance. */
static bool keep_room(struct output *out, uint64_t wanted)
{
    struct st_buffer *buffer = out->buffer;
    const uint64_t capacity = out->began + wanted;
    if (!out->shared || capacity <= buffer->capacity)
        return st_buffer_keep(buffer, capacity);
    const uint64_t more = capacity - buffer->capacity;
    if (!st_allowance_take(out->shared, more))
        return false;
    if (st_buffer_resize(buffer, capacity))
        return true;
    st_allowance_give(out->shared, more);
    return false;
}

static int over_limit(const struct output *out)
{
    return st_fail(out->err, STOKER_ELIMIT, "%s: decompresses to more than the limit of %llu bytes",
                   out->name, (unsigned long long)out->limit);
}

/* Makes room for at least one more byte, within `limit` in total. */
static int more_room(struct output *out)
{
    const uint64_t used = out->buffer->size - out->began;
    uint64_t wanted = used < STEP ? STEP : used * 2;
    if (used >= out->limit)
        return over_limit(out);
    if (wanted > out->limit)
        wanted = out->limit;
    if (out->buffer->capacity - out->began > used || keep_room(out, wanted))
        return 0;
    if (out->shared) /* the rest of the allowance may still suffice */
        return keep_room(out, used + STEP) || keep_room(out, used + LAST_STEP) ? 0 : over_limit(out);
    return st_fail(out->err, STOKER_ENOMEM, "%s: out of memory for %llu decompressed bytes", out->name,
                   (unsigned long long)wanted);
}

static uint64_t room_left(const struct output *out)
{
    const uint64_t all = out->buffer->capacity - out->buffer->size;
    const uint64_t allowed = out->limit - (out->buffer->size - out->began);
    return all < allowed ? all : allowed;
}

static int damaged(const struct output *out, enum st_packing packing, const char *what)
{
    return st_fail(out->err, STOKER_ECORRUPT, "%s: the %s data are damaged: %s", out->name,
                   packing_names[packing], what);
}

/* ---- deflate --------------------------------------------------------------------------------- */

static int inflate_all(enum st_packing packing, z_stream *z, struct st_bytes in, struct output *out)
{
    uint64_t fed = 0;
    for (;;) {
        if (z->avail_in == 0) {
            const uint64_t left = in.size - fed, part = left < STEP ? left : STEP;
            z->next_in = (Bytef *)(uintptr_t)(in.data + fed);
            z->avail_in = (uInt)part;
            fed += part;
        }
        int rc = more_room(out);
        if (rc)
            return rc;
        const uint64_t room = room_left(out), part = room < 1u << 30 ? room : 1u << 30;
        z->next_out = out->buffer->data + out->buffer->size;
        z->avail_out = (uInt)part;
        rc = inflate(z, Z_NO_FLUSH);
        out->buffer->size += part - z->avail_out;
        const bool ended = z->avail_in == 0 && fed == in.size;
        if (rc == Z_STREAM_END) {
            /* Zeros after the last member are padding. */
            while (packing == ST_PACKED_GZIP && z->avail_in && !*z->next_in)
                z->next_in++, z->avail_in--;
            if (z->avail_in == 0 && fed == in.size)
                return 0;
            if (packing != ST_PACKED_GZIP || inflateReset(z) != Z_OK)
                return damaged(out, packing, "extra bytes after the end");
        } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
            return damaged(out, packing, z->msg ? z->msg : "invalid stream");
        } else if (ended && z->avail_out) {
            return damaged(out, packing, "truncated");
        }
    }
}

#if ST_HAVE_DEFLATE
/* Handles a single member that states its true size; false: nothing was done. Passing NULL makes a
 * shorter output an error. */
static bool deflate_at_once(enum st_packing packing, struct st_bytes in, struct output *out)
{
    uint32_t stated; /* the size of the last member, modulo 2^32 */
    if (packing != ST_PACKED_GZIP || in.size < 18)
        return false;
    memcpy(&stated, in.data + in.size - 4, sizeof stated);
    stated = le32toh(stated);
    if (stated > out->limit || stated / 1032 > in.size || !keep_room(out, stated))
        return false;
    struct libdeflate_decompressor *own = libdeflate_alloc_decompressor();
    size_t read = 0;
    const bool whole =
        own &&
        libdeflate_gzip_decompress_ex(own, in.data, in.size, out->buffer->data + out->began, stated,
                                      &read, NULL) == LIBDEFLATE_SUCCESS &&
        read == in.size;
    libdeflate_free_decompressor(own);
    out->buffer->size = out->began + (whole ? stated : 0);
    return whole;
}
#endif

static int unpack_deflate(enum st_packing packing, struct st_bytes in, struct output *out)
{
#if ST_HAVE_DEFLATE
    if (deflate_at_once(packing, in, out))
        return 0;
#endif
    z_stream z = {0};
    if (inflateInit2(&z, packing == ST_PACKED_GZIP ? 16 + MAX_WBITS : MAX_WBITS) != Z_OK)
        return st_fail(out->err, STOKER_ENOMEM, "%s: out of memory for zlib", out->name);
    const int rc = inflate_all(packing, &z, in, out);
    inflateEnd(&z);
    return rc;
}

/* ---- zstd ------------------------------------------------------------------------------------ */

#if ST_HAVE_ZSTD
static int zstd_all(ZSTD_DStream *z, struct st_bytes in, struct output *out)
{
    ZSTD_inBuffer from = {in.data, in.size, 0};
    size_t hint = 1;
    const unsigned long long stated = ZSTD_getFrameContentSize(in.data, in.size);
    if (stated <= out->limit) /* otherwise unknown, or rejected below */
        keep_room(out, stated);
    while (hint || from.pos < from.size) {
        const int rc = more_room(out);
        if (rc)
            return rc;
        ZSTD_outBuffer to = {out->buffer->data + out->buffer->size, room_left(out), 0};
        hint = ZSTD_decompressStream(z, &to, &from);
        out->buffer->size += to.pos;
        if (ZSTD_isError(hint))
            return damaged(out, ST_PACKED_ZSTD, ZSTD_getErrorName(hint));
        if (hint && from.pos == from.size && to.pos < to.size)
            return damaged(out, ST_PACKED_ZSTD, "truncated");
    }
    return 0;
}

static int unpack_zstd(struct st_bytes in, struct output *out)
{
    ZSTD_DStream *z = ZSTD_createDStream();
    if (!z)
        return st_fail(out->err, STOKER_ENOMEM, "%s: out of memory for zstd", out->name);
    const int rc = zstd_all(z, in, out);
    ZSTD_freeDStream(z);
    return rc;
}
#else
static int unpack_zstd(struct st_bytes in, struct output *out)
{
    (void)in;
    return st_fail(
        out->err, STOKER_EUNSUPPORTED,
        "%s: compressed with zstd, which this build does not support; decompress it with `zstd -d`",
        out->name);
}
#endif

static int unpack(enum st_packing packing, struct st_bytes in, struct output *out)
{
    switch (packing) {
    case ST_PACKED_GZIP:
    case ST_PACKED_ZLIB:
        return unpack_deflate(packing, in, out);
    case ST_PACKED_ZSTD:
        return unpack_zstd(in, out);
    default:
        return st_fail(out->err, STOKER_EUNSUPPORTED,
                       "%s: compressed with %s, which is not supported; decompress it first", out->name,
                       packing_names[packing]);
    }
}

int st_unpack(enum st_packing packing, struct st_bytes in, uint64_t limit, struct st_buffer *buffer,
              const char *name, struct stoker_error *err)
{
    struct output out = {buffer, buffer->size, limit, name, err, NULL};
    return unpack(packing, in, &out);
}

int st_unpack_allowed(enum st_packing packing, struct st_bytes in, struct st_allowance *allowance,
                      struct st_buffer *buffer, const char *name, struct stoker_error *err)
{
    *buffer = (struct st_buffer){0};
    struct output out = {buffer, 0, allowance->limit, name, err, allowance};
    const int rc = unpack(packing, in, &out);
    const uint64_t counted = buffer->capacity;
    if (rc)
        st_buffer_free(buffer);
    else
        st_buffer_resize(buffer, buffer->size); /* shrink; on failure the block keeps its size */
    st_allowance_give(allowance, counted - buffer->capacity);
    return rc;
}
