/* kinds.h - recognises files that are not images, or of a kind that is not decoded
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_KINDS_H
#define ST_CODEC_KINDS_H

#include "base/pixels.h"

struct st_kind {
    const char *name;   /* "a GIF image" */
    const char *remedy; /* "convert it to PNG or WebP" */
};

/* The kind, determined by the first bytes; NULL if unknown. For files that no codec has accepted. */
const struct st_kind *st_kind_of(struct st_bytes in);

#endif
