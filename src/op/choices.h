/* choices.h - which part of a sample some ops have chosen by its mask, or by its boxes
 *
 * The steps run once for each target, and these before the image. An op that has to see a target chooses
 * when it runs on that one, which comes first; for the others and the image it does what it has chosen.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_CHOICES_H
#define ST_OP_CHOICES_H

#include "base/err.h"
#include "base/pixels.h"

#include <stdbool.h>

/* The target that an op has to see. */
enum st_guide { ST_GUIDE_NONE, ST_GUIDE_MASK, ST_GUIDE_BOXES };

enum { ST_CHOICES_MAX = 16 };
struct st_choices {
    bool guided; /* the samples have the target */
    uint32_t count;
    struct {
        const void *by; /* the op's state */
        struct st_region region;
    } choice[ST_CHOICES_MAX];
};

/* What an op has chosen for this sample; NULL: nothing yet. */
const struct st_region *st_choice_of(const struct st_choices *choices, const void *by);
int st_choice_add(struct st_choices *choices, const void *by, struct st_region region,
                  struct stoker_error *err);

#endif
