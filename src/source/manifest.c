/* manifest.c - CSV, TSV and JSON lines that name files, with their labels
 *
 * One record is one sample. A column holds the path of a file (relative to the manifest's folder, or
 * absolute), the others labels, numbers or text. Fields name the columns: the file's is the first that
 * is asked for as an image or as audio, else the first of all. By default these are a column with one of
 * the usual names for files, and one with one of those for labels.
 *
 * A column is read as asked for (label=int, score=float, caption=text, boxes=json), else as whole
 * numbers, as numbers or as text, whichever all its words are. Words where whole numbers are asked for,
 * or in a column of labels, are classes, numbered in sorted order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/cells.h"
#include "source/field_list.h"
#include "source/kinds.h"
#include "source/load.h"
#include "source/names.h"
#include "source/text_numbers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANIFEST_MAX (4ull << 30)

struct column {
    uint32_t source; /* of CSV: which word of a record */
    int64_t *wholes;
    double *reals;
};

struct manifest {
    struct st_held file;
    char separator; /* ',' or '\t'; 0: JSON */
    size_t folder;  /* how much of the manifest's path names its folder, with the '/' */
    struct st_field_list wishes;
    uint32_t path_field;
    struct st_field fields[ST_FIELDS_MAX];
    struct column columns[ST_FIELDS_MAX];
    struct st_cells cells; /* the words wanted, record after record */
    uint64_t count;
    uint64_t *lines; /* where each record begins in the file */
    uint64_t lines_room;
    const char **classes; /* of the first column of classes */
    uint32_t class_count;
};

static int no_memory(const struct manifest *manifest, struct stoker_error *err)
{
    return st_fail(err, STOKER_ENOMEM, "%s: out of memory", manifest->file.path);
}

/* ---- which columns ------------------------------------------------------------------------------ */

static const char *const file_names[] = {"path",     "file",       "filename", "file_name",
                                         "filepath", "file_path",  "image",    "image_path",
                                         "audio",    "audio_path", NULL};
static const char *const label_names[] = {"label",      "class",    "target",   "category", "label_name",
                                          "class_name", "class_id", "label_id", NULL};

static bool is_among(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name))
        names++;
    return *names != NULL;
}

/* The first column whose name is among those; UINT32_MAX when there is none. JSON has keys at even
 * places. */
static uint32_t find_usual(const struct manifest *manifest, const struct st_cells *names,
                           const char *const *usual)
{
    const uint32_t step = manifest->separator ? 1 : 2;
    for (; *usual; usual++)
        for (uint64_t i = 0; i < names->count; i += step)
            if (!strcmp(*usual, st_cells_word(names, i)))
                return (uint32_t)i;
    return UINT32_MAX;
}

static int wish_for_usual(struct manifest *manifest, const struct st_cells *names,
                          struct stoker_error *err)
{
    const uint32_t file = find_usual(manifest, names, file_names),
                   label = find_usual(manifest, names, label_names);
    char text[600];
    if (file == UINT32_MAX)
        return st_fail(
            err, STOKER_EINVAL,
            "%s: no column is called path, file, file_name or image; name those wanted in fields, the "
            "one with the files first",
            manifest->file.path);
    snprintf(text, sizeof text, "%s%s%s", st_cells_word(names, file), label == UINT32_MAX ? "" : ",",
             label == UINT32_MAX ? "" : st_cells_word(names, label));
    return st_field_list_parse(&manifest->wishes, text, err);
}

static void choose_path(struct manifest *manifest)
{
    const struct st_field_wish *wishes = manifest->wishes.wishes;
    for (uint32_t k = 0; k < manifest->wishes.count; k++)
        if (wishes[k].typed && (wishes[k].kind == ST_FIELD_IMAGE || wishes[k].kind == ST_FIELD_AUDIO)) {
            manifest->path_field = k;
            return;
        }
}

