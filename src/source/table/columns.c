/* columns.c - selects the columns of a table and converts them to fields
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/table/table.h"
#include "source/text/names.h"
#include "source/text/numbers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const file_names[] = {"path",     "file",       "filename", "file_name",
                                         "filepath", "file_path",  "image",    "image_path",
                                         "audio",    "audio_path", NULL};
static const char *const label_names[] = {"label",      "class",    "target",   "category", "label_name",
                                          "class_name", "class_id", "label_id", NULL};

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name))
        names++;
    return *names != NULL;
}

/* The first column that has one of these names; UINT32_MAX if there is none. In JSON every third
 * word is a key. */
static uint32_t find_common(const struct st_manifest *manifest, const struct st_cells *names,
                           const char *const *usual)
{
    const uint32_t step = manifest->separator ? 1 : ST_JSON_WORDS;
    for (; *usual; usual++)
        for (uint64_t i = 0; i < names->count; i += step)
            if (!strcmp(*usual, st_cells_word(names, i)))
                return (uint32_t)i;
    return UINT32_MAX;
}

static int request_common(struct st_manifest *manifest, const struct st_cells *names,
                          struct stoker_error *err)
{
    const uint32_t file = find_common(manifest, names, file_names),
                   label = find_common(manifest, names, label_names);
    char text[600];
    if (file == UINT32_MAX)
        return st_fail(
            err, STOKER_EINVAL,
            "%s: there is no column named path, file, file_name or image; select the columns with "
            "fields=, the one with the files first",
            manifest->file.path);
    snprintf(text, sizeof text, "%s%s%s", st_cells_word(names, file), label == UINT32_MAX ? "" : ",",
             label == UINT32_MAX ? "" : st_cells_word(names, label));
    return st_field_list_parse(&manifest->requested, text, err);
}

static void choose_path(struct st_manifest *manifest)
{
    const struct st_field_request *requests = manifest->requested.items;
    for (uint32_t k = 0; k < manifest->requested.count; k++)
        if (requests[k].typed &&
            (requests[k].kind == ST_FIELD_IMAGE || requests[k].kind == ST_FIELD_AUDIO)) {
            manifest->path_field = k;
            return;
        }
}

static int find_column(struct st_manifest *manifest, const struct st_cells *names, uint32_t k,
                       struct stoker_error *err)
{
    const struct st_field_request *request = &manifest->requested.items[k];
    uint64_t i = 0;
    while (i < names->count && strcmp(st_cells_word(names, i), request->name))
        i++;
    if (i == names->count) {
        struct st_name_list has = {0};
        for (i = 0; i < names->count && i < sizeof has.text; i++)
            st_name_list_add(&has, st_cells_word(names, i), strlen(st_cells_word(names, i)));
        return st_fail(err, STOKER_EINVAL, "%s: fields: there is no column %s; the table has %s",
                       manifest->file.path, request->name, has.text);
    }
    manifest->columns[k].source = (uint32_t)i;
    for (i++; i < names->count; i++)
        if (!strcmp(st_cells_word(names, i), request->name))
            return st_fail(err, STOKER_ECORRUPT, "%s: two columns are named %s", manifest->file.path,
                           request->name);
    return 0;
}

int st_manifest_choose(struct st_manifest *manifest, const struct st_cells *names, const char *fields,
                       struct stoker_error *err)
{
    int rc = fields ? st_field_list_parse(&manifest->requested, fields, err)
                    : request_common(manifest, names, err);
    if (rc)
        return rc;
    choose_path(manifest);
    for (uint32_t k = 0; k < manifest->requested.count && !rc; k++) {
        const struct st_field_request *request = &manifest->requested.items[k];
        manifest->fields[k] = (struct st_field){.name = request->name};
        if (request->ndim ||
            (k != manifest->path_field && request->typed &&
             (request->kind == ST_FIELD_IMAGE || request->kind == ST_FIELD_AUDIO)) ||
            request->kind == ST_FIELD_ARRAY)
            rc = st_fail(err, STOKER_EINVAL,
                         "fields: %s: only one column can be image or audio; the others can be int, "
                         "float, text, json or bytes",
                         request->name);
        else if (manifest->separator)
            rc = find_column(manifest, names, k, err);
    }
    return rc;
}

/* ---- columns to fields --------------------------------------------------------------------------- */

/* Counts the words of a column in undamaged rows. */
struct tally {
    uint64_t words;  /* not empty */
    uint64_t wholes; /* integers */
    uint64_t reals;  /* numbers of any kind */
};

static struct tally count_words(const struct st_manifest *manifest, uint32_t k)
{
    struct tally tally = {0};
    int64_t number;
    double real;
    for (uint64_t i = 0; i < manifest->count; i++) {
        const struct st_bytes word = st_manifest_cell(manifest, i, k);
        if (st_manifest_is_damaged(manifest, i) || !word.size)
            continue;
        const bool whole = st_text_int(word, &number);
        tally.words++;
        tally.wholes += whole;
        tally.reals += whole || st_text_float(word, &real);
    }
    return tally;
}

