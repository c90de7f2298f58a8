/* out.h - text that may hold anything, into JSON and into pages; what the program's pages share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CLI_OUT_H
#define ST_CLI_OUT_H

#include <stddef.h>
#include <stdio.h>

/* One character of *at as JSON writes it inside quotes, and *at moves behind it: the number of bytes put
 * into `out`, at most JSON_CHARACTER. A byte that is no UTF-8 is taken for Latin-1: JSON cannot hold it.
 * "<" is escaped, so that the result may stand in a page's script. */
enum { JSON_CHARACTER = 6 };
size_t json_character(char *out, const char **at);
/* With the quotes. */
void json_text(FILE *to, const char *text);

/* As the text or an attribute of a page. Control characters become spaces. */
void html_text(FILE *to, const char *text);
/* From the doctype to the beginning of <main>. `style` follows what all pages have. */
void html_begin(FILE *to, const char *title, const char *style);
/* One of <dl class=tiles>. */
void html_tile(FILE *to, const char *name, const char *value);

#endif
