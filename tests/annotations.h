/* annotations.h - reads an annotation file that somebody damaged, and draws what is in it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_ANNOTATIONS_H
#define ST_TESTS_ANNOTATIONS_H

#include "codec/mask/shape.h"
#include "source/annotated/coco.h"
#include "source/annotated/voc.h"
#include "source/annotated/yolo.h"
#include "source/load.h"

#include <stdlib.h>
#include <string.h>

/* What of the largest files is drawn, and in how large masks. */
enum { ANNOTATIONS_OBJECTS = 64, ANNOTATIONS_PIXELS = 1 << 20 };

/* "coco", "voc", "yolo", or "yolo" with polygons or keypoints. */
static inline bool annotations_are(const char *kind)
{
    static const char *const kinds[] = {"coco", "voc", "yolo", "yolo-polygons", "yolo-keypoints"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kind, kinds[i]))
            return true;
    return false;
}

static inline int annotations_read(struct st_annotated *table, const char *kind, const char *path,
                                   struct stoker_error *err)
{
    struct st_held file;
    struct st_buffer bytes = {0};
    if (!strcmp(kind, "coco"))
        return st_coco_read(table, path, false, NULL, err);
    int rc = st_held_open(&file, path, err);
    if (!rc)
        rc = st_load(&bytes, &file, 1 << 24, err);
    const struct st_bytes text = {bytes.data, bytes.size};
    const struct st_yolo_form form = {!strcmp(kind, "yolo-polygons"),
                                      strcmp(kind, "yolo-keypoints") ? 0 : 2, false};
    if (!rc)
        rc = strcmp(kind, "voc") ? st_yolo_add(table, text, path, &form, 0, err)
                                 : st_voc_add(table, text, path, st_voc_classes, err);
    st_buffer_free(&bytes);
    st_held_close(&file);
    return rc;
}

static inline int annotations_draw(const struct st_annotated *table, uint64_t image, uint64_t k,
                                   struct stoker_error *err)
{
    const struct st_annotated_image *about = &table->images[image];
    const uint32_t width = about->width ? about->width : 50, height = about->height ? about->height : 40;
    if ((uint64_t)width * height > ANNOTATIONS_PIXELS)
        return 0;
    struct st_arena arena = {0};
    struct st_object_shape shape;
    uint8_t *pixels = calloc(width, height);
    const struct st_view plane = {pixels, width, (int32_t)width, (int32_t)height, 1};
    int rc = pixels ? st_annotated_shape(&shape, table, st_annotated_object(table, image, k), width,
                                         height, &arena, err)
                    : 0;
    if (pixels && !rc)
        rc = st_shape_draw(&shape, &plane, (struct st_brush){1}, &arena, err);
    free(pixels);
    st_arena_free(&arena);
    return rc;
}

/* The first error of those shapes that are wrong in themselves, which is found only when they are drawn.
 */
static inline int annotations_draw_all(const struct st_annotated *table, struct stoker_error *err)
{
    uint64_t left = ANNOTATIONS_OBJECTS;
    int rc = 0;
    for (uint64_t image = 0; image < table->image_count; image++)
        for (uint64_t k = 0; k < table->images[image].count && left; k++, left--)
            rc = rc ? rc : annotations_draw(table, image, k, err);
    return rc;
}

#endif