static int find_column(struct manifest *manifest, const struct st_cells *names, uint32_t k,
                       struct stoker_error *err)
{
    const struct st_field_wish *wish = &manifest->wishes.wishes[k];
    uint64_t i = 0;
    while (i < names->count && strcmp(st_cells_word(names, i), wish->name))
        i++;
    if (i == names->count)
        return st_fail(err, STOKER_EINVAL, "%s: no column is called %s", manifest->file.path,
                       wish->name);
    manifest->columns[k].source = (uint32_t)i;
    for (i++; i < names->count; i++)
        if (!strcmp(st_cells_word(names, i), wish->name))
            return st_fail(err, STOKER_ECORRUPT, "%s: two columns are called %s", manifest->file.path,
                           wish->name);
    return 0;
}

/* `names` are those of the CSV's first line, or the keys and values of the first JSON object. */
static int choose_columns(struct manifest *manifest, const struct st_cells *names, const char *fields,
                          struct stoker_error *err)
{
    int rc = fields ? st_field_list_parse(&manifest->wishes, fields, err)
                    : wish_for_usual(manifest, names, err);
    if (rc)
        return rc;
    choose_path(manifest);
    for (uint32_t k = 0; k < manifest->wishes.count && !rc; k++) {
        const struct st_field_wish *wish = &manifest->wishes.wishes[k];
        manifest->fields[k] = (struct st_field){.name = wish->name};
        if (wish->ndim ||
            (k != manifest->path_field && wish->typed &&
             (wish->kind == ST_FIELD_IMAGE || wish->kind == ST_FIELD_AUDIO)) ||
            wish->kind == ST_FIELD_ARRAY)
            rc = st_fail(
                err, STOKER_EINVAL,
                "fields: %s: one column names files; the others can be int, float, text, json or bytes",
                wish->name);
        else if (manifest->separator)
            rc = find_column(manifest, names, k, err);
    }
    return rc;
}

/* ---- reading ------------------------------------------------------------------------------------ */

static int keep_line(struct manifest *manifest, uint64_t line, struct stoker_error *err)
{
    if (manifest->count == manifest->lines_room) {
        const uint64_t room = manifest->lines_room * 2 + 1024;
        uint64_t *more = st_grow(manifest->lines, room, sizeof *more);
        if (!more)
            return no_memory(manifest, err);
        manifest->lines = more;
        manifest->lines_room = room;
    }
    manifest->lines[manifest->count++] = line;
    return 0;
}

/* The word of a record that a field wants; NULL when it is not there. The last of equal JSON keys
 * counts. */
static const char *word_for(const struct manifest *manifest, const struct st_cells *record, uint32_t k)
{
    const char *found = NULL;
    if (manifest->separator)
        return st_cells_word(record, manifest->columns[k].source);
    for (uint64_t i = 0; i + 1 < record->count; i += 2)
        if (!strcmp(st_cells_word(record, i), manifest->fields[k].name))
            found = st_cells_word(record, i + 1);
    return found;
}

static int keep_record(struct manifest *manifest, const struct st_cells *record, uint64_t line,
                       struct stoker_error *err)
{
    for (uint32_t k = 0; k < manifest->wishes.count; k++) {
        const char *word = word_for(manifest, record, k);
        if (!word || (k == manifest->path_field && !*word))
            return st_fail(err, STOKER_ECORRUPT, "%s: line %llu: nothing stands for %s",
                           manifest->file.path, (unsigned long long)line, manifest->fields[k].name);
        if (!st_cells_add(&manifest->cells, word, strlen(word)))
            return no_memory(manifest, err);
    }
    return keep_line(manifest, line, err);
}

static int next_record(const struct manifest *manifest, struct st_lines *lines, struct st_cells *record,
                       struct stoker_error *err)
{
    return manifest->separator ? st_csv_record(lines, manifest->separator, record, err)
                               : st_json_record(lines, record, err);
}

