/* err.h - errors are values: a status and a sentence
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_BASE_ERR_H
#define ST_BASE_ERR_H

#include <stoker/stoker.h>

/* Writes the sentence to *err (which may be NULL) and returns `code`, so that callers can
 * `return st_fail(err, STOKER_EIO, "...")`. A sentence says what, where, and the remedy. */
int st_fail(struct stoker_error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " in front of the sentence that is already there; returns err's code. */
int st_fail_in(struct stoker_error *err, int code, const char *prefix);

/* As st_fail, with ": " and the text of the system's error number at the end. The number decides the status: ENOMEM,
 * ENOTFOUND, ETRANSIENT for what may be different a moment later, else EIO. */
int st_fail_errno(struct stoker_error *err, int errnum, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
