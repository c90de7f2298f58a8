/* annotations.c - what src/source/annotated makes of annotation files, for compare_annotations.py
 *
 * A line of standard input is one file; a line of standard output is its table with the masks of small
 * images as JSON, or an error:
 *
 *     coco PATH CONTIGUOUS
 *     voc PATH
 *     yolo PATH POLYGONS KEYPOINTS VISIBILITY CLASSES WIDTH HEIGHT
 *     time PATH                     only how many seconds of CPU time a COCO file takes, and how many
 * objects it has
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/mask/shape.h"
#include "source/annotated/coco.h"
#include "source/annotated/voc.h"
#include "source/annotated/yolo.h"
#include "source/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DRAWN_MOST = 4096 };

static void put_hex(const char *text)
{
    putchar('"');
    for (; *text; text++)
        printf("%02x", (unsigned char)*text);
    putchar('"');
}

static void put_error(int code, const struct stoker_error *err)
{
    printf("{\"code\": %d, \"error\": ", code);
    put_hex(err->message);
    printf("}");
}

static void put_mask(const struct st_annotated *table, const struct st_annotated_image *image,
                     const struct st_object *object)
{
    uint8_t pixels[DRAWN_MOST] = {0};
    struct st_arena arena = {0};
    struct stoker_error err = {0};
    struct st_object_shape shape;
    const struct st_view plane = {pixels, image->width, (int32_t)image->width, (int32_t)image->height,
                                  1};
    int rc = st_annotated_shape(&shape, table, object, image->width, image->height, &arena, &err);
    if (!rc)
        rc = st_shape_draw(&shape, &plane, (struct st_brush){1}, &arena, &err);
    if (rc) {
        put_error(rc, &err);
    } else {
        putchar('"');
        for (uint32_t i = 0; i < image->width * image->height; i++)
            putchar('0' + pixels[i]);
        putchar('"');
    }
    st_arena_free(&arena);
}

static void put_object(const struct st_annotated *table, const struct st_annotated_image *image,
                       const struct st_object *object)
{
    printf("{\"label\": %lld, \"id\": %lld, \"box\": [%.17g, %.17g, %.17g, %.17g], \"area\": %.17g, "
           "\"flags\": %u, "
           "\"keypoints\": [",
           (long long)object->label, (long long)object->id, object->box[0], object->box[1],
           object->box[2], object->box[3], object->area, object->flags);
    for (uint64_t i = 0; i < 3 * object->keypoint_count; i++)
        printf("%s%.17g", i ? ", " : "", table->numbers[object->keypoints + i]);
    printf("], \"mask\": ");
    if (object->shape && (uint64_t)image->width * image->height <= DRAWN_MOST)
        put_mask(table, image, object);
    else
        printf("null");
    printf("}");
}

/* The labels of all objects in one plane, later ones over earlier ones; null if one cannot be drawn. */
static void put_map(const struct st_annotated *table, uint64_t at)
{
    const struct st_annotated_image *image = &table->images[at];
    uint8_t pixels[DRAWN_MOST] = {0};
    struct st_arena arena = {0};
    const struct st_view plane = {pixels, image->width, (int32_t)image->width, (int32_t)image->height,
                                  1};
    const uint32_t size = image->width * image->height;
    int rc = size > DRAWN_MOST;
    for (uint64_t k = 0; k < image->count && !rc; k++) {
        const struct st_object *object = st_annotated_object(table, at, k);
        struct st_object_shape shape;
        rc = st_annotated_shape(&shape, table, object, image->width, image->height, &arena, NULL);
        if (!rc)
            rc = st_shape_draw(&shape, &plane, (struct st_brush){(uint8_t)object->label}, &arena, NULL);
    }
    printf(rc ? "null" : "\"");
    for (uint32_t i = 0; i < size && !rc; i++)
        printf("%02x", pixels[i]);
    printf(rc ? "" : "\"");
    st_arena_free(&arena);
}