static int read_records(struct manifest *manifest, struct st_lines *lines, struct st_cells *record,
                        const char *fields, struct stoker_error *err)
{
    int rc = next_record(manifest, lines, record, err);
    if (rc == STOKER_END)
        return st_fail(err, STOKER_EINVAL, "%s: is empty; %s", manifest->file.path,
                       manifest->separator ? "its first line must name the columns"
                                           : "it needs one object a line");
    if (!rc)
        rc = choose_columns(manifest, record, fields, err);
    const uint64_t columns = record->count;
    bool pending = !manifest->separator; /* JSON's first line is a record already */
    while (!rc) {
        rc = pending ? 0 : next_record(manifest, lines, record, err);
        pending = false;
        if (!rc && manifest->separator && record->count != columns)
            rc =
                st_fail(err, STOKER_ECORRUPT, "%s: line %llu: %llu words, where the first line has %llu",
                        manifest->file.path, (unsigned long long)lines->began,
                        (unsigned long long)record->count, (unsigned long long)columns);
        if (!rc)
            rc = keep_record(manifest, record, lines->began, err);
    }
    return rc == STOKER_END ? 0 : rc;
}

static int read_all(struct manifest *manifest, const char *fields, struct stoker_error *err)
{
    struct st_buffer text = {0};
    struct st_cells record = {0};
    struct st_lines lines;
    int rc = st_load(&text, &manifest->file, MANIFEST_MAX, err);
    if (!rc) {
        st_lines_begin(&lines, text.data, text.size, manifest->file.path);
        rc = read_records(manifest, &lines, &record, fields, err);
    }
    st_buffer_free(&text);
    st_cells_free(&record);
    return rc;
}

/* ---- columns become fields ---------------------------------------------------------------------- */

static struct st_bytes cell_of(const struct manifest *manifest, uint64_t sample, uint32_t k)
{
    const char *word = st_cells_word(&manifest->cells, sample * manifest->wishes.count + k);
    return (struct st_bytes){(const uint8_t *)word, strlen(word)};
}

/* The first record whose word is no number of this kind; `count` when all are. */
static uint64_t first_other(const struct manifest *manifest, uint32_t k, bool whole)
{
    int64_t number;
    double real;
    for (uint64_t i = 0; i < manifest->count; i++) {
        const struct st_bytes word = cell_of(manifest, i, k);
        if (whole ? !st_text_whole(word, &number) : !st_text_real(word, &real))
            return i;
    }
    return manifest->count;
}

static int compare_words(const void *a, const void *b)
{
    const char *left = *(const char *const *)a, *right = *(const char *const *)b;
    return st_name_compare(left, strlen(left), right, strlen(right));
}

/* Words to numbers: classes in sorted order. */
static int number_classes(struct manifest *manifest, uint32_t k, struct stoker_error *err)
{
    const char **classes = st_calloc(manifest->count, sizeof *classes);
    if (!classes)
        return no_memory(manifest, err);
    for (uint64_t i = 0; i < manifest->count; i++)
        classes[i] = (const char *)cell_of(manifest, i, k).data;
    qsort(classes, manifest->count, sizeof *classes, compare_words);
    uint64_t kept = 0;
    for (uint64_t i = 0; i < manifest->count; i++)
        if (!kept || strcmp(classes[kept - 1], classes[i]))
            classes[kept++] = classes[i];
    for (uint64_t i = 0; i < manifest->count; i++) {
        const char *word = (const char *)cell_of(manifest, i, k).data;
        const char **found = bsearch(&word, classes, kept, sizeof *classes, compare_words);
        manifest->columns[k].wholes[i] = found - classes;
    }
    if (manifest->classes || kept > UINT32_MAX) {
        free(classes);
    } else {
        manifest->classes = classes;
        manifest->class_count = (uint32_t)kept;
    }
    return 0;
}

