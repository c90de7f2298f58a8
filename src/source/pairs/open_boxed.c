/* open_boxed.c - opens images and their boxes in the layouts of common datasets
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/annotated/coco.h"
#include "source/annotated/voc.h"
#include "source/load.h"
#include "source/pairs/boxed.h"
#include "source/pairs/pairs.h"

static int read_coco(struct st_annotated *table, struct st_pairs *pairs, const struct stoker_pairs *how,
                     const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    const int rc = st_coco_read(table, how->targets, how->contiguous, opt, err);
    return rc ? rc : st_pairs_annotated(pairs, how->images, table, opt, err);
}

static int read_xml(struct st_annotated *table, const char *path, struct st_buffer *text,
                    struct stoker_error *err)
{
    enum { LARGEST = 1 << 28 };
    struct st_held file;
    int rc = st_held_open(&file, path, err);
    text->size = 0;
    if (!rc)
        rc = st_load(text, &file, LARGEST, err);
    if (!rc)
        rc = st_voc_add(table, (struct st_bytes){text->data, text->size}, path, st_voc_classes, err);
    st_held_close(&file);
    return rc;
}

static int read_voc(struct st_annotated *table, struct st_pairs *pairs, const struct stoker_pairs *how,
                    const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    struct st_buffer text = {0};
    int rc = st_pairs_voc(pairs, how->images, how->set, ST_VOC_DETECTION, opt, err);
    for (uint64_t i = 0; i < pairs->count && !rc; i++)
        rc = read_xml(table, st_pairs_target(pairs, i), &text, err);
    for (uint32_t k = 0; st_voc_classes[k] && !rc; k++)
        if (!st_cells_add(&table->classes, st_voc_classes[k], strlen(st_voc_classes[k])))
            rc = st_fail(err, STOKER_ENOMEM, "%s: out of memory", how->images);
    st_buffer_free(&text);
    return rc;
}

int st_boxed_open(struct stoker_dataset **out, const struct stoker_pairs *how,
                  const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    const bool coco = how->layout == STOKER_PAIRS_COCO;
    struct st_annotated table = {0};
    struct st_pairs pairs = {0};
    struct stoker_dataset *images = NULL, *data = NULL;
    int rc = (coco ? read_coco : read_voc)(&table, &pairs, how, opt, err);
    if (!rc)
        rc = st_pairs_files(&images, &pairs, false, err);
    if (!rc)
        rc = st_dataset_boxed(&data, images, &table, coco ? ST_BOXED_COCO : ST_BOXED_VOC, err);
    if (!rc)
        rc = st_pairs_keep_classes(data, &table.classes, err);
    if (rc) {
        st_dataset_drop(data);
    } else {
        if (!how->contiguous) { /* NULL for VOC */
            data->class_labels = table.class_ids;
            table.class_ids = NULL;
        }
        *out = data;
    }
    st_dataset_drop(images);
    st_annotated_free(&table);
    st_pairs_free(&pairs);
    return rc;
}
