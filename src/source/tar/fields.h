/* fields.h - what the members of a tar file contain, judged by their suffixes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TAR_FIELDS_H
#define ST_SOURCE_TAR_FIELDS_H

#include "source/fields/field_list.h"
#include "source/shards/unpack.h"

enum { ST_TAR_ALTERNATIVES = 8 };

/* A field of a sample: the first of these suffixes that the sample has. "__key__" and "__url__" stand
 * for the sample's key and its archive's path. */
struct st_tar_field {
    enum { ST_TAR_MEMBER, ST_TAR_KEY, ST_TAR_URL } what;
    uint32_t count;
    struct st_bytes suffixes[ST_TAR_ALTERNATIVES];
};

/* Parses "jpg;jpeg;png" and sets the field's kind: as requested, otherwise by the suffix. Pickles are
 * rejected unless requested as bytes, because loading one can run code. */
int st_tar_field_parse(struct st_tar_field *out, struct st_field *field,
                       const struct st_field_request *request, struct stoker_error *err);

/* The rank of this suffix among the field's, from 0; a compressed member (".gz", ".zst") ranks after the
 * uncompressed one. UINT32_MAX: none of them. */
uint32_t st_tar_field_rank(const struct st_tar_field *field, const char *suffix);
/* How a member is compressed, judged by its suffix. */
enum st_packing st_tar_suffix_packing(const char *suffix);

/* The kind of a member with this suffix, and whether it is read by default: everything except pickles.
 * IMAGE and AUDIO come first in a sample. */
bool st_tar_suffix_kind(const char *suffix, size_t size, enum st_field_kind *out);

/* Converts a member's bytes to a piece. `scratch` has room for bytes.size bytes. */
int st_tar_piece(const struct st_field *field, struct st_bytes bytes, uint8_t *scratch,
                 struct st_piece *out, const char *where, struct stoker_error *err);

#endif
