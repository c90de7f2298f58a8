/* cells.c - lists of words, and a CSV reader
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/table/cells.h"

#include <stdlib.h>
#include <string.h>

static bool make_text_room(struct st_cells *cells, uint64_t more)
{
    if (cells->text_room - cells->text_size >= more)
        return true;
    const uint64_t room = cells->text_room * 2 + more + 4096;
    char *text = st_grow(cells->text, room, 1);
    if (!text)
        return false;
    cells->text = text;
    cells->text_room = room;
    return true;
}

bool st_cells_add(struct st_cells *cells, const char *word, uint64_t size)
{
    if (cells->count == cells->room) {
        const uint64_t room = cells->room * 2 + 64;
        uint64_t *at = st_grow(cells->at, room, sizeof *at);
        if (!at)
            return false;
        cells->at = at;
        cells->room = room;
    }
    if (!make_text_room(cells, size + 1))
        return false;
    cells->at[cells->count++] = cells->text_size;
    if (size)
        memcpy(cells->text + cells->text_size, word, size);
    cells->text[cells->text_size + size] = '\0';
    cells->text_size += size + 1;
    return true;
}

void st_cells_free(struct st_cells *cells)
{
    free(cells->text);
    free(cells->at);
    *cells = (struct st_cells){0};
}

void st_lines_begin(struct st_lines *lines, const void *text, uint64_t size)
{
    const bool marked = size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3);
    *lines = (struct st_lines){(const char *)text + (marked ? 3 : 0), (const char *)text + size, 1, 1};
}

/* ---- CSV ---------------------------------------------------------------------------------------- */

static int no_memory(struct stoker_error *err) { return st_fail(err, STOKER_ENOMEM, "out of memory"); }

static bool at_line_end(const struct st_lines *lines)
{
    return lines->at == lines->end || *lines->at == '\n' || *lines->at == '\r';
}

static void skip_line_end(struct st_lines *lines)
{
    if (lines->at < lines->end && *lines->at == '\r')
        lines->at++;
    if (lines->at < lines->end && *lines->at == '\n')
        lines->at++;
    lines->line++;
}

/* Reads a quoted word, joining the pieces between doubled quotes. */
static int take_quoted(struct st_lines *lines, struct st_cells *out, struct stoker_error *err)
{
    const struct st_lines began = *lines;
    if (!st_cells_add(out, "", 0))
        return no_memory(err);
    out->text_size--; /* the NUL byte is added at the end */
    lines->at++;
    for (;;) {
        const char *quote = memchr(lines->at, '"', (size_t)(lines->end - lines->at));
        if (!quote) {
            *lines = began;
            return st_fail(err, STOKER_ECORRUPT, "unclosed quote");
        }
        const bool doubled = quote + 1 < lines->end && quote[1] == '"';
        const uint64_t size = (uint64_t)(quote - lines->at) + doubled;
        if (!make_text_room(out, size + 1))
            return no_memory(err);
        memcpy(out->text + out->text_size, lines->at, size);
        out->text_size += size;
        for (const char *c = lines->at; c < quote; c++)
            lines->line += *c == '\n';
        lines->at = quote + 1 + doubled;
        if (!doubled)
            break;
    }
    out->text[out->text_size++] = '\0';
    return 0;
}

static int take_word(struct st_lines *lines, char separator, struct st_cells *out,
                     struct stoker_error *err)
{
    if (lines->at < lines->end && *lines->at == '"') {
        const int rc = take_quoted(lines, out, err);
        if (rc)
            return rc;
        if (!at_line_end(lines) && *lines->at != separator)
            return st_fail(err, STOKER_ECORRUPT,
                           "unexpected characters between a closing quote and the separator");
    } else {
        const char *from = lines->at;
        while (!at_line_end(lines) && *lines->at != separator)
            lines->at++;
        if (!st_cells_add(out, from, (uint64_t)(lines->at - from)))
            return no_memory(err);
    }
    const char *word = st_cells_word(out, out->count - 1);
    if (strlen(word) + 1 != out->text_size - out->at[out->count - 1])
        return st_fail(err, STOKER_ECORRUPT, "contains a NUL byte: this is not text");
    return 0;
}

int st_csv_record(struct st_lines *lines, char separator, struct st_cells *out, struct stoker_error *err)
{
    st_cells_clear(out);
    while (lines->at < lines->end && at_line_end(lines))
        skip_line_end(lines);
    if (lines->at == lines->end)
        return STOKER_END;
    lines->began = lines->line;
    int rc = take_word(lines, separator, out, err);
    while (!rc && !at_line_end(lines)) {
        lines->at++;
        rc = take_word(lines, separator, out, err);
    }
    while (!at_line_end(lines)) /* skip the rest of a damaged record */
        lines->at++;
    skip_line_end(lines);
    return rc;
}
