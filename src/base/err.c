/* err.c - errors are values: a status and a message
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/err.h"

#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

int st_fail(struct stoker_error *err, int code, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        err->code = code;
        if (vsnprintf(err->message, sizeof err->message, format, args) < 0)
            err->message[0] = '\0';
        va_end(args);
        st_escape_in(err->message, sizeof err->message);
    }
    return code;
}

/* How much of the message only repeats the prefix, or its beginning: "a.npy: " of "a.npy: row 1". */
static size_t repeated(const char *message, const char *prefix)
{
    size_t most = 0;
    for (size_t at = 0; message[at] && message[at] == prefix[at]; at++)
        if (at && prefix[at] == ' ' && prefix[at - 1] == ':')
            most = at + 1;
    const size_t size = strlen(prefix);
    const bool all = size && !strncmp(message, prefix, size) && !strncmp(message + size, ": ", 2);
    return all ? size + 2 : most;
}

int st_fail_in(struct stoker_error *err, int code, const char *prefix)
{
    if (err) {
        char inner[sizeof err->message], place[700];
        memcpy(inner, err->message, sizeof inner);
        err->code = code;
        /* A path may be as long as the whole message, so limit it to leave room for the reason. */
        st_escape(place, sizeof place, prefix);
        snprintf(err->message, sizeof err->message, "%s: %.300s", place, inner + repeated(inner, place));
    }
    return code;
}

/* Errors that may be gone a moment later, with the same file. */
static bool may_pass(int errnum)
{
    switch (errnum) {
    case EIO: case EAGAIN: case EINTR: case EBUSY: case EMFILE: case ENFILE: case ENOBUFS: case ESTALE:
    case ETIMEDOUT:
    case ECONNRESET:
    case ECONNABORTED:
    case ECONNREFUSED:
    case ENETDOWN:
    case ENETUNREACH:
    case ENETRESET: case EHOSTDOWN: case EHOSTUNREACH: case EPIPE: case EREMOTEIO: case ENOLINK:
        return true;
    default:
        return false;
    }
}

static int status_of(int errnum)
{
    if (errnum == ENOMEM)
        return STOKER_ENOMEM;
    if (errnum == ENOENT || errnum == ENOTDIR)
        return STOKER_ENOTFOUND;
    return may_pass(errnum) ? STOKER_ETRANSIENT : STOKER_EIO;
}

int st_fail_errno(struct stoker_error *err, int errnum, const char *format, ...)
{
    const int code = status_of(errnum);
    if (err) {
        va_list args;
        va_start(args, format);
        err->code = code;
        enum { REASON = 100 };
        const size_t room = sizeof err->message - REASON;
        if (vsnprintf(err->message, room, format, args) < 0)
            err->message[0] = '\0';
        va_end(args);
        st_escape_in(err->message, room);
        const size_t used = strlen(err->message);
        char text[REASON - 10] = "";
        const char *said = strerror_r(errnum, text, sizeof text); /* the GNU version: thread-safe */
        snprintf(err->message + used, sizeof err->message - used, ": %s", said);
    }
    return code;
}

bool st_is_transient(int code) { return code == STOKER_ETRANSIENT || code == STOKER_ETIMEOUT; }
