/* msgpack.c - parses as much MessagePack as it takes to find an image and its label
 *
 * The first byte of a value is a small number, or a kind followed by a length (1, 2, 4 or 8 bytes,
 * big-endian).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/lmdb/msgpack.h"

enum kind { KIND_NUMBER, KIND_BYTES, KIND_ARRAY, KIND_MAP, KIND_OTHER };
enum { DEPTH_MAX = 16 };

struct cursor {
    const uint8_t *at, *end;
};

struct token {
    enum kind kind;
    uint64_t number; /* NUMBER, in two's complement; ARRAY and MAP: how many values follow */
    bool fits;       /* NUMBER: fits into int64 */
    struct st_bytes bytes;
};

static bool take_number(struct cursor *c, unsigned width, uint64_t *out)
{
    if ((uint64_t)(c->end - c->at) < width)
        return false;
    *out = 0;
    for (unsigned i = 0; i < width; i++)
        *out = *out << 8 | *c->at++;
    return true;
}

static bool take_bytes(struct cursor *c, struct token *out, enum kind kind, uint64_t size)
{
    if (size > (uint64_t)(c->end - c->at))
        return false;
    *out = (struct token){.kind = kind, .bytes = {c->at, size}};
    c->at += size;
    return true;
}

static bool take_integer(struct cursor *c, struct token *out, unsigned width, bool is_signed)
{
    uint64_t value;
    if (!take_number(c, width, &value))
        return false;
    if (is_signed && width < 8 && value >> (8 * width - 1))
        value |= UINT64_MAX << (8 * width);
    *out = (struct token){.kind = KIND_NUMBER, .number = value, .fits = is_signed || value <= INT64_MAX};
    return true;
}

static bool take_several(struct cursor *c, struct token *out, enum kind kind, unsigned width)
{
    uint64_t count;
    if (!take_number(c, width, &count))
        return false;
    *out = (struct token){.kind = kind, .number = kind == KIND_MAP ? 2 * count : count};
    return true;
}

static bool take_sized(struct cursor *c, struct token *out, enum kind kind, unsigned width,
                       unsigned more)
{
    uint64_t size;
    return take_number(c, width, &size) && take_bytes(c, out, kind, size + more);
}

static bool take_token(struct cursor *c, struct token *out)
{
    if (c->at == c->end)
        return false;
    const uint8_t byte = *c->at++;
    if (byte < 0x80 || byte >= 0xe0) {
        *out =
            (struct token){.kind = KIND_NUMBER, .number = (uint64_t)(int64_t)(int8_t)byte, .fits = true};
        return true;
    }
    if (byte < 0xa0) {
        const bool map = byte < 0x90;
        *out = (struct token){.kind = map ? KIND_MAP : KIND_ARRAY,
                              .number = (byte & 15u) * (map ? 2u : 1u)};
        return true;
    }
    if (byte < 0xc0)
        return take_bytes(c, out, KIND_BYTES, byte & 31u);
    if (byte >= 0xcc && byte <= 0xd3)
        return take_integer(c, out, 1u << (byte & 3), byte >= 0xd0);
    if (byte >= 0xd4 && byte <= 0xd8)
        return take_bytes(c, out, KIND_OTHER, (1u << (byte - 0xd4)) + 1);
    switch (byte) {
    case 0xc0: /* nil, false and true */
    case 0xc2:
    case 0xc3:
        return take_bytes(c, out, KIND_OTHER, 0);
    case 0xc4:
    case 0xc5:
    case 0xc6:
        return take_sized(c, out, KIND_BYTES, 1u << (byte - 0xc4), 0);
    case 0xc7:
    case 0xc8:
    case 0xc9: /* preceded by a type */
        return take_sized(c, out, KIND_OTHER, 1u << (byte - 0xc7), 1);
    case 0xca:
    case 0xcb:
        return take_bytes(c, out, KIND_OTHER, byte == 0xca ? 4 : 8);
    case 0xd9:
    case 0xda:
    case 0xdb:
        return take_sized(c, out, KIND_BYTES, 1u << (byte - 0xd9), 0);
    case 0xdc:
    case 0xdd:
        return take_several(c, out, KIND_ARRAY, 2u << (byte - 0xdc));
    case 0xde:
    case 0xdf:
        return take_several(c, out, KIND_MAP, 2u << (byte - 0xde));
    default: /* 0xc1 is unused */
        return false;
    }
}

/* Each value takes at least one byte, so a bogus count cannot loop longer than there are bytes. */
static bool skip_value(struct cursor *c)
{
    uint64_t left[DEPTH_MAX] = {1};
    for (int depth = 0; depth >= 0;) {
        struct token token;
        if (!left[depth]) {
            depth--;
            continue;
        }
        left[depth]--;
        if (!take_token(c, &token))
            return false;
        if (token.kind == KIND_ARRAY || token.kind == KIND_MAP) {
            if (++depth == DEPTH_MAX)
                return false;
            left[depth] = token.number;
        }
    }
    return true;
}

bool st_msgpack_is_document(struct st_bytes bytes)
{
    struct cursor c = {bytes.data, bytes.data + bytes.size}, first = c;
    struct token token;
    return take_token(&first, &token) && (token.kind == KIND_ARRAY || token.kind == KIND_MAP) &&
           token.number && skip_value(&c) && c.at == c.end;
}

bool st_msgpack_pair(struct st_bytes bytes, struct st_bytes *data, int64_t *number)
{
    struct cursor c = {bytes.data, bytes.data + bytes.size};
    struct token head, pair[2];
    if (!take_token(&c, &head) || head.kind != KIND_ARRAY || head.number != 2 ||
        !take_token(&c, &pair[0]) || !take_token(&c, &pair[1]) || c.at != c.end)
        return false;
    const struct token *image = &pair[pair[0].kind != KIND_BYTES],
                       *label = &pair[pair[0].kind == KIND_BYTES];
    *data = image->bytes;
    *number = (int64_t)label->number;
    return image->kind == KIND_BYTES && label->kind == KIND_NUMBER && label->fits;
}
