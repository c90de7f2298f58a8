/* values.h - what the values of an LMDB database are, and what is in them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_LMDB_VALUES_H
#define ST_SOURCE_LMDB_VALUES_H

#include "source/source.h"

enum st_lmdb_values {
    ST_VALUES_PLAIN,   /* encoded images, or whatever the user says */
    ST_VALUES_DATUM,   /* Caffe's */
    ST_VALUES_PAIR,    /* MessagePack: an image and a number */
    ST_VALUES_MSGPACK, /* something else in MessagePack */
    ST_VALUES_PICKLE,
};

/* What the first value tells. */
enum st_lmdb_values st_lmdb_values_of(struct st_bytes first);
/* The image and the label of a DATUM or a PAIR; `to` has room for the whole value. */
int st_lmdb_image(enum st_lmdb_values kind, struct st_bytes value, uint8_t *to, struct st_piece *piece,
                  struct stoker_error *err);
/* A value that is an npy file; as above. */
int st_lmdb_array(struct st_bytes value, uint8_t *to, struct st_piece *piece, struct stoker_error *err);

#endif
