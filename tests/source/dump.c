/* dump.c - shows what the source layer makes of a dataset, for tests that compare it with other readers
 *
 *     dump open URI [FIELDS [INDEX_DIR]]   a line of JSON for the fields, then one for each sample
 *     dump each URI FIELDS...              the same for each list of fields, a line with a dot behind each
 *     dump braces PATTERN...               what the braces of each expand to, a line each, in hexadecimal, and
 * a line with a dot behind each
 *     dump names                           key and suffix of the names in standard input, all in
 * hexadecimal
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/shards/expand.h"
#include "source/fields/field_list.h"
#include "source/reader/reader.h"
#include "source/tar/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_hex(const void *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        printf("%02x", ((const uint8_t *)data)[i]);
}

static int put_error(int code, const struct stoker_error *err)
{
    printf("{\"code\": %d, \"error\": \"", code);
    put_hex(err->message, strlen(err->message));
    puts("\"}");
    return 0;
}

static void put_shape(int32_t ndim, const int64_t *shape)
{
    printf(", \"shape\": [");
    for (int32_t i = 0; i < ndim; i++)
        printf("%s%lld", i ? ", " : "", (long long)shape[i]);
    putchar(']');
}

static void put_fields(const struct stoker_dataset *data, const struct st_field *fields, uint32_t count)
{
    printf("{\"kind\": \"%s\", \"count\": %llu, \"fields\": [", data->source->scheme,
           (unsigned long long)st_dataset_count(data));
    for (uint32_t i = 0; i < count; i++) {
        printf("%s{\"name\": \"", i ? ", " : "");
        put_hex(fields[i].name, strlen(fields[i].name));
        printf("\", \"kind\": \"%s\", \"dtype\": %d, \"ndim\": %d", st_field_kind_name(fields[i].kind),
               fields[i].dtype, fields[i].ndim);
        put_shape(fields[i].ndim, fields[i].shape);
        putchar('}');
    }
    puts("]}");
}

static void put_piece(const struct st_field *field, const struct st_piece *piece)
{
    if (field->kind == ST_FIELD_INT) {
        printf("{\"int\": %lld}", (long long)piece->whole);
    } else if (field->kind == ST_FIELD_FLOAT) {
        printf("{\"float\": %.17g}", piece->real);
    } else {
        printf("{\"bytes\": \"");
        put_hex(piece->bytes.data, piece->bytes.size);
        printf("\", \"dtype\": %d", piece->dtype);
        put_shape(piece->ndim, piece->shape);
        putchar('}');
    }
}

static void put_sample(struct stoker_dataset *data, uint64_t sample, const struct st_field *fields,
                       uint32_t count, struct st_buffer *buffer, struct st_buffer *scratch)
{
    char name[2000];
    struct st_bytes raw;
    struct stoker_error err = {0};
    struct st_piece pieces[ST_FIELDS_MAX];
    int rc = st_read_sample(data, sample, buffer, &raw, &err);
    if (!rc)
        rc = data->source->split(data->self, sample, raw, scratch, pieces, &err);
    if (rc) {
        put_error(rc, &err);
        return;
    }
    st_dataset_name(data, sample, name, sizeof name);
    printf("{\"name\": \"");
    put_hex(name, strlen(name));
    printf("\", \"pieces\": [");
    for (uint32_t i = 0; i < count; i++) {
        printf("%s", i ? ", " : "");
        put_piece(&fields[i], &pieces[i]);
    }
    puts("]}");
}

static int dump_open(const char *uri, const char *wanted, const char *index_dir)
{
    struct stoker_dataset_options opt = {.size = sizeof opt,
                                         .threads = 2,
                                         .fields = wanted && wanted[0] ? wanted : NULL,
                                         .index_dir = index_dir};
    struct stoker_dataset *data;
    struct stoker_error err = {0};
    struct st_buffer buffer = {0}, scratch = {0};
    uint32_t count = 0;
    const int rc = st_dataset_open(&data, uri, &opt, &err);
    if (rc)
        return put_error(rc, &err);
    const struct st_field *fields =
        data->source->fields ? data->source->fields(data->self, &count) : NULL;
    put_fields(data, fields, count);
    for (uint64_t i = 0; fields && i < st_dataset_count(data); i++)
        put_sample(data, i, fields, count, &buffer, &scratch);
    st_buffer_free(&buffer);
    st_buffer_free(&scratch);
    st_dataset_drop(data);
    return 0;
}

static int dump_each(char **argv)
{
    for (char **wanted = argv + 3; *wanted; wanted++) {
        dump_open(argv[2], *wanted, NULL);
        puts(".");
    }
    return 0;
}

static void dump_braces(const char *pattern)
{
    struct st_paths paths = {0};
    struct stoker_error err = {0};
    const int rc = st_expand_braces(&paths, pattern, &err);
    if (rc)
        printf("error %s\n", err.message);
    for (uint64_t i = 0; i < paths.count && !rc; i++) {
        put_hex(paths.items[i], strlen(paths.items[i]));
        putchar('\n');
    }
    st_paths_free(&paths);
    puts(".");
}

static int dump_names(void)
{
    char line[4096];
    while (fgets(line, sizeof line, stdin)) {
        uint8_t name[sizeof line / 2];
        size_t size = 0;
        struct st_bytes key, suffix;
        unsigned byte;
        while (sscanf(line + 2 * size, "%2x", &byte) == 1)
            name[size++] = (uint8_t)byte;
        if (st_tar_split_name((struct st_bytes){name, size}, &key, &suffix)) {
            put_hex(key.data, key.size);
            putchar(' ');
            put_hex(suffix.data, suffix.size);
        } else {
            putchar('-');
        }
        putchar('\n');
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc >= 3 && !strcmp(argv[1], "open"))
        return dump_open(argv[2], argc > 3 ? argv[3] : NULL, argc > 4 ? argv[4] : NULL);
    if (argc >= 3 && !strcmp(argv[1], "each"))
        return dump_each(argv);
    if (argc == 2 && !strcmp(argv[1], "names"))
        return dump_names();
    if (argc >= 3 && !strcmp(argv[1], "braces")) {
        for (char **pattern = argv + 2; *pattern; pattern++)
            dump_braces(*pattern);
        return 0;
    }
    fputs("usage: dump open URI [FIELDS [INDEX_DIR]] | each URI FIELDS... | braces PATTERN... | names\n",
          stderr);
    return 2;
}
