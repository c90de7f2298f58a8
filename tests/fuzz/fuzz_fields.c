/* fuzz_fields.c - what users write: patterns of files, and lists of fields
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/shards/expand.h"
#include "source/fields/field_shape.h"
#include "source/tar/fields.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 200) /* braces multiply: what is long only takes long */
        return 0;
    char *text = calloc(size + 1, 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    struct st_field_list list;
    struct st_field_shape shapes[ST_FIELDS_MAX];
    if (!st_field_shapes_parse(&list, shapes, text, NULL))
        for (uint32_t i = 0; i < list.count; i++) {
            struct st_tar_field field;
            struct st_field kind;
            int64_t shape[ST_DIMS_MAX];
            st_field_shape_fit(&shapes[i], size, shape);
            if (!st_tar_field_parse(&field, &kind, &list.items[i], NULL))
                st_tar_field_rank(&field, text);
        }
    st_field_list_free(&list);
    struct st_paths paths = {0};
    size_t braces = 0;
    for (size_t i = 0; i < size; i++)
        braces += text[i] == '{';
    if (braces < 5)
        st_expand_braces(&paths, text, NULL);
    st_paths_free(&paths);
    free(text);
    return 0;
}
