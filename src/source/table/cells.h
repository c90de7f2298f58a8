/* cells.h - lists of words, and what reads them from lines of CSV and JSON
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TABLE_CELLS_H
#define ST_SOURCE_TABLE_CELLS_H

#include "base/err.h"
#include "base/mem.h"

/* Words one after another, each terminated. */
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
static inline void st_cells_clear(struct st_cells *cells) { cells->count = cells->text_size = 0; }
void st_cells_free(struct st_cells *cells);

/* Text being read, line by line, counted from 1. */
struct st_lines {
    const char *at, *end;
    uint64_t line, began; /* the next line, and where the latest record began */
};

/* Begins behind a byte order mark, if there is one. */
void st_lines_begin(struct st_lines *lines, const void *text, uint64_t size);

/* The words of the next record of CSV (RFC 4180: quoted words may hold separators, line ends and doubled
 * quotes), into `out`, which is cleared first. Empty lines are passed over. STOKER_END behind the last.
 * Of a damaged record (STOKER_ECORRUPT) the message says what is wrong; `began` is its line, and the
 * next call goes on behind it: a quote that is never closed spoils its own line. */
int st_csv_record(struct st_lines *lines, char separator, struct st_cells *out,
                  struct stoker_error *err);

/* The next line's JSON object: its keys and values in turn. Strings without their quotes and escapes,
 * true and false as 1 and 0, and lists and objects as they are written; null as an empty word. Damage as
 * above. */
int st_json_record(struct st_lines *lines, struct st_cells *out, struct stoker_error *err);
/* A value of such a record as it is written: strings in their quotes, true and false. */
const char *st_json_written(const struct st_cells *record, uint64_t index);
bool st_json_is_null(const struct st_cells *record, uint64_t index);

#endif
