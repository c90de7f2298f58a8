/* rows.c - samples as rows of arrays, all of the same shape
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/pack.h"

#include "source/fields/field_list.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Makes a unique name for a file or dataset from the name of a field. */
static void name_field(struct pack_rows *rows, const char *name, uint32_t index)
{
    char *out = rows->names[index];
    size_t used = 0;
    for (; *name && *name != ';' && used < 40; name++)
        out[used++] = isalnum((unsigned char)*name) ? *name : '_';
    out[used] = '\0';
    if (!used)
        used = (size_t)snprintf(out, sizeof rows->names[0], "field");
    for (uint32_t i = 0; i < index; i++)
        if (!strcmp(rows->names[i], out))
            snprintf(out + used, sizeof rows->names[0] - used, "_%u", index);
}

static int begin(struct pack_rows *rows, const struct pack_sample *sample, struct stoker_error *err)
{
    for (uint32_t i = 0; i < sample->count; i++) {
        const struct pack_field *field = &sample->fields[i];
        if (field->kind == ST_FIELD_AUDIO || field->kind == ST_FIELD_TEXT ||
            field->kind == ST_FIELD_JSON || field->kind == ST_FIELD_BYTES)
            return st_fail(err, STOKER_EINVAL,
                           "the field %.200s is %s, which cannot be stored as an array: leave it out "
                           "with --fields, or use --format tar",
                           field->name, st_field_kind_name(field->kind));
        rows->shapes[i] = pack_as_array(field);
        if (rows->shapes[i].dtype == STOKER_DTYPE_BF16)
            return st_fail(err, STOKER_EUNSUPPORTED,
                           "the field %.200s is bfloat16, which numpy does not have", field->name);
        name_field(rows, field->name, i);
    }
    rows->count = sample->count;
    return STOKER_OK;
}

int pack_rows_take(struct pack_rows *rows, const struct pack_sample *sample, struct st_piece *row,
                   struct stoker_error *err)
{
    const int rc = rows->count ? STOKER_OK : begin(rows, sample, err);
    for (uint32_t i = 0; i < rows->count && !rc; i++) {
        const struct st_piece *first = &rows->shapes[i];
        row[i] = pack_as_array(&sample->fields[i]);
        bool same = row[i].dtype == first->dtype && row[i].ndim == first->ndim;
        for (int32_t k = 0; same && k < row[i].ndim; k++)
            same = row[i].shape[k] == first->shape[k];
        if (!same)
            return st_fail(err, STOKER_EINVAL,
                           "%.200s: the field %.100s has a different shape than in the first sample, "
                           "but an array needs one shape for all samples: use --resize WxH, or --format "
                           "tar",
                           sample->key, sample->fields[i].name);
    }
    rows->rows += !rc;
    return rc;
}
