/* patch.h - changes the arguments of a DataLoader call, or its import, in the text of a Python program
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
    size_t begin, end; /* the bytes of the text that it replaces: a call, from its name to its closing
                          bracket; an import, to the end of its line */
    char *call;        /* the new text; the caller frees it */
};

/* Sets keyword arguments of the call that begins in `line` (from 1): existing ones get the new value,
 * the others are added in the layout of the last one. Everything else stays unchanged, including
 * comments. Fails if the call cannot be changed safely (settings from **name, or by position). */
int dr_patch_call(struct dr_patch *out, const char *text, size_t size, int line,
                  const struct dr_setting *settings, uint32_t count, struct stoker_error *err);

/* Changes the first 'from torch.utils.data import ..., DataLoader' on one line, so that DataLoader is
 * Stoker's. Fails if there is none. */
int dr_patch_import(struct dr_patch *out, const char *text, size_t size, struct stoker_error *err);

/* The text of a file, which the caller frees; NULL: it cannot be read, or is too large for a program. */
char *dr_patch_read(const char *path, size_t *size);
/* Replaces the file by `text` with the change. */
int dr_patch_write(const char *path, const char *text, size_t size, const struct dr_patch *patch,
                   struct stoker_error *err);

#endif
