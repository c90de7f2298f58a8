/* load.h - the parts of reading a run directory
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_LOAD_H
#define ST_DOCTOR_LOAD_H

#include "cli/doctor/run.h"

/* Everything that was allocated for a run, to be freed together. */
struct dr_blocks {
    void **block;
    uint32_t count, room;
};
/* `count` zeroed things of `size` bytes that belong to the run; NULL when out of memory. */
void *dr_blocks_new(struct dr_blocks *blocks, uint64_t count, uint64_t size);
/* Takes over what malloc gave; false (and freed) when out of memory. */
bool dr_blocks_own(struct dr_blocks *blocks, void *block);
void dr_blocks_free(struct dr_blocks *blocks);

/* A file of text as lines, with \n and \\ put back; a last line without its end is left out, for it may
 * still be written. *lines has `count` pointers and NULL behind them. A file that is not there has none.
 */
int dr_read_lines(const char *path, struct dr_blocks *blocks, char ***lines, uint32_t *count,
                  struct stoker_error *err);
/* What a process says of itself. */
int dr_read_said(const char *path, struct dr_blocks *blocks, struct dr_process *process,
                 struct stoker_error *err);
/* Its events, of a file that may be written to at the same time. */
int dr_read_events(const char *path, struct dr_blocks *blocks, struct dr_process *process,
                   struct stoker_error *err);

#endif
