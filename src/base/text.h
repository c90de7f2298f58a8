/* text.h - text from data (names, messages that contain them), made safe to show
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_BASE_TEXT_H
#define ST_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Size in bytes of the UTF-8 character at `text`; 0 if it is not valid UTF-8. */
size_t st_utf8_size(const char *text);

/* The same, but also 0 for characters that must not reach a terminal or a page as they are: control
 * characters (C0, DEL and C1, which move the cursor and change colours), those that end a line, and
 * invisible ones, some of which reverse the direction of the text after them. *point: the character;
 * undefined where it is not valid UTF-8. */
size_t st_plain_size(const char *text, uint32_t *point);

/* Writes each byte of what is not plain as \xNN, so that a name can neither move the cursor nor end the
 * line nor hide a part of itself. Text that does not fit into `room` bytes is truncated. Plain text,
 * including what this function wrote, stays as it is. */
void st_escape(char *out, size_t room, const char *text);
/* The same in place. */
void st_escape_in(char *text, size_t room);

/* The ending of a noun after a number: "%u thread%s", n, st_s(n). */
static inline const char *st_s(uint64_t count) { return count == 1 ? "" : "s"; }
static inline const char *st_es(uint64_t count) { return count == 1 ? "" : "es"; }

#endif
