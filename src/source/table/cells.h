/* cells.h - lists of words, and readers of CSV and JSON lines
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TABLE_CELLS_H
#define ST_SOURCE_TABLE_CELLS_H

#include "base/err.h"
#include "base/mem.h"

/* Words one after another, each NUL-terminated. */
struct st_cells {
    char *text;
    uint64_t text_size, text_room;
    uint64_t *at; /* where each begins */
    uint64_t count, room;
};

bool st_cells_add(struct st_cells *cells, const char *word, uint64_t size);
static inline const char *st_cells_word(const struct st_cells *cells, uint64_t index)
{
    return cells->text + cells->at[index];
}
/* Its size, which may include NUL characters of JSON strings. */
static inline uint64_t st_cells_size(const struct st_cells *cells, uint64_t index)
{
    return (index + 1 < cells->count ? cells->at[index + 1] : cells->text_size) - cells->at[index] - 1;
}
static inline void st_cells_clear(struct st_cells *cells) { cells->count = cells->text_size = 0; }
void st_cells_free(struct st_cells *cells);

/* A position in text; lines are counted from 1. */
struct st_lines {
    const char *at, *end;
    uint64_t line, began; /* the current line, and the line where the latest record began */
};

/* Skips a byte order mark, if there is one. */
void st_lines_begin(struct st_lines *lines, const void *text, uint64_t size);

/* Reads the words of the next CSV record (RFC 4180: quoted words may contain separators, line ends and
 * doubled quotes) into `out`, which is cleared first. Empty lines are skipped. STOKER_END after the last
 * record. For a damaged record (STOKER_ECORRUPT) the message says what is wrong, `began` is its line,
 * and the next call resumes after it: an unclosed quote spoils only its own line. */
int st_csv_record(struct st_lines *lines, char separator, struct st_cells *out,
                  struct stoker_error *err);

/* Reads the JSON object in the next line: for each member three words, its key, its value, and its value
 * verbatim. Keys and values are what Python's json makes of them: strings are without quotes and
 * escapes; they may contain NUL characters and lone surrogates, encoded as if UTF-8 had them. true and
 * false are 1 and 0, null is an empty word, and lists and objects are verbatim. Damage is reported as
 * above; objects nested too deeply are STOKER_ELIMIT. */
int st_json_record(struct st_lines *lines, struct st_cells *out, struct stoker_error *err);
enum { ST_JSON_WORDS = 3, ST_JSON_VALUE = 1, ST_JSON_WRITTEN = 2 };
/* Whether the member whose key is word `key` is null. */
bool st_json_is_null(const struct st_cells *record, uint64_t key);

#endif