static void put_table(const struct st_annotated *table)
{
    printf("{\"images\": [");
    for (uint64_t i = 0; i < table->image_count; i++) {
        const struct st_annotated_image *image = &table->images[i];
        printf("%s{\"name\": ", i ? ", " : "");
        put_hex(st_annotated_name(table, i));
        printf(", \"id\": %lld, \"width\": %u, \"height\": %u, \"objects\": [", (long long)image->id,
               image->width, image->height);
        for (uint64_t k = 0; k < image->count; k++) {
            printf("%s", k ? ", " : "");
            put_object(table, image, st_annotated_object(table, i, k));
        }
        printf("], \"map\": ");
        put_map(table, i);
        printf("}");
    }
    printf("], \"format\": %d, \"relative\": %d, \"orphans\": %llu, \"repeated\": %llu, \"classes\": [",
           table->format, table->relative, (unsigned long long)table->orphans,
           (unsigned long long)table->repeated);
    for (uint64_t i = 0; i < table->classes.count; i++) {
        printf("%s[%lld, ", i ? ", " : "", (long long)table->class_ids[i]);
        put_hex(st_cells_word(&table->classes, i));
        printf("]");
    }
    printf("]}");
}

static int read_text_file(struct st_annotated *table, const char *kind, const char *path, char *options,
                          struct stoker_error *err)
{
    struct st_held file;
    struct st_buffer bytes = {0};
    int rc = st_held_open(&file, path, err);
    if (!rc)
        rc = st_load(&bytes, &file, 1 << 24, err);
    const struct st_bytes text = {bytes.data, bytes.size};
    unsigned polygons = 0, keypoints = 0, visibility = 0, classes = 0, width = 0, height = 0;
    if (!rc && !strcmp(kind, "voc")) {
        rc = st_voc_add(table, text, path, st_voc_classes, err);
    } else if (!rc) {
        sscanf(options, "%u %u %u %u %u %u", &polygons, &keypoints, &visibility, &classes, &width,
               &height);
        const struct st_yolo_form form = {polygons, keypoints, visibility};
        rc = st_yolo_add(table, text, path, &form, classes, err);
        table->images[0].width = width;
        table->images[0].height = height;
    }
    st_buffer_free(&bytes);
    st_held_close(&file);
    return rc;
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Reads and draws the shapes of the first images, each into a plane of zeros; returns how many. */
static uint64_t draw_some(const struct st_annotated *table)
{
    enum { OBJECTS = 2000 };
    struct st_buffer plane = {0};
    struct st_arena arena = {0};
    uint64_t drawn = 0;
    for (uint64_t i = 0; i < table->image_count; i++) {
        const struct st_annotated_image *image = &table->images[i];
        const uint64_t size = (uint64_t)image->width * image->height;
        for (uint64_t k = 0; k < image->count && drawn < OBJECTS && st_buffer_reserve(&plane, size);
             k++, drawn++) {
            const struct st_view view = {plane.data, image->width, (int32_t)image->width,
                                         (int32_t)image->height, 1};
            struct st_object_shape shape;
            memset(plane.data, 0, size);
            if (!st_annotated_shape(&shape, table, st_annotated_object(table, i, k), image->width,
                                    image->height, &arena, NULL))
                (void)st_shape_draw(&shape, &view, (struct st_brush){1}, &arena, NULL);
            st_arena_reset(&arena);
        }
    }
    st_arena_free(&arena);
    st_buffer_free(&plane);
    return drawn;
}

static void measure(const char *path)
{
    struct st_annotated table;
    struct stoker_error err = {0};
    const double from = cpu_seconds();
    const int rc = st_coco_read(&table, path, true, NULL, &err);
    const double read = cpu_seconds();
    const uint64_t drawn = rc ? 0 : draw_some(&table);
    printf("{\"seconds\": %.6f, \"objects\": %llu, \"drawn\": %llu, \"drawing\": %.6f, \"code\": %d}\n",
           read - from, (unsigned long long)table.object_count, (unsigned long long)drawn,
           cpu_seconds() - read, rc);
    st_annotated_free(&table);
}

static void do_line(char *line)
{
    struct st_annotated table = {0};
    struct stoker_error err = {0};
    char *rest;
    const char *kind = strtok_r(line, " \n", &rest), *path = strtok_r(NULL, " \n", &rest);
    if (!kind || !path)
        return;
    if (!strcmp(kind, "time")) {
        measure(path);
        return;
    }
    const int rc = strcmp(kind, "coco") ? read_text_file(&table, kind, path, rest, &err)
                                        : st_coco_read(&table, path, atoi(rest), NULL, &err);
    if (rc)
        put_error(rc, &err);
    else
        put_table(&table);
    putchar('\n');
    fflush(stdout);
    st_annotated_free(&table);
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 1)
        do_line(line);
    free(line);
    return 0;
}
