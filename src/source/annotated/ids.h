/* ids.h - finds the places of numbers that are any 64-bit integers
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_ANNOTATED_IDS_H
#define ST_SOURCE_ANNOTATED_IDS_H

#include <stdbool.h>
#include <stdint.h>

/* Ascending numbers without repetition, and for each of about as many equal parts of their range, where
 * it begins. A number is found at once where they are spread evenly, and in logarithmic time however
 * they are chosen. */
struct st_ids {
    const int64_t *sorted; /* the caller's */
    uint32_t count;
    uint32_t *begins;
    int shift;
};

/* False if out of memory. */
bool st_ids_new(struct st_ids *out, const int64_t *sorted, uint32_t count);
/* Where the number is among them; UINT32_MAX: it is not. */
uint32_t st_ids_find(const struct st_ids *ids, int64_t id);
void st_ids_free(struct st_ids *ids); /* safe if zeroed */

/* A number, and where it was in the file. */
struct st_id_at {
    int64_t id;
    uint32_t at;
};
/* Sorts by number, equal ones as in the file, and leaves only the last of equal ones; returns how many
 * are left. */
uint32_t st_ids_sort(struct st_id_at *list, uint32_t count);

#endif