static int read_numbers(struct manifest *manifest, uint32_t k, struct stoker_error *err)
{
    struct column *column = &manifest->columns[k];
    const bool whole = manifest->fields[k].kind == ST_FIELD_INT;
    if (whole)
        column->wholes = st_calloc(manifest->count, sizeof *column->wholes);
    else
        column->reals = st_calloc(manifest->count, sizeof *column->reals);
    if (!column->wholes && !column->reals)
        return no_memory(manifest, err);
    const uint64_t other = first_other(manifest, k, whole);
    if (other < manifest->count && whole)
        return number_classes(manifest, k, err);
    if (other < manifest->count)
        return st_fail(err, STOKER_ECORRUPT, "%s: line %llu: %s is %.100s, no number",
                       manifest->file.path, (unsigned long long)manifest->lines[other],
                       manifest->fields[k].name, (const char *)cell_of(manifest, other, k).data);
    for (uint64_t i = 0; i < manifest->count; i++) {
        const struct st_bytes word = cell_of(manifest, i, k);
        whole ? st_text_whole(word, &column->wholes[i]) : st_text_real(word, &column->reals[i]);
    }
    return 0;
}

static enum st_field_kind own_choice(const struct manifest *manifest, uint32_t k)
{
    if (k == manifest->path_field)
        return ST_FIELD_IMAGE;
    if (first_other(manifest, k, true) == manifest->count)
        return ST_FIELD_INT;
    if (first_other(manifest, k, false) == manifest->count)
        return ST_FIELD_FLOAT;
    return is_among(manifest->fields[k].name, label_names) ? ST_FIELD_INT : ST_FIELD_TEXT;
}

static int make_fields(struct manifest *manifest, struct stoker_error *err)
{
    int rc = 0;
    for (uint32_t k = 0; k < manifest->wishes.count && !rc; k++) {
        const struct st_field_wish *wish = &manifest->wishes.wishes[k];
        struct st_field *field = &manifest->fields[k];
        field->kind = wish->typed ? wish->kind : own_choice(manifest, k);
        if (k != manifest->path_field && (field->kind == ST_FIELD_INT || field->kind == ST_FIELD_FLOAT))
            rc = read_numbers(manifest, k, err);
    }
    return rc;
}

static int open_manifest(struct manifest *manifest, const char *path, char separator,
                         const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    manifest->separator = separator;
    int rc = st_held_open(&manifest->file, path, err);
    if (!rc) {
        const char *slash = strrchr(path, '/');
        manifest->folder = slash ? (size_t)(slash - path) + 1 : 0;
        rc = read_all(manifest, opt->fields, err);
    }
    return rc ? rc : make_fields(manifest, err);
}

static const char *const tsv_extensions[] = {".tsv", ".tsv.gz", ".tsv.zst", NULL};
static const char *const csv_extensions[] = {".csv", ".csv.gz", ".csv.zst", NULL};
static const char *const json_extensions[] = {".jsonl",     ".ndjson",     ".jsonl.gz", ".jsonl.zst",
                                              ".ndjson.gz", ".ndjson.zst", NULL};

static int csv_open(void *self, const char *path, const struct stoker_dataset_options *opt,
                    struct stoker_error *err)
{
    const bool tabs = st_name_has_extension(path, strlen(path), tsv_extensions);
    return open_manifest(self, path, tabs ? '\t' : ',', opt, err);
}

static int jsonl_open(void *self, const char *path, const struct stoker_dataset_options *opt,
                      struct stoker_error *err)
{
    return open_manifest(self, path, 0, opt, err);
}

static bool csv_suits(const char *path, const uint8_t *head, size_t size)
{
    (void)head;
    return size && (st_name_has_extension(path, strlen(path), csv_extensions) ||
                    st_name_has_extension(path, strlen(path), tsv_extensions));
}

static bool jsonl_suits(const char *path, const uint8_t *head, size_t size)
{
    (void)head;
    return size && st_name_has_extension(path, strlen(path), json_extensions);
}

/* ---- samples ------------------------------------------------------------------------------------ */

static uint64_t manifest_count(const void *self) { return ((const struct manifest *)self)->count; }