/* Whether the words of a label column are numbers: if integers were requested, when any word is one;
 * otherwise when more than half are. So a single cell cannot turn labels into classes or classes into
 * labels. */
static bool holds_numbers(const struct tally *tally, bool requested)
{
    return requested ? tally->wholes > 0 : tally->wholes > tally->words / 2;
}

static int compare_words(const void *a, const void *b)
{
    const char *left = *(const char *const *)a, *right = *(const char *const *)b;
    return st_name_compare(left, strlen(left), right, strlen(right));
}

/* Marks the row as damaged: a word is not the number or class that it should be. */
static int mark_word(struct st_manifest *manifest, uint32_t k, uint64_t row, const char *wanted,
                     struct stoker_error *err)
{
    char why[240];
    const char *word = (const char *)st_manifest_cell(manifest, row, k).data;
    if (*word)
        snprintf(why, sizeof why, "%.60s is '%.100s', not %s", manifest->fields[k].name, word, wanted);
    else
        snprintf(why, sizeof why, "%.60s is empty, not %s", manifest->fields[k].name, wanted);
    return st_manifest_damage(manifest, row, why, err);
}

/* Converts words to numbers: classes in sorted order. */
static int number_classes(struct st_manifest *manifest, uint32_t k, struct stoker_error *err)
{
    const char **classes = st_calloc(manifest->count, sizeof *classes);
    if (!classes)
        return st_manifest_no_memory(manifest, err);
    uint64_t words = 0, kept = 0;
    int rc = 0;
    for (uint64_t i = 0; i < manifest->count && !rc; i++) {
        const struct st_bytes word = st_manifest_cell(manifest, i, k);
        if (st_manifest_is_damaged(manifest, i))
            continue;
        if (word.size)
            classes[words++] = (const char *)word.data;
        else
            rc = mark_word(manifest, k, i, "a class", err);
    }
    qsort(classes, words, sizeof *classes, compare_words);
    for (uint64_t i = 0; i < words; i++)
        if (!kept || strcmp(classes[kept - 1], classes[i]))
            classes[kept++] = classes[i];
    for (uint64_t i = 0; i < manifest->count; i++) {
        const char *word = (const char *)st_manifest_cell(manifest, i, k).data;
        const char **found = bsearch(&word, classes, kept, sizeof *classes, compare_words);
        manifest->columns[k].wholes[i] = found ? found - classes : 0;
    }
    if (rc || manifest->classes || kept > UINT32_MAX) {
        free(classes);
    } else {
        manifest->classes = classes;
        manifest->class_count = (uint32_t)kept;
    }
    return rc;
}

static int read_numbers(struct st_manifest *manifest, uint32_t k, struct stoker_error *err)
{
    struct st_manifest_column *column = &manifest->columns[k];
    const bool whole = manifest->fields[k].kind == ST_FIELD_INT;
    if (whole)
        column->wholes = st_calloc(manifest->count, sizeof *column->wholes);
    else
        column->reals = st_calloc(manifest->count, sizeof *column->reals);
    if (!column->wholes && !column->reals)
        return st_manifest_no_memory(manifest, err);
    const struct tally tally = count_words(manifest, k);
    if (whole && !holds_numbers(&tally, manifest->requested.items[k].typed))
        return number_classes(manifest, k, err);
    int rc = 0;
    for (uint64_t i = 0; i < manifest->count && !rc; i++) {
        const struct st_bytes word = st_manifest_cell(manifest, i, k);
        const bool good =
            whole ? st_text_int(word, &column->wholes[i]) : st_text_float(word, &column->reals[i]);
        if (!good && !st_manifest_is_damaged(manifest, i))
            rc = mark_word(manifest, k, i, whole ? "an integer" : "a number", err);
    }
    return rc;
}

static enum st_field_kind default_kind(const struct st_manifest *manifest, uint32_t k)
{
    if (k == manifest->path_field)
        return ST_FIELD_IMAGE;
    const struct tally tally = count_words(manifest, k);
    if (tally.words && tally.wholes == tally.words)
        return ST_FIELD_INT;
    if (tally.words && tally.reals == tally.words)
        return ST_FIELD_FLOAT;
    return is_one_of(manifest->fields[k].name, label_names) ? ST_FIELD_INT : ST_FIELD_TEXT;
}

int st_manifest_make_fields(struct st_manifest *manifest, struct stoker_error *err)
{
    int rc = 0;
    for (uint32_t k = 0; k < manifest->requested.count && !rc; k++) {
        const struct st_field_request *request = &manifest->requested.items[k];
        struct st_field *field = &manifest->fields[k];
        field->kind = request->typed ? request->kind : default_kind(manifest, k);
        if (k != manifest->path_field && (field->kind == ST_FIELD_INT || field->kind == ST_FIELD_FLOAT))
            rc = read_numbers(manifest, k, err);
    }
    return rc;
}
