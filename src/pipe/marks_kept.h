/* marks_kept.h - the marks of a loader's JPEG files, from one epoch to the next
 *
 * A file is decoded for another random crop in each epoch. From the second time on, its decoder starts
 * near the crop (codec/jpeg/marks.h), which takes about a quarter less time. Marks are kept as long as
 * the loader, for as many samples as fit, and are used only for bytes with the checksum of those they
 * were noted in: a file that has changed is a new one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_MARKS_KEPT_H
#define ST_PIPE_MARKS_KEPT_H

#include "base/budget.h"
#include "base/pixels.h"
#include "codec/jpeg/marks.h"

struct st_marks_kept;

/* For samples 0 to `samples` - 1; at most `most` bytes, counted in `budget`, which outlives it. NULL: no
 * memory, or too many samples for that. */
struct st_marks_kept *st_marks_kept_new(uint64_t samples, uint64_t most, struct st_budget *budget);
void st_marks_kept_free(struct st_marks_kept *kept); /* NULL is fine */

/* The marks of the sample's file, for decoding it; none, if there are none for these bytes. Any
 * thread. */
void st_marks_kept_get(struct st_marks_kept *kept, uint64_t sample, struct st_bytes file,
                       struct st_jpeg_marks *marks);
/* Keeps them after decoding, if there are more than before. Any thread. */
void st_marks_kept_put(struct st_marks_kept *kept, uint64_t sample, struct st_bytes file,
                       const struct st_jpeg_marks *marks);

#endif
