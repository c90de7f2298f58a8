/* pull.h - reads JSON value by value, as the caller expects them
 *
 * Functions return false after an error, which the first one has described in `err` with the file and
 * the byte; then nothing more is read. `what` is the name of what is read, for that sentence: "the
 * 'bbox' of an annotation".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_ANNOTATED_PULL_H
#define ST_SOURCE_ANNOTATED_PULL_H

#include "base/err.h"
#include "base/mem.h"
#include "base/pixels.h"
#include "source/text/cursor.h"

struct st_pull {
    struct st_text text;
    const char *path;  /* for messages */
    const char *begin; /* byte 0 of the file; messages count from here */
    struct stoker_error *err;
    int rc;
    char key[32];
};

/* Describes damage at the address `at` as "PATH: SENTENCE, at byte N"; always false. */
bool st_pull_fail(struct st_pull *pull, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for an error that is none of the file; always false. */
bool st_pull_no_memory(struct st_pull *pull);

/* The first character of the next value; '\0' at the end of the file. */
char st_pull_peek(struct st_pull *pull);
/* Enters a list or an object: `open` is its bracket. */
bool st_pull_enter(struct st_pull *pull, char open, const char *what);
/* Whether another item of the list follows; otherwise the list is left, or there is an error. *began is
 * initially false. */
bool st_pull_item(struct st_pull *pull, bool *began);
/* The same for a member of an object, whose key it reads. The key is valid until the next call. */
bool st_pull_member(struct st_pull *pull, bool *began, struct st_bytes *key);

/* A number without fraction, however it is written. */
bool st_pull_int(struct st_pull *pull, const char *what, int64_t *out);
/* A finite number. */
bool st_pull_number(struct st_pull *pull, const char *what, double *out);
/* A number other than 0, or true. */
bool st_pull_flag(struct st_pull *pull, const char *what, bool *out);
/* Appends the characters of a string, none of which may be NUL, and a NUL. */
bool st_pull_text(struct st_pull *pull, const char *what, struct st_buffer *out);
/* Any value. */
bool st_pull_skip(struct st_pull *pull);
/* Consumes null, if it comes next. */
bool st_pull_is_null(struct st_pull *pull);

static inline bool st_key_is(struct st_bytes key, const char *name)
{
    return key.size == strlen(name) && !memcmp(key.data, name, key.size);
}

#endif
