/* patch.h - new arguments for a call of DataLoader in the text of a Python program
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_TUNE_PATCH_H
#define ST_DOCTOR_TUNE_PATCH_H

#include "stoker/stoker.h"

#include <stddef.h>

struct dr_setting {
    const char *name;
    char value[16];
};

struct dr_patch {
    size_t begin, end; /* the call's bytes in the text, from its name to its closing bracket */
    char *call;        /* what takes their place; the caller frees it */
};

/* Sets keyword arguments of the call that begins in `line` (from 1): those that are there get the new
 * value, the others are added in the manner of the last one. Everything else keeps its bytes, comments
 * included. Fails with a sentence where the call cannot be changed safely (settings that come from
 * **name, or by position). */
int dr_patch_call(struct dr_patch *out, const char *text, size_t size, int line,
                  const struct dr_setting *settings, uint32_t count, struct stoker_error *err);

/* A whole file of text, which the caller frees; NULL: it cannot be read, or is too large for a program.
 */
char *dr_patch_read(const char *path, size_t *size);
/* Writes `text` with the change in it over the file it was read from. */
int dr_patch_write(const char *path, const char *text, size_t size, const struct dr_patch *patch,
                   struct stoker_error *err);

#endif
