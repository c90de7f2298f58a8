/* load.h - the parts that read a run directory
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_LOAD_H
#define ST_DOCTOR_LOAD_H

#include "doctor/run/run.h"

/* All memory of a run, freed together. */
struct dr_blocks {
    void **block;
    uint32_t count, room;
};
/* Allocates `count` zeroed items of `size` bytes that belong to the run; NULL when out of memory. */
void *dr_blocks_new(struct dr_blocks *blocks, uint64_t count, uint64_t size);
/* Takes ownership of memory from malloc; false (and freed) when out of memory. */
bool dr_blocks_own(struct dr_blocks *blocks, void *block);
void dr_blocks_free(struct dr_blocks *blocks);

/* The lines of a text file, unescaped. A last line without a line break is dropped, since it may still
 * be written. *lines has `count` pointers and a final NULL. A missing file has no lines. */
int dr_read_lines(const char *path, struct dr_blocks *blocks, char ***lines, uint32_t *count,
                  struct stoker_error *err);
/* What a process reports about itself. */
int dr_read_said(const char *path, struct dr_blocks *blocks, struct dr_process *process,
                 struct stoker_error *err);
/* Its events, from a file that may be written to at the same time. */
int dr_read_events(const char *path, struct dr_blocks *blocks, struct dr_process *process,
                   struct stoker_error *err);

#endif
