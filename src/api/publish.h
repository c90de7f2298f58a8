/* publish.h - a loader's counters, where another process may read them
 *
 * A page of anonymous memory with the name "stoker-loader", which a process of the same user opens as
 * /proc/PID/fd/N: no file is left behind, whatever happens to its owner. The page holds an even sequence
 * number, or an odd one while it is being written, then lines "KEY VALUE".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_API_PUBLISH_H
#define ST_API_PUBLISH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/stoker.h>

struct st_published;

#define ST_PUBLISHED_NAME  "stoker-loader"
#define ST_PUBLISHED_MAGIC "stkrpub1" /* without its end */
struct st_published_page {
    char magic[8];
    _Atomic uint32_t sequence;
    uint32_t size; /* of the text */
    char text[4096 - 16];
};

/* NULL where the system has no such memory: then nothing is published. */
struct st_published *st_publish_open(void);
/* Whether the counters were last written a tenth of a second ago or earlier; false for NULL. */
bool st_publish_is_due(const struct st_published *published);
/* Writes the counters; `batches` is the length of the epoch. For the thread that calls next. */
void st_publish(struct st_published *published, const struct stoker_stats *stats, uint64_t batches);
void st_publish_close(struct st_published *published); /* NULL is allowed */

#endif
