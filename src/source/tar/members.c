/* members.c - the members of a tar file, as Python's tarfile sees them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/tar/members.h"
#include "source/shards/trails.h"

#include <stdlib.h>
#include <string.h>

/* Extension headers hold names and a few numbers; one that claims more is a trap. */

static int damaged(const struct st_tar_walk *walk, uint64_t offset, const char *what,
                   struct stoker_error *err)
{
    return st_fail(err, STOKER_ECORRUPT, "%s: byte %llu: %s", walk->window->path,
                   (unsigned long long)offset, what);
}

/* ---- numbers and names of a header ----------------------------------------------------------- */

/* Octal digits between spaces, or base 256 behind 0x80; false for anything else and for what is
 * negative. */
static bool header_number(const uint8_t *field, size_t size, uint64_t *out)
{
    uint64_t value = 0;
    size_t i = 0;
    if (field[0] == 0x80) {
        for (i = 1; i < size; i++) {
            if (value >> 56)
                return false;
            value = value << 8 | field[i];
        }
        *out = value;
        return true;
    }
    while (i < size && (field[i] == ' ' || (field[i] >= '\t' && field[i] <= '\r')))
        i++;
    for (; i < size && field[i] >= '0' && field[i] <= '7'; i++)
        value = value << 3 | (uint64_t)(field[i] - '0');
    while (i < size && (field[i] == ' ' || (field[i] >= '\t' && field[i] <= '\r')))
        i++;
    *out = value;
    return i == size || field[i] == '\0';
}

bool st_tar_is_header(const uint8_t block[ST_TAR_BLOCK])
{
    uint64_t stated;
    uint32_t plain = 8 * ' ';
    int32_t with_signs = 8 * ' '; /* some old programs summed so */
    if (!header_number(block + 148, 8, &stated))
        return false;
    for (int i = 0; i < ST_TAR_BLOCK; i++)
        if (i < 148 || i >= 156) {
            plain += block[i];
            with_signs += (int8_t)block[i];
        }
    return stated == plain || (with_signs >= 0 && stated == (uint32_t)with_signs);
}

static bool all_zero(const uint8_t *block, size_t size)
{
    return size == 0 || (block[0] == 0 && !memcmp(block, block + 1, size - 1));
}

/* prefix + "/" + name. */
static void plain_name(struct st_tar_walk *walk, const uint8_t *block, struct st_bytes *out)
{
    size_t used = 0;
    const size_t prefix = block[156] == 'S' ? 0 : strnlen((const char *)block + 345, 155);
    const size_t name = strnlen((const char *)block, 100);
    if (prefix) {
        memcpy(walk->name, block + 345, prefix);
        walk->name[prefix] = '/';
        used = prefix + 1;
    }
    memcpy(walk->name + used, block, name);
    *out = (struct st_bytes){(const uint8_t *)walk->name, used + name};
}

/* ---- PAX ------------------------------------------------------------------------------------- */

/* What the headers before a member's own say about it. */
struct extension {
    bool has_name, has_real_name, has_size, sparse;
    uint64_t size;
};

static bool keep_name(struct st_tar_walk *walk, const uint8_t *name, size_t size, struct extension *ext)
{
    if (!st_buffer_reserve(&walk->long_name, size + 1)) /* a name may be empty, but never NULL */
        return false;
    memcpy(walk->long_name.data, name, size);
    walk->long_name.size = size;
    ext->has_name = true;
    return true;
}

