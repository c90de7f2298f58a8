/* frames.h - the frames of a TFRecord file: length, its checksum, the record, its checksum
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TFRECORD_FRAMES_H
#define ST_SOURCE_TFRECORD_FRAMES_H

#include "source/shards/shards.h"

enum { ST_RECORD_HEAD = 12, ST_RECORD_TAIL = 4, ST_RECORD_FRAME = ST_RECORD_HEAD + ST_RECORD_TAIL };

extern const struct st_shard_kind st_shard_kind_record;

/* Reads the length from a frame's head; false: the head's checksum is wrong. */
bool st_record_length(const uint8_t head[ST_RECORD_HEAD], uint64_t *length);
/* Finds the record in a frame of exactly these bytes; returns NULL, or what is wrong with it. */
const char *st_record_open(struct st_bytes frame, struct st_bytes *record);

#endif
