/* kinds.h - recognises files that are not images, or of a kind that is not decoded
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_KINDS_H
#define ST_CODEC_KINDS_H

#include "base/pixels.h"

#include <stdbool.h>
#include <string.h>

static inline bool st_has(struct st_bytes in, size_t at, const char *magic, size_t size)
{
    return in.size >= at && in.size - at >= size && memcmp(in.data + at, magic, size) == 0;
}

struct st_kind {
    const char *name;   /* "a GIF image" */
    const char *remedy; /* "convert it to PNG or WebP" */
};

/* The kind, determined by the first bytes; NULL if unknown. For files that no codec has accepted. */
const struct st_kind *st_kind_of(struct st_bytes in);

#endif