/* The first column of whole numbers. */
static int64_t manifest_label(const void *self, uint64_t sample)
{
    const struct manifest *manifest = self;
    for (uint32_t k = 0; k < manifest->wishes.count; k++)
        if (manifest->columns[k].wholes)
            return manifest->columns[k].wholes[sample];
    return 0;
}

/* Where the file is; relative paths begin at the manifest's folder. */
static const char *file_of(const struct manifest *manifest, uint64_t sample, size_t *folder)
{
    const char *path = (const char *)cell_of(manifest, sample, manifest->path_field).data;
    *folder = path[0] == '/' ? 0 : manifest->folder;
    return path;
}

static size_t manifest_name(const void *self, uint64_t sample, char *buffer, size_t size)
{
    const struct manifest *manifest = self;
    size_t folder;
    const char *path = file_of(manifest, sample, &folder);
    const int length = snprintf(buffer, size, "%.*s%s", (int)folder, manifest->file.path, path);
    return length > 0 ? (size_t)length : 0;
}

static int manifest_locate(const void *self, uint64_t sample, struct st_extent *out,
                           struct stoker_error *err)
{
    const struct manifest *manifest = self;
    size_t folder;
    const char *path = file_of(manifest, sample, &folder);
    const size_t size = strlen(path);
    if (folder + size >= sizeof out->path)
        return st_fail_errno(err, ENAMETOOLONG, "%s: line %llu: %.200s...", manifest->file.path,
                             (unsigned long long)manifest->lines[sample], path);
    memcpy(out->path, manifest->file.path, folder);
    memcpy(out->path + folder, path, size + 1);
    out->memory = NULL;
    out->offset = 0;
    out->length = ST_WHOLE_FILE;
    return 0;
}

static const struct st_field *manifest_fields(const void *self, uint32_t *count)
{
    const struct manifest *manifest = self;
    *count = manifest->wishes.count;
    return manifest->fields;
}

static int manifest_split(const void *self, uint64_t sample, struct st_bytes raw,
                          struct st_buffer *scratch, struct st_piece *pieces, struct stoker_error *err)
{
    const struct manifest *manifest = self;
    (void)scratch, (void)err;
    for (uint32_t k = 0; k < manifest->wishes.count; k++) {
        const struct column *column = &manifest->columns[k];
        pieces[k] =
            (struct st_piece){.bytes = k == manifest->path_field ? raw : cell_of(manifest, sample, k)};
        if (column->wholes)
            pieces[k].whole = column->wholes[sample];
        else if (column->reals)
            pieces[k].real = column->reals[sample];
    }
    return 0;
}

static uint32_t manifest_class_count(const void *self)
{
    return ((const struct manifest *)self)->class_count;
}

static const char *manifest_class_name(const void *self, uint32_t index)
{
    return ((const struct manifest *)self)->classes[index];
}

static void manifest_close(void *self)
{
    struct manifest *manifest = self;
    for (uint32_t k = 0; k < ST_FIELDS_MAX; k++) {
        free(manifest->columns[k].wholes);
        free(manifest->columns[k].reals);
    }
    free(manifest->classes);
    free(manifest->lines);
    st_cells_free(&manifest->cells);
    st_field_list_free(&manifest->wishes);
    st_held_close(&manifest->file);
}

#define MANIFEST(scheme_, suits_, open_)                                                                \
    {                                                                                                   \
        .scheme = (scheme_), .self_size = sizeof(struct manifest), .suits = (suits_), .open = (open_),  \
        .count = manifest_count, .label = manifest_label, .name = manifest_name,                        \
        .locate = manifest_locate, .fields = manifest_fields, .split = manifest_split,                  \
        .class_count = manifest_class_count, .class_name = manifest_class_name,                         \
        .close = manifest_close,                                                                        \
    }

const struct st_source st_source_csv = MANIFEST("csv", csv_suits, csv_open);
const struct st_source st_source_jsonl = MANIFEST("jsonl", jsonl_suits, jsonl_open);
