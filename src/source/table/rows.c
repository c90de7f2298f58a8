/* rows.c - the rows of a table
 *
 * A damaged row does not affect the others: it keeps its position and is a bad sample like any other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/load.h"
#include "base/text.h"
#include "source/table/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANIFEST_MAX (4ull << 30)

/* ---- rows --------------------------------------------------------------------------------------- */

static int add_line(struct st_manifest *manifest, uint64_t line, struct stoker_error *err)
{
    if (manifest->count == manifest->lines_room) {
        const uint64_t room = manifest->lines_room * 2 + 1024;
        uint64_t *more = st_grow(manifest->lines, room, sizeof *more);
        if (!more)
            return st_manifest_no_memory(manifest, err);
        manifest->lines = more;
        manifest->lines_room = room;
    }
    manifest->lines[manifest->count++] = line;
    return 0;
}

/* Placeholders for the words of damaged rows, which are never read. */
static int add_empty(struct st_manifest *manifest, uint64_t rows, struct stoker_error *err)
{
    for (uint64_t i = 0; i < rows * manifest->requested.count; i++)
        if (!st_cells_add(&manifest->cells, "", 0))
            return st_manifest_no_memory(manifest, err);
    return 0;
}

static int add_damaged(struct st_manifest *manifest, uint64_t line, const char *why,
                       struct stoker_error *err)
{
    int rc = add_empty(manifest, 1, err);
    if (!rc)
        rc = add_line(manifest, line, err);
    return rc ? rc : st_manifest_damage(manifest, manifest->count - 1, why, err);
}

enum { MISSING = -1 };

/* Which word of a record is that of a field; MISSING also if it is null, which is only possible in JSON.
 * If a JSON key is repeated, the last one counts. */
static int64_t word_for(const struct st_manifest *manifest, const struct st_cells *record, uint32_t k)
{
    const struct st_field_request *request = &manifest->requested.items[k];
    const bool json = request->typed && request->kind == ST_FIELD_JSON;
    const uint64_t size = strlen(request->name);
    int64_t found = MISSING;
    if (manifest->separator)
        return (int64_t)manifest->columns[k].source;
    for (uint64_t i = 0; i + ST_JSON_WRITTEN < record->count; i += ST_JSON_WORDS)
        if (st_cells_size(record, i) == size && !memcmp(st_cells_word(record, i), request->name, size))
            found = json                         ? (int64_t)i + ST_JSON_WRITTEN
                    : st_json_is_null(record, i) ? MISSING
                                                 : (int64_t)i + ST_JSON_VALUE;
    return found;
}

/* Whether the word is no C string, and the field is more than text: a file, a class, a number. */
static bool is_cut(const struct st_manifest *manifest, const struct st_cells *record, uint64_t word,
                   uint32_t k)
{
    const struct st_field_request *request = &manifest->requested.items[k];
    const bool text = request->typed && k != manifest->path_field &&
                      (request->kind == ST_FIELD_TEXT || request->kind == ST_FIELD_JSON);
    return !text && memchr(st_cells_word(record, word), '\0', st_cells_size(record, word));
}

static int add_record(struct st_manifest *manifest, const struct st_cells *record, uint64_t line,
                      struct stoker_error *err)
{
    int64_t words[ST_FIELDS_MAX];
    char why[200];
    for (uint32_t k = 0; k < manifest->requested.count; k++) {
        words[k] = word_for(manifest, record, k);
        const bool there = words[k] != MISSING && (k != manifest->path_field ||
                                                   st_cells_size(record, (uint64_t)words[k]));
        if (!there || is_cut(manifest, record, (uint64_t)words[k], k)) {
            snprintf(why, sizeof why, "%.120s %s", manifest->fields[k].name,
                     there ? "contains \\u0000, which only a field of text may" : "is missing");
            return add_damaged(manifest, line, why, err);
        }
    }
    for (uint32_t k = 0; k < manifest->requested.count; k++)
        if (!st_cells_add(&manifest->cells, st_cells_word(record, (uint64_t)words[k]),
                          st_cells_size(record, (uint64_t)words[k])))
            return st_manifest_no_memory(manifest, err);
    return add_line(manifest, line, err);
}

/* ---- the table ---------------------------------------------------------------------------------- */

/* The state of reading a table. */
struct reading {
    struct st_lines lines;
    struct st_cells record;
    bool chosen;      /* the columns are selected */
    uint64_t columns; /* CSV: how many */
};

/* The column names are the CSV's first line, or the keys of the first valid JSON object. */
static int choose(struct st_manifest *manifest, struct reading *table, const char *fields,
                  struct stoker_error *err)
{
    table->chosen = true;
    table->columns = table->record.count;
    const int rc = st_manifest_choose(manifest, &table->record, fields, err);
    return rc ? rc : add_empty(manifest, manifest->count, err);
}

static int take_record(struct st_manifest *manifest, struct reading *table, const char *fields,
                       struct stoker_error *err)
{
    struct stoker_error damage = {0};
    char why[200];
    const bool csv = manifest->separator != 0;
    int rc = csv ? st_csv_record(&table->lines, manifest->separator, &table->record, &damage)
                 : st_json_record(&table->lines, &table->record, &damage);
    const uint64_t line = table->lines.began;
    if (rc == STOKER_END)
        return rc;
    if (rc == STOKER_ENOMEM)
        return st_manifest_no_memory(manifest, err);
    if (rc && csv && !table->chosen)
        return st_fail(err, STOKER_ECORRUPT, "%s: line %llu: %s", manifest->file.path,
                       (unsigned long long)line, damage.message);
    if (rc)
        return add_damaged(manifest, line, damage.message, err);
    if (!table->chosen) {
        rc = choose(manifest, table, fields, err);
        if (rc || csv)
            return rc;
    }
    if (csv && table->record.count != table->columns) {
        snprintf(why, sizeof why, "has %llu word%s, but the first line has %llu",
                 (unsigned long long)table->record.count, st_s(table->record.count),
                 (unsigned long long)table->columns);
        return add_damaged(manifest, line, why, err);
    }
    return add_record(manifest, &table->record, line, err);
}

int st_manifest_read(struct st_manifest *manifest, const char *fields, struct stoker_error *err)
{
    struct st_buffer text = {0};
    struct reading table = {0};
    int rc = st_load(&text, &manifest->file, MANIFEST_MAX, err);
    if (!rc)
        st_lines_begin(&table.lines, text.data, text.size);
    while (!rc)
        rc = take_record(manifest, &table, fields, err);
    st_buffer_free(&text);
    st_cells_free(&table.record);
    if (rc != STOKER_END)
        return rc;
    if (!table.chosen && manifest->count)
        return st_manifest_why(manifest, 0, err);
    if (!table.chosen)
        return st_fail(err, STOKER_EINVAL, "%s: the file is empty; %s", manifest->file.path,
                       manifest->separator ? "its first line must name the columns"
                                           : "it must contain one JSON object per line");
    return 0;
}
