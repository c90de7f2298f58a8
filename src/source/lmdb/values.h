/* values.h - recognizes and decodes the values of an LMDB database
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_LMDB_VALUES_H
#define ST_SOURCE_LMDB_VALUES_H

#include "source/source.h"

enum st_lmdb_values {
    ST_VALUES_PLAIN,   /* encoded images, or what the user requests */
    ST_VALUES_DATUM,   /* Caffe's */
    ST_VALUES_PAIR,    /* MessagePack: an image and a number */
    ST_VALUES_MSGPACK, /* something else in MessagePack */
    ST_VALUES_PICKLE,
};

/* The kind of all values, judged by the first. */
enum st_lmdb_values st_lmdb_values_of(struct st_bytes first);
/* Extracts the image and label of a DATUM or PAIR; `to` has room for the whole value. */
int st_lmdb_image(enum st_lmdb_values kind, struct st_bytes value, uint8_t *to, struct st_piece *piece,
                  struct stoker_error *err);
/* The same for a value that is an npy file. */
int st_lmdb_array(struct st_bytes value, uint8_t *to, struct st_piece *piece, struct stoker_error *err);

#endif
