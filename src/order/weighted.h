/* weighted.h - draws in proportion to weights, by an alias table
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_ORDER_WEIGHTED_H
#define ST_ORDER_WEIGHTED_H

#include "base/err.h"

struct st_alias {
    double keep;    /* the probability that a draw from this cell returns the cell's own sample */
    uint64_t other; /* the sample returned otherwise */
};

struct st_weighted {
    struct st_alias *cells;
    uint64_t count;
};

/* O(count) time, 16 bytes per sample. Weights must be finite, not negative, and not all 0; count > 0. */
int st_weighted_open(struct st_weighted *weighted, const double *weights, uint64_t count,
                     struct stoker_error *err);
/* The sample at `position` of the epoch's draws. O(1), any thread. */
uint64_t st_weighted_at(const struct st_weighted *weighted, uint64_t seed, uint64_t epoch,
                        uint64_t position);
void st_weighted_close(struct st_weighted *weighted);

#endif
