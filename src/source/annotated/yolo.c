/* yolo.c - reads annotations as YOLO has them: a text file for each image, a line for each object
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/annotated/yolo.h"
#include "source/text/numbers.h"

enum { BOX = 4, CORNERS_LEAST = 3, VISIBLE = 2 };

struct reading {
    struct st_annotated *table;
    struct st_annotated_image *image;
    const struct st_yolo_form *form;
    uint64_t class_count;
    const char *path;
    unsigned long long line;
    struct stoker_error *err;
};

#define FAIL(r, sentence, ...)                                                                          \
    st_fail((r)->err, STOKER_ECORRUPT, "%.500s, line %llu: " sentence, (r)->path, (r)->line, __VA_ARGS__)

static int no_memory(const struct reading *r)
{
    return st_fail(r->err, STOKER_ENOMEM, "%.500s: out of memory for its annotations", r->path);
}

/* The next word of the line; false at its end. */
static bool take_word(struct st_text *line, struct st_bytes *out)
{
    while (line->at < line->end && (*line->at == ' ' || *line->at == '\t' || *line->at == '\r'))
        line->at++;
    const char *from = line->at;
    while (line->at < line->end && *line->at != ' ' && *line->at != '\t' && *line->at != '\r')
        line->at++;
    *out = (struct st_bytes){(const uint8_t *)from, (size_t)(line->at - from)};
    return out->size > 0;
}

static int read_label(const struct reading *r, struct st_bytes word, struct st_object *object)
{
    double number = 0; /* some programs write 3.0 */
    const int shown = (int)(word.size < 60 ? word.size : 60);
    if (!st_text_float(word, &number) || !(number >= 0 && number < 1ll << 53) ||
        (double)(int64_t)number != number)
        return FAIL(r, "the class is '%.*s' instead of a whole number from 0 on", shown,
                    (const char *)word.data);
    if (r->class_count && number >= (double)r->class_count)
        return FAIL(r, "the class is %.0f, but there are only %llu", number,
                    (unsigned long long)r->class_count);
    object->label = (int64_t)number;
    object->flags |= ST_OBJECT_LABEL;
    return 0;
}

/* The numbers after the label, to the end of the table's; visibility is not a fraction. */
static int read_numbers(const struct reading *r, struct st_text *line, uint64_t *count)
{
    const double margin = 0.01; /* programs that write labels round, and draw beyond the border */
    struct st_bytes word;
    for (*count = 0; take_word(line, &word); ++*count) {
        double number = 0;
        const int shown = (int)(word.size < 60 ? word.size : 60);
        const bool read = st_text_float(word, &number),
                   sees = r->form->visibility && *count >= BOX && (*count - BOX) % 3 == 2;
        if (!read)
            return FAIL(r, "'%.*s' is not a number", shown, (const char *)word.data);
        if (!(number >= -margin && number <= (sees ? VISIBLE : 1 + margin)))
            return FAIL(r,
                        "'%.*s' is not between 0 and %d: coordinates are fractions of the image's width "
                        "and height",
                        shown, (const char *)word.data, sees ? VISIBLE : 1);
        if (!st_annotated_add_number(r->table, number))
            return no_memory(r);
    }
    return 0;
}

static int take_box(struct st_object *object, const double *numbers)
{
    memcpy(object->box, numbers, sizeof object->box);
    object->flags |= ST_OBJECT_BOX;
    return 0;
}

static int take_polygon(const struct reading *r, struct st_object *object, uint64_t at, uint64_t count)
{
    if (count != BOX && (count % 2 || count < 2 * CORNERS_LEAST))
        return FAIL(
            r, "%llu numbers follow the class, which are neither a box nor the corners of a polygon",
            (unsigned long long)count);
    const double *xy = r->table->numbers + at;
    if (count == BOX)
        return take_box(object, xy);
    double left = xy[0], right = xy[0], top = xy[1], bottom = xy[1];
    for (uint64_t i = 2; i < count; i += 2) {
        left = xy[i] < left ? xy[i] : left;
        right = xy[i] > right ? xy[i] : right;
        top = xy[i + 1] < top ? xy[i + 1] : top;
        bottom = xy[i + 1] > bottom ? xy[i + 1] : bottom;
    }
    object->shape = ST_SHAPE_POLYGONS;
    object->shape_at = at;
    object->shape_size = count;
    return take_box(
        object, (const double[]){(left + right) / 2, (top + bottom) / 2, right - left, bottom - top});
}

/* Keypoints become x, y and visibility, which takes more room than x and y. */
static int take_keypoints(const struct reading *r, struct st_object *object, uint64_t at, uint64_t count)
{
    struct st_annotated *table = r->table;
    const uint32_t keypoints = r->form->keypoints, each = r->form->visibility ? 3 : 2;
    if (count != BOX + (uint64_t)keypoints * each)
        return FAIL(r, "%llu numbers follow the class instead of %llu", (unsigned long long)count,
                    (unsigned long long)(BOX + (uint64_t)keypoints * each));
    take_box(object, table->numbers + at);
    object->keypoints = at + BOX;
    object->keypoint_count = keypoints;
    for (uint32_t i = 0; i < keypoints && each == 2; i++)
        if (!st_annotated_add_number(table, VISIBLE))
            return no_memory(r);
    double *to = table->numbers + object->keypoints;
    for (uint32_t i = keypoints;
         each == 2 && i-- > 0;) { /* from the last, so that none is overwritten */
        const double x = to[2 * (uint64_t)i], y = to[2 * (uint64_t)i + 1];
        memcpy(to + 3 * (uint64_t)i, (const double[]){x, y, VISIBLE}, 3 * sizeof *to);
    }
    return 0;
}

static int read_line(struct reading *r, struct st_text line)
{
    struct st_bytes word;
    uint64_t count;
    const uint64_t at = r->table->number_count;
    if (!take_word(&line, &word))
        return 0; /* an empty line */
    struct st_object *object = st_annotated_add_object(r->table);
    if (!object)
        return no_memory(r);
    r->image->count++;
    int rc = read_label(r, word, object);
    if (!rc)
        rc = read_numbers(r, &line, &count);
    if (!rc)
        rc = r->form->polygons ? take_polygon(r, object, at, count)
                               : take_keypoints(r, object, at, count);
    if (!rc && !object->shape && !object->keypoint_count)
        r->table->number_count = at; /* the box has them */
    return rc;
}

int st_yolo_add(struct st_annotated *table, struct st_bytes text, const char *path,
                const struct st_yolo_form *form, uint64_t class_count, struct stoker_error *err)
{
    struct reading r = {
        .table = table, .form = form, .class_count = class_count, .path = path, .err = err};
    const char *at = text.size ? (const char *)text.data : "", *end = at + text.size;
    const uint64_t size = strlen(path) + 1;
    table->format = ST_BOX_CXCYWH;
    table->relative = table->from_zero = true;
    r.image = st_annotated_add_image(table);
    if (!r.image || !st_buffer_keep(&table->names, table->names.size + size))
        return no_memory(&r);
    r.image->name = table->names.size;
    memcpy(table->names.data + table->names.size, path, size);
    table->names.size += size;
    int rc = 0;
    while (at < end && !rc) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        r.line++;
        rc = read_line(&r, (struct st_text){.at = at, .end = stop ? stop : end});
        at = stop ? stop + 1 : end;
    }
    return rc;
}
