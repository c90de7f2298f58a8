/* open_boxed.c - opens images and their boxes in the layouts of common datasets
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/annotated/coco.h"
#include "source/annotated/voc.h"
#include "source/annotated/yolo.h"
#include "source/load.h"
#include "source/pairs/boxed.h"
#include "source/pairs/pairs.h"

static int read_coco(struct st_annotated *table, struct st_pairs *pairs, const struct stoker_pairs *how,
                     const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    const int rc = st_coco_read(table, how->targets, how->contiguous, opt, err);
    return rc ? rc : st_pairs_annotated(pairs, how->images, table, opt, err);
}

static int read_text(struct st_buffer *text, const char *path, struct stoker_error *err)
{
    enum { LARGEST = 1 << 28 };
    struct st_held file;
    int rc = st_held_open(&file, path, err);
    text->size = 0;
    if (!rc)
        rc = st_load(text, &file, LARGEST, err);
    st_held_close(&file);
    return rc;
}

static int read_xml(struct st_annotated *table, const char *path, struct st_buffer *text,
                    struct stoker_error *err)
{
    const int rc = read_text(text, path, err);
    return rc ? rc
              : st_voc_add(table, (struct st_bytes){text->data, text->size}, path, st_voc_classes, err);
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

/* Names of classes, a line each. */
static int take_names(struct st_cells *classes, const char *names, struct stoker_error *err)
{
    while (names && *names) {
        const size_t size = strcspn(names, "\n");
        if (!st_cells_add(classes, names, size))
            return st_fail(err, STOKER_ENOMEM, "out of memory for the names of classes");
        names += size + (names[size] != '\0');
    }
    return 0;
}

static int read_yolo(struct st_annotated *table, struct st_pairs *pairs, const struct stoker_pairs *how,
                     const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    const struct st_yolo_form form = {
        .polygons = !how->points, .keypoints = how->points, .visibility = how->point_numbers == 3};
    struct st_buffer text = {0};
    int rc = take_names(&table->classes, how->names, err);
    if (!rc)
        rc = st_pairs_yolo(pairs, how->images, how->targets, opt, err);
    for (uint64_t i = 0; i < pairs->count && !rc; i++) {
        const char *path = st_pairs_target(pairs, i);
        text.size = 0; /* an image without a file has no objects */
        if (*path)
            rc = read_text(&text, path, err);
        if (!rc)
            rc = st_yolo_add(table, (struct st_bytes){text.data, text.size}, path, &form,
                             table->classes.count, err);
    }
    st_buffer_free(&text);
    return rc;
}

/* Moves the names of classes, and the labels that they stand for. */
static int keep_classes(struct stoker_dataset *data, struct st_annotated *table, bool contiguous,
                        struct stoker_error *err)
{
    const int rc = st_pairs_keep_classes(data, &table->classes, err);
    if (!rc && !contiguous) { /* NULL for VOC */
        data->class_labels = table->class_ids;
        table->class_ids = NULL;
    }
    return rc;
}

int st_boxed_open(struct stoker_dataset **out, const struct stoker_pairs *how,
                  const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    static int (*const read[])(struct st_annotated * table, struct st_pairs * pairs,
                               const struct stoker_pairs *how, const struct stoker_dataset_options *opt,
                               struct stoker_error *err) = {[STOKER_PAIRS_COCO] = read_coco,
                                                            [STOKER_PAIRS_VOC_BOXES] = read_voc,
                                                            [STOKER_PAIRS_YOLO] = read_yolo};
    const bool coco = how->layout == STOKER_PAIRS_COCO, yolo = how->layout == STOKER_PAIRS_YOLO;
    const struct st_boxed_how fields = {.kind = coco   ? ST_BOXED_COCO
                                                : yolo ? ST_BOXED_YOLO
                                                       : ST_BOXED_VOC,
                                        .keypoints = (coco && how->keypoints) || (yolo && how->points),
                                        .masks = coco || yolo ? how->masks : STOKER_SHAPES_NONE};
    struct st_annotated table = {0};
    struct st_pairs pairs = {0};
    struct stoker_dataset *images = NULL, *data = NULL;
    int rc = read[how->layout](&table, &pairs, how, opt, err);
    if (!rc)
        rc = st_pairs_files(&images, &pairs, false, err);
    if (!rc)
        rc = st_dataset_boxed(&data, images, &table, fields, err);
    if (!rc)
        rc = keep_classes(data, &table, how->contiguous, err);
    if (!rc && fields.masks)
        st_boxed_keep_shapes(data, &table);
    if (rc)
        st_dataset_drop(data);
    else
        *out = data;
    st_dataset_drop(images);
    st_annotated_free(&table);
    st_pairs_free(&pairs);
    return rc;
}
