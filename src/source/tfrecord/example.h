/* example.h - parses TensorFlow's Example and SequenceExample messages
 *
 * A message is a map from names to lists of bytes, floats or integers. Finding them copies nothing. In a
 * SequenceExample the features of its context take precedence; a feature list gives the concatenated
 * values of all steps.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TFRECORD_EXAMPLE_H
#define ST_SOURCE_TFRECORD_EXAMPLE_H

#include "base/pixels.h"

#include <stdbool.h>

/* The values are field numbers of the format. */
enum st_feature_kind { ST_FEATURE_NONE, ST_FEATURE_BYTES, ST_FEATURE_FLOATS, ST_FEATURE_INTS };

struct st_feature {
    struct st_bytes name;
    struct st_bytes message; /* a Feature, or a FeatureList */
    bool list, found;
    enum st_feature_kind kind; /* NONE: it is empty, which counts as absent */
    uint64_t count;            /* number of values */
    struct st_bytes first;     /* BYTES: the first value */
    const uint8_t *run;        /* FLOATS: all values, if they are contiguous */
};

/* Finds the features whose names are set in `features`, and counts their values. If a name occurs twice,
 * the later one counts. Returns NULL, or what is wrong with the record. */
const char *st_example_find(struct st_bytes record, struct st_feature *features, uint32_t count);

/* Lists at most `room` features of a record: names, kinds and counts. */
const char *st_example_list(struct st_bytes record, struct st_feature *features, uint32_t room,
                            uint32_t *count);

/* Copies all `count` values of a feature, in this machine's byte order. */
void st_feature_ints(const struct st_feature *feature, int64_t *out);
void st_feature_floats(const struct st_feature *feature, float *out);

#endif
