/* choices.c - which part of a sample some ops have chosen by its mask, or by its boxes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/choices.h"

const struct st_region *st_choice_of(const struct st_choices *choices, const void *by)
{
    for (uint32_t k = 0; k < choices->count; k++)
        if (choices->choice[k].by == by)
            return &choices->choice[k].region;
    return NULL;
}

int st_choice_add(struct st_choices *choices, const void *by, struct st_region region,
                  struct stoker_error *err)
{
    if (choices->count == ST_CHOICES_MAX)
        return st_fail(err, STOKER_ELIMIT, "at most %d steps can choose by a mask or by boxes",
                       ST_CHOICES_MAX);
    choices->choice[choices->count].by = by;
    choices->choice[choices->count++].region = region;
    return STOKER_OK;
}
