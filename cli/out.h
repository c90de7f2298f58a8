/* out.h - escapes arbitrary text for JSON and HTML; the frame of all pages
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CLI_OUT_H
#define ST_CLI_OUT_H

#include <stddef.h>
#include <stdio.h>

/* Writes one character of *at as inside a JSON string and advances *at. Returns the number of bytes put
 * into `out`, at most JSON_CHARACTER. A byte that is not UTF-8 is taken as Latin-1, since JSON cannot
 * hold it. "<" is escaped, so that the result can be embedded in a script. */
enum { JSON_CHARACTER = 6 };
size_t json_character(char *out, const char **at);
/* A whole string, with quotes. */
void json_text(FILE *to, const char *text);

/* Escapes text or an attribute of a page. Control characters become spaces, and other
 * characters that would change how the text around them reads U+FFFD. */
void html_text(FILE *to, const char *text);
/* Writes everything from the doctype to <main>. `style` is appended to the common style. */
void html_begin(FILE *to, const char *title, const char *style);
/* One tile of <dl class=tiles>. */
void html_tile(FILE *to, const char *name, const char *value);

#endif
