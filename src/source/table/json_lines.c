/* json_lines.c - reads one JSON object per line (RFC 8259) as keys and values
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/table/cells.h"
#include "source/table/json.h"
#include "source/table/json_text.h"
#include "source/text/cursor.h"

#include <string.h>

/* One line being read. */
struct reading {
    struct st_text text;
    struct st_cells *out;
    bool no_memory;
};

/* ---- strings ------------------------------------------------------------------------------------ */

/* Moves from the opening quote to after the closing one. */
static bool skip_string(struct st_text *text)
{
    for (text->at++; text->at < text->end; text->at++) {
        if (*text->at == '"') {
            text->at++;
            return true;
        }
        if (*text->at == '\\' && text->at + 1 < text->end)
            text->at++;
    }
    return false;
}

/* Adds the string that starts at an opening quote as a cell. */
static bool add_string(struct reading *line)
{
    struct st_text *text = &line->text, after = *text;
    struct st_cells *out = line->out;
    if (!skip_string(&after))
        return false;
    if (!st_cells_add(out, text->at,
                      (uint64_t)(after.at - text->at))) { /* reserves room, overwritten below */
        line->no_memory = true;
        return false;
    }
    text->at++;
    char *from = out->text + out->at[out->count - 1], *end = st_json_take_text(text, from);
    if (!end)
        return false;
    *end = '\0';
    out->text_size = out->at[out->count - 1] + (uint64_t)(end - from) + 1;
    return true;
}

/* ---- values ------------------------------------------------------------------------------------- */

static bool add_plain(struct reading *line, const char *word, uint64_t size)
{
    line->no_memory = !st_cells_add(line->out, word, size);
    return !line->no_memory;
}

/* Adds a value as a cell, and its verbatim text as another; null is an empty one. */
static bool add_value(struct reading *line)
{
    struct st_text *text = &line->text;
    st_text_skip_blanks(text);
    const char *from = text->at;
    bool added;
    if (from < text->end && *from == '"')
        added = add_string(line);
    else if (!st_json_skip(text, ST_JSON_DEPTH))
        return false;
    else if (*from == 'n')
        added = add_plain(line, "", 0);
    else if (*from == 't' || *from == 'f')
        added = add_plain(line, *from == 't' ? "1" : "0", 1);
    else
        added = add_plain(line, from, (uint64_t)(text->at - from));
    return added && add_plain(line, from, (uint64_t)(text->at - from));
}

bool st_json_is_null(const struct st_cells *record, uint64_t key)
{
    return !st_cells_size(record, key + ST_JSON_VALUE) &&
           !strcmp(st_cells_word(record, key + ST_JSON_WRITTEN), "null");
}

static bool add_object(struct reading *line)
{
    struct st_text *text = &line->text;
    if (!st_text_take(text, '{'))
        return false;
    if (!st_text_take(text, '}')) {
        do {
            st_text_skip_blanks(text);
            if (text->at == text->end || *text->at != '"' || !add_string(line) ||
                !st_text_take(text, ':') || !add_value(line))
                return false;
        } while (st_text_take(text, ','));
        if (!st_text_take(text, '}'))
            return false;
    }
    st_text_skip_blanks(text);
    return text->at == text->end;
}

int st_json_record(struct st_lines *lines, struct st_cells *out, struct stoker_error *err)
{
    st_cells_clear(out);
    while (lines->at < lines->end) {
        const char *begin = lines->at, *end = memchr(begin, '\n', (size_t)(lines->end - begin));
        struct reading line = {.text = {.at = begin, .end = end ? end : lines->end}, .out = out};
        lines->began = lines->line++;
        lines->at = end ? end + 1 : lines->end;
        st_text_skip_blanks(&line.text);
        if (line.text.at == line.text.end)
            continue; /* an empty line */
        if (add_object(&line))
            return 0;
        if (line.no_memory)
            return st_fail(err, STOKER_ENOMEM, "out of memory");
        const unsigned long long column = (unsigned long long)(line.text.at - begin) + 1;
        if (line.text.deep)
            return st_fail(err, STOKER_ELIMIT,
                           "JSON nested more than %d levels deep at column %llu, which is the most that "
                           "is read",
                           ST_JSON_DEPTH, column);
        return st_fail(err, STOKER_ECORRUPT, "not a JSON object, or damaged at column %llu", column);
    }
    return STOKER_END;
}