static bool decimal(const uint8_t *at, size_t size, uint64_t *out)
{
    uint64_t value = 0;
    if (size == 0 || size > 19)
        return false;
    for (size_t i = 0; i < size; i++) {
        if (at[i] < '0' || at[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(at[i] - '0');
    }
    *out = value;
    return value <= INT64_MAX;
}

static bool is_word(const uint8_t *at, size_t size, const char *word)
{
    return size == strlen(word) && !memcmp(at, word, size);
}

/* One "keyword=value"; NULL, or what is wrong with it. */
static const char *pax_record(struct st_tar_walk *walk, const uint8_t *at, size_t size, bool global,
                              struct extension *ext)
{
    const uint8_t *equals = memchr(at, '=', size);
    if (!equals || equals == at)
        return "a PAX record without a keyword";
    const size_t word = (size_t)(equals - at);
    const uint8_t *value = equals + 1;
    size_t length = size - word - 1;
    const bool path = is_word(at, word, "path"), bytes = is_word(at, word, "size");
    if (global)
        return path || bytes ? "a PAX header that gives all members one name or size" : NULL;
    if (word > 11 && !memcmp(at, "GNU.sparse.", 11))
        ext->sparse = true;
    if (bytes) {
        ext->has_size = true;
        if (!decimal(value, length, &ext->size))
            return "a PAX header with a size that is no number";
    }
    const bool real_name = is_word(at, word, "GNU.sparse.name");
    if (real_name || (path && !ext->has_real_name)) {
        ext->has_real_name |= real_name;
        while (path && length && value[length - 1] == '/')
            length--;
        if (memchr(value, '\0', length))
            return "a PAX header with a name that holds a zero byte";
        if (!keep_name(walk, value, length, ext))
            return "out of memory for a name";
    }
    return NULL;
}

/* "27 keyword=value\n" one after another, up to a zero or the end. */
static const char *pax_records(struct st_tar_walk *walk, const uint8_t *at, size_t size, bool global,
                               struct extension *ext)
{
    while (size && *at) {
        size_t digits = 0;
        uint64_t length;
        while (digits < size && at[digits] >= '0' && at[digits] <= '9')
            digits++;
        if (digits == size || at[digits] != ' ' || !decimal(at, digits, &length) || length > size ||
            length < digits + 4 || at[length - 1] != '\n')
            return "a PAX header that makes no sense";
        const char *wrong = pax_record(walk, at + digits + 1, length - digits - 2, global, ext);
        if (wrong)
            return wrong;
        at += length;
        size -= length;
    }
    return NULL;
}

/* ---- walking --------------------------------------------------------------------------------- */

/* The header at walk->at, copied: what is looked at later may move the window. STOKER_END at the end. */
static int take_header(struct st_tar_walk *walk, uint8_t block[ST_TAR_BLOCK], bool more_expected,
                       struct stoker_error *err)
{
    struct st_window *w = walk->window;
    if (!st_window_has(w, walk->at, ST_TAR_BLOCK)) {
        const uint64_t left = walk->at < w->end ? w->end - walk->at : 0;
        const uint8_t *rest = left ? st_window_at(w, walk->at, left, err) : block;
        if (!rest)
            return w->failed;
        if (walk->at > w->end || more_expected || !all_zero(rest, left))
            return damaged(walk, walk->at, "the tar file ends in the middle: it was cut off", err);
        return STOKER_END;
    }
    const uint8_t *seen = st_window_at(w, walk->at, ST_TAR_BLOCK, err);
    if (!seen)
        return w->failed;
    memcpy(block, seen, ST_TAR_BLOCK);
    if (all_zero(block, ST_TAR_BLOCK) && !more_expected)
        return STOKER_END;
    if (!st_tar_is_header(block))
        return damaged(walk, walk->at,
                       "no tar header where one should be: the file is damaged, or no tar file", err);
    return 0;
}

/* A header that only says something about the next. */
static int take_extension(struct st_tar_walk *walk, char type, uint64_t size, struct extension *ext,
                          struct stoker_error *err)
{
    const uint64_t data = walk->at + ST_TAR_BLOCK;
    if (size > ST_TAR_EXTENSION_MAX)
        return damaged(walk, walk->at, "an extension header of more than a mebibyte", err);
    if (!st_window_has(walk->window, data, size))
        return damaged(walk, walk->at, "the tar file ends in the middle: it was cut off", err);
    const uint8_t *bytes = st_window_at(walk->window, data, size, err);
    if (!bytes)
        return walk->window->failed;
    const char *wrong = NULL;
    if (type == 'L')
        wrong = keep_name(walk, bytes, strnlen((const char *)bytes, size), ext)
                    ? NULL
                    : "out of memory for a name";
    else if (type != 'K')
        wrong = pax_records(walk, bytes, size, type == 'g', ext);
    if (wrong)
        return damaged(walk, walk->at, wrong, err);
    walk->at = data + st_align(size, ST_TAR_BLOCK);
    return 0;
}

/* GNU's old sparse format puts more blocks of its map behind the header. */
static int skip_sparse_map(struct st_tar_walk *walk, const uint8_t *header, struct stoker_error *err)
{
    bool more = header[156] == 'S' && header[482];
    while (more) {
        walk->at += ST_TAR_BLOCK;
        if (!st_window_has(walk->window, walk->at, ST_TAR_BLOCK))
            return damaged(walk, walk->at, "the tar file ends in the middle: it was cut off", err);
        const uint8_t *block = st_window_at(walk->window, walk->at, ST_TAR_BLOCK, err);
        if (!block)
            return walk->window->failed;
        more = block[504] != 0;
    }
    return 0;
}

/* Links, devices and folders have no payload, whatever size they state. */
static bool has_payload(char type) { return !type || !strchr("123456", type); }

static void fill_member(struct st_tar_walk *walk, const uint8_t *block, uint64_t size,
                        const struct extension *ext, struct st_tar_member *out)
{
    const char type = (char)block[156];
    out->data = walk->at + ST_TAR_BLOCK;
    out->size = ext->has_size ? ext->size : size;
    if (ext->has_name)
        out->name = (struct st_bytes){walk->long_name.data, walk->long_name.size};
    else
        plain_name(walk, block, &out->name);
    const bool slash = out->name.size && out->name.data[out->name.size - 1] == '/';
    out->regular = type == '0' || type == '7' || type == 'S' || (type == '\0' && !slash);
    out->sparse = type == 'S' || ext->sparse;
}

int st_tar_next(struct st_tar_walk *walk, struct st_tar_member *out, struct stoker_error *err)
{
    uint8_t block[ST_TAR_BLOCK];
    struct extension ext = {0};
    out->start = walk->at;
    for (bool more = false;; more = true) {
        uint64_t size;
        const int rc = take_header(walk, block, more, err);
        if (rc)
            return rc;
        if (!header_number(block + 124, 12, &size) || size > INT64_MAX)
            return damaged(walk, walk->at, "a header with a size that is no number", err);
        const char type = (char)block[156];
        if (type && strchr("LKxXg", type)) {
            const int failed = take_extension(walk, type, size, &ext, err);
            if (failed)
                return failed;
            continue;
        }
        const int cut = skip_sparse_map(walk, block, err);
        if (cut)
            return cut;
        fill_member(walk, block, size, &ext, out);
        uint64_t end = out->data;
        if (has_payload(type) && (!st_add(out->data, out->size, &end) || end > INT64_MAX))
            return damaged(walk, walk->at, "a header with a size that no file can have", err);
        walk->at = st_trail_behind(walk->window, end, ST_TAR_BLOCK);
        return 0;
    }
}

void st_tar_walk_free(struct st_tar_walk *walk) { st_buffer_free(&walk->long_name); }
