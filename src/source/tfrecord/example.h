/* example.h - TensorFlow's messages Example and SequenceExample, as they lie in a record
 *
 * A map from names to lists of bytes, floats or whole numbers. Nothing is copied to find them. In a
 * SequenceExample the names of its context come first; those of its feature lists are the values of all
 * steps, one after another.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TFRECORD_EXAMPLE_H
#define ST_SOURCE_TFRECORD_EXAMPLE_H

#include "base/pixels.h"

#include <stdbool.h>

/* The numbers of the format. */
enum st_feature_kind { ST_FEATURE_NONE, ST_FEATURE_BYTES, ST_FEATURE_FLOATS, ST_FEATURE_INTS };

struct st_feature {
    struct st_bytes name;
    struct st_bytes message; /* a Feature, or a FeatureList */
    bool list, found;
    enum st_feature_kind kind; /* NONE: it holds nothing, as good as absent */
    uint64_t count;            /* values */
    struct st_bytes first;     /* BYTES: the first value */
    const uint8_t *run;        /* FLOATS: all values, where they lie beside each other */
};

/* Finds the features with the names that stand in `features`, and counts their values. Of two with one
 * name the later counts. NULL, or what is wrong with the record. */
const char *st_example_find(struct st_bytes record, struct st_feature *features, uint32_t count);

/* Lists the features of a record, `room` at the most: names, kinds and counts. */
const char *st_example_list(struct st_bytes record, struct st_feature *features, uint32_t room,
                            uint32_t *count);

/* The values of a feature that was found, as many as it counts; in this machine's byte order. */
void st_feature_ints(const struct st_feature *feature, int64_t *out);
void st_feature_floats(const struct st_feature *feature, float *out);

#endif
