/* err.h - errors are values: a status and a message
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_BASE_ERR_H
#define ST_BASE_ERR_H

#include <stoker/stoker.h>

#include <stdbool.h>

/* Writes the message to *err (which may be NULL) and returns `code`, so that callers can `return
 * st_fail(err, STOKER_EIO, "...")`. A message says what failed, where, and what to do about it.
 * What is not plain text in it, such as control characters in a file name, is written as \\xNN: see
 * base/text.h. */
int st_fail(struct stoker_error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Prepends "prefix: " to the existing message, as far as it does not begin with that; returns err's
 * code. */
int st_fail_in(struct stoker_error *err, int code, const char *prefix);

/* As st_fail, with ": " and the system's text for the error number appended. The number determines the
 * status: ENOMEM, ENOTFOUND, ETRANSIENT for errors that may be gone a moment later, else EIO. */
int st_fail_errno(struct stoker_error *err, int errnum, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Whether a failure is caused by the machine or the network, so that a later attempt may succeed. */
bool st_is_transient(int code);

#endif
