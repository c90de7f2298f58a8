/* fields.h - what the members of a tar file are, by their suffixes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TAR_FIELDS_H
#define ST_SOURCE_TAR_FIELDS_H

#include "source/field_list.h"
#include "source/shards/unpack.h"

enum { ST_TAR_ALTERNATIVES = 8 };

/* A field of a sample: the first of these suffixes that the sample has. "__key__" and "__url__" are the
 * sample's key and its archive's path. */
struct st_tar_field {
    enum { ST_TAR_MEMBER, ST_TAR_KEY, ST_TAR_URL } what;
    uint32_t count;
    struct st_bytes suffixes[ST_TAR_ALTERNATIVES];
};

/* Reads "jpg;jpeg;png". `field` says what the bytes are: as asked for, else by the suffix. Pickles are
 * refused unless asked for as bytes: to open one is to run it. */
int st_tar_field_parse(struct st_tar_field *out, struct st_field *field,
                       const struct st_field_wish *wish, struct stoker_error *err);

/* Which of the field's suffixes this is, counted from 0; a member packed on its own (".gz", ".zst")
 * comes after the one that is not. UINT32_MAX: none. */
uint32_t st_tar_field_rank(const struct st_tar_field *field, const char *suffix);
/* How a member is packed, by its suffix. */
enum st_packing st_tar_suffix_packing(const char *suffix);

/* Whether a member with this suffix is taken when nobody said which: everything but pickles. IMAGE and
 * AUDIO come first in a sample. */
bool st_tar_suffix_kind(const char *suffix, size_t size, enum st_field_kind *out);

/* Makes a piece of a member's bytes. `scratch` has room for as many bytes again. */
int st_tar_piece(const struct st_field *field, struct st_bytes bytes, uint8_t *scratch,
                 struct st_piece *out, const char *where, struct stoker_error *err);

#endif
