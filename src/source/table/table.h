/* table.h - internals of tables that list files: manifest.c, rows.c, columns.c, damage.c
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TABLE_TABLE_H
#define ST_SOURCE_TABLE_TABLE_H

#include "source/table/cells.h"
#include "source/fields/field_list.h"
#include "source/held.h"

#include <string.h>

struct st_manifest_column {
    uint32_t source; /* for CSV: the index of the word in a record */
    int64_t *wholes;
    double *reals;
};

#define ST_MANIFEST_DAMAGED (1ull << 63)

struct st_manifest_damage {
    uint64_t row;
    char *why;
};

struct st_manifest {
    struct st_held file;
    char separator; /* ',' or '\t'; 0: JSON */
    char *base;     /* the path or URL of its folder, ending in '/' */
    struct st_field_list requested;
    uint32_t path_field;
    struct st_field fields[ST_FIELDS_MAX];
    struct st_manifest_column columns[ST_FIELDS_MAX];
    struct st_cells cells; /* the requested words, row by row; those of damaged rows are empty */
    uint64_t count;
    uint64_t *lines; /* the line where each row begins; ST_MANIFEST_DAMAGED is set for damaged ones */
    uint64_t lines_room;
    struct st_manifest_damage *damages; /* sorted by row once all are known */
    uint64_t damage_count, damage_room;
    const char **classes; /* of the first class column */
    uint32_t class_count;
    struct st_remote_store *store; /* NULL: no row has a URL */
    struct st_remote_set *objects; /* the rows' objects, if there is a store */
};

/* ---- table/damage.c ---- */

int st_manifest_no_memory(const struct st_manifest *manifest, struct stoker_error *err);
/* Records that a row is damaged, and why. */
int st_manifest_damage(struct st_manifest *manifest, uint64_t row, const char *why,
                       struct stoker_error *err);
/* To be called when all damage is known: fails if every row is damaged. */
int st_manifest_settle(struct st_manifest *manifest, struct stoker_error *err);
static inline bool st_manifest_is_damaged(const struct st_manifest *manifest, uint64_t row)
{
    return manifest->lines[row] & ST_MANIFEST_DAMAGED;
}
static inline unsigned long long st_manifest_line(const struct st_manifest *manifest, uint64_t row)
{
    return manifest->lines[row] & ~ST_MANIFEST_DAMAGED;
}
/* Reports why a row is damaged; only for damaged rows. */
int st_manifest_why(const struct st_manifest *manifest, uint64_t row, struct stoker_error *err);

/* ---- table/rows.c ---- */

/* Reads all rows. A damaged one keeps its position, as a bad sample. */
int st_manifest_read(struct st_manifest *manifest, const char *fields, struct stoker_error *err);
static inline struct st_bytes st_manifest_cell(const struct st_manifest *manifest, uint64_t row,
                                               uint32_t field)
{
    const uint64_t word = row * manifest->requested.count + field;
    return (struct st_bytes){(const uint8_t *)st_cells_word(&manifest->cells, word),
                             st_cells_size(&manifest->cells, word)};
}

/* ---- table/columns.c ---- */

/* Selects the columns: `names` are the words of the CSV's first line, or the keys and values of the
 * first JSON object. */
int st_manifest_choose(struct st_manifest *manifest, const struct st_cells *names, const char *fields,
                       struct stoker_error *err);
/* Converts the columns to fields, once all rows are read. */
int st_manifest_make_fields(struct st_manifest *manifest, struct stoker_error *err);

#endif
