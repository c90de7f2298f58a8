/* coco.c - reads annotations in COCO's JSON: instances, keypoints, stuff, or images alone
 *
 * The file is mapped and read in one pass; what annotations refer to may come later. Afterwards images
 * are sorted and annotations assigned to them, in time that is linear but for the sorting of ids.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/annotated/coco.h"
#include "source/annotated/coco_shape.h"
#include "source/annotated/ids.h"
#include "source/annotated/pull.h"

#include <stdlib.h>

struct reading {
    struct st_pull pull;
    struct st_annotated *out;
    int64_t *image_ids; /* of each object */
    uint64_t image_ids_room;
    struct st_id_at *categories;
    uint64_t category_count, category_room;
};

/* ---- images and categories ------------------------------------------------------------------------ */

static bool read_side(struct st_pull *pull, const char *what, uint32_t *out)
{
    int64_t side;
    if (st_pull_is_null(pull))
        return true;
    const char *from = pull->text.at;
    if (!st_pull_int(pull, what, &side))
        return false;
    if (side < 0 || side > INT32_MAX)
        return st_pull_fail(pull, from, "%s is not a number of pixels", what);
    *out = (uint32_t)side;
    return true;
}

static bool read_image(struct reading *r)
{
    struct st_pull *pull = &r->pull;
    struct st_annotated_image *image = st_annotated_add_image(r->out);
    const char *from = pull->text.at;
    bool began = false, good = image || st_pull_no_memory(pull), has_id = false, has_name = false;
    struct st_bytes key;
    good = good && st_pull_enter(pull, '{', "an image");
    while (good && st_pull_member(pull, &began, &key)) {
        if (st_key_is(key, "id")) {
            good = has_id = st_pull_int(pull, "the 'id' of an image", &image->id);
        } else if (st_key_is(key, "file_name")) {
            image->name = r->out->names.size;
            good = has_name = st_pull_text(pull, "the 'file_name' of an image", &r->out->names);
        } else if (st_key_is(key, "width")) {
            good = read_side(pull, "the 'width' of an image", &image->width);
        } else if (st_key_is(key, "height")) {
            good = read_side(pull, "the 'height' of an image", &image->height);
        } else {
            good = st_pull_skip(pull);
        }
    }
    if (!good || pull->rc)
        return false;
    return (has_id && has_name) ||
           st_pull_fail(pull, from, "an image has no '%s'", has_id ? "file_name" : "id");
}

static bool read_category(struct reading *r)
{
    struct st_pull *pull = &r->pull;
    struct st_cells *names = &r->out->classes;
    struct st_buffer name = {0};
    struct st_id_at category = {.at = (uint32_t)r->category_count};
    const char *from = pull->text.at;
    bool began = false, good = st_pull_enter(pull, '{', "a category"), has_id = false;
    struct st_bytes key;
    while (good && st_pull_member(pull, &began, &key)) {
        name.size = st_key_is(key, "name") ? 0 : name.size;
        if (st_key_is(key, "id"))
            good = has_id = st_pull_int(pull, "the 'id' of a category", &category.id);
        else if (st_key_is(key, "name"))
            good = st_pull_text(pull, "the 'name' of a category", &name);
        else
            good = st_pull_skip(pull);
    }
    good = good && !pull->rc && (has_id || st_pull_fail(pull, from, "a category has no 'id'"));
    if (good && r->category_count == r->category_room) {
        const uint64_t room = 2 * r->category_room + 64;
        struct st_id_at *grown = st_grow(r->categories, room, sizeof *grown);
        r->categories = grown ? grown : r->categories;
        r->category_room = grown ? room : r->category_room;
        good = grown || st_pull_no_memory(pull);
    }
    if (good) {
        r->categories[r->category_count++] = category;
        good = st_cells_add(names, name.size ? (const char *)name.data : "",
                            name.size ? name.size - 1 : 0) ||
               st_pull_no_memory(pull);
    }
    st_buffer_free(&name);
    return good;
}

/* ---- annotations ---------------------------------------------------------------------------------- */

static bool read_box(struct st_pull *pull, struct st_object *object)
{
    static const char what[] = "the 'bbox' of an annotation";
    uint32_t count = 0;
    bool began = false;
    if (st_pull_is_null(pull))
        return true;
    const char *from = pull->text.at;
    if (!st_pull_enter(pull, '[', what))
        return false;
    for (; st_pull_item(pull, &began); count++)
        if (!st_pull_number(pull, what, &object->box[count < 4 ? count : 3]))
            return false;
    if (pull->rc)
        return false;
    object->flags |= count ? ST_OBJECT_BOX : 0;
    return count == 0 || count == 4 ||
           st_pull_fail(pull, from, "%s has %u numbers instead of 4", what, count);
}

static bool read_keypoints(struct reading *r, struct st_object *object)
{
    static const char what[] = "the 'keypoints' of an annotation";
    struct st_pull *pull = &r->pull;
    bool began = false;
    double number;
    if (st_pull_is_null(pull))
        return true;
    const char *from = pull->text.at;
    if (!st_pull_enter(pull, '[', what))
        return false;
    object->keypoints = r->out->number_count;
    while (st_pull_item(pull, &began)) {
        if (!st_pull_number(pull, what, &number))
            return false;
        if (!st_annotated_add_number(r->out, number))
            return st_pull_no_memory(pull);
    }
    const uint64_t numbers = r->out->number_count - object->keypoints;
    object->keypoint_count = numbers / 3;
    return !pull->rc && (numbers % 3 == 0 ||
                         st_pull_fail(pull, from, "%s are not x, y and visibility in turn", what));
}

static bool read_shape(struct reading *r, struct st_object *object)
{
    st_text_skip_blanks(&r->pull.text);
    const char *from = r->pull.text.at;
    if (!st_coco_skip_shape(&r->pull, &object->shape))
        return false;
    object->shape_at = (uint64_t)(from - r->pull.begin);
    object->shape_size = (uint64_t)(r->pull.text.at - from);
    return true;
}

static bool read_flag(struct st_pull *pull, const char *what, struct st_object *object, uint32_t flag)
{
    bool set = false;
    if (!st_pull_is_null(pull) && !st_pull_flag(pull, what, &set))
        return false;
    object->flags = set ? object->flags | flag : object->flags & ~flag;
    return true;
}

static bool read_member(struct reading *r, struct st_bytes key, struct st_object *object,
                        int64_t *image_id, bool *found)
{
    struct st_pull *pull = &r->pull;
    if (st_key_is(key, "segmentation"))
        return read_shape(r, object);
    if (st_key_is(key, "bbox"))
        return read_box(pull, object);
    if (st_key_is(key, "image_id"))
        return *found = st_pull_int(pull, "the 'image_id' of an annotation", image_id);
    if (st_key_is(key, "category_id")) {
        object->flags |= ST_OBJECT_LABEL;
        return st_pull_int(pull, "the 'category_id' of an annotation", &object->label);
    }
    if (st_key_is(key, "id"))
        return st_pull_int(pull, "the 'id' of an annotation", &object->id);
    if (st_key_is(key, "area"))
        return st_pull_is_null(pull) ||
               st_pull_number(pull, "the 'area' of an annotation", &object->area);
    if (st_key_is(key, "iscrowd"))
        return read_flag(pull, "the 'iscrowd' of an annotation", object, ST_OBJECT_CROWD);
    if (st_key_is(key, "keypoints"))
        return read_keypoints(r, object);
    return st_pull_skip(pull);
}

/* Room for the image id of one more object. */
static bool has_room(struct reading *r)
{
    if (r->out->object_count >= UINT32_MAX - 1)
        return st_pull_fail(&r->pull, r->pull.text.at, "more annotations than are supported");
    if (r->out->object_count < r->image_ids_room)
        return true;
    const uint64_t room = r->image_ids_room + r->image_ids_room / 2 + 64;
    int64_t *grown = st_grow(r->image_ids, room, sizeof *grown);
    if (!grown)
        return st_pull_no_memory(&r->pull);
    r->image_ids = grown;
    r->image_ids_room = room;
    return true;
}

static bool read_annotation(struct reading *r)
{
    struct st_pull *pull = &r->pull;
    if (!has_room(r))
        return false;
    const uint64_t at = r->out->object_count;
    struct st_object *object = st_annotated_add_object(r->out);
    const char *from = pull->text.at;
    bool began = false, found = false, good = object || st_pull_no_memory(pull);
    struct st_bytes key;
    good = good && st_pull_enter(pull, '{', "an annotation");
    while (good && st_pull_member(pull, &began, &key))
        good = read_member(r, key, object, &r->image_ids[at], &found);
    return good && !pull->rc && (found || st_pull_fail(pull, from, "an annotation has no 'image_id'"));
}

/* ---- the file ------------------------------------------------------------------------------------- */

static bool read_list(struct reading *r, const char *what, bool (*read)(struct reading *))
{
    bool began = false;
    if (!st_pull_enter(&r->pull, '[', what))
        return false;
    while (st_pull_item(&r->pull, &began)) {
        st_text_skip_blanks(&r->pull.text);
        if (!read(r))
            return false;
    }
    return !r->pull.rc;
}

static bool read_all(struct reading *r)
{
    struct st_pull *pull = &r->pull;
    struct st_annotated *out = r->out;
    struct st_bytes key;
    bool began = false, images = false, good = st_pull_enter(pull, '{', "the file");
    while (good &&
           st_pull_member(pull, &began, &key)) { /* of equal keys the last one counts, as in Python */
        if (st_key_is(key, "images")) {
            out->image_count = out->names.size = 0;
            good = images = read_list(r, "the list of 'images'", read_image);
        } else if (st_key_is(key, "annotations")) {
            out->object_count = out->number_count = 0;
            good = read_list(r, "the list of 'annotations'", read_annotation);
        } else if (st_key_is(key, "categories")) {
            st_cells_clear(&out->classes);
            r->category_count = 0;
            good = read_list(r, "the list of 'categories'", read_category);
        } else {
            good = st_pull_skip(pull);
        }
    }
    if (!good || pull->rc)
        return false;
    if (!images)
        return st_pull_fail(pull, pull->text.at,
                            "it has no list of 'images', so it is not in COCO's format");
    return !st_pull_peek(pull) ||
           st_pull_fail(pull, pull->text.at, "something follows the end of the JSON");
}

/* ---- what belongs together ------------------------------------------------------------------------ */

/* Sorts the images by id; of equal ids the last image stays, as in pycocotools. *ids: those of the
 * images that are left. */
static bool sort_images(struct reading *r, int64_t **ids)
{
    struct st_annotated *out = r->out;
    const uint64_t count = out->image_count;
    if (count >= UINT32_MAX)
        return st_pull_fail(&r->pull, r->pull.text.at, "more images than are supported");
    struct st_id_at *list = st_calloc(count, sizeof *list);
    struct st_annotated_image *sorted = st_calloc(count, sizeof *sorted);
    *ids = st_calloc(count, sizeof **ids);
    if (!list || !sorted || !*ids) {
        free(list);
        free(sorted);
        return st_pull_no_memory(&r->pull);
    }
    for (uint32_t i = 0; i < count; i++)
        list[i] = (struct st_id_at){out->images[i].id, i};
    out->image_count = st_ids_sort(list, (uint32_t)count);
    out->repeated = count - out->image_count;
    for (uint32_t i = 0; i < out->image_count; i++) {
        sorted[i] = out->images[list[i].at];
        (*ids)[i] = list[i].id;
    }
    free(list);
    free(out->images);
    out->images = sorted;
    return true;
}

/* Counts the objects of each image, and replaces their image ids by places in the table; UINT32_MAX: not
 * there. */
static bool find_images(struct reading *r, const int64_t *sorted)
{
    struct st_annotated *out = r->out;
    struct st_ids ids;
    if (!st_ids_new(&ids, sorted, (uint32_t)out->image_count))
        return st_pull_no_memory(&r->pull);
    for (uint64_t i = 0; i < out->image_count; i++)
        out->images[i].count = 0;
    for (uint64_t i = 0; i < out->object_count; i++) {
        const uint32_t image = st_ids_find(&ids, r->image_ids[i]);
        r->image_ids[i] = image;
        if (image == UINT32_MAX)
            out->orphans++;
        else
            out->images[image].count++;
    }
    st_ids_free(&ids);
    return true;
}

static bool group_objects(struct reading *r)
{
    struct st_annotated *out = r->out;
    uint64_t first = 0;
    for (uint64_t i = 0; i < out->image_count; i++) {
        out->images[i].first = first;
        first += out->images[i].count;
        out->images[i].count = 0;
    }
    out->order = st_calloc(first, sizeof *out->order);
    if (!out->order)
        return st_pull_no_memory(&r->pull);
    for (uint64_t i = 0; i < out->object_count; i++) {
        if (r->image_ids[i] == UINT32_MAX)
            continue;
        struct st_annotated_image *image = &out->images[r->image_ids[i]];
        out->order[image->first + image->count++] = (uint32_t)i;
    }
    return true;
}

/* Sorts the categories by id, with their names. */
static bool sort_categories(struct reading *r)
{
    struct st_annotated *out = r->out;
    struct st_cells sorted = {0};
    const uint32_t count = st_ids_sort(r->categories, (uint32_t)r->category_count);
    bool good = (out->class_ids = st_calloc(count, sizeof *out->class_ids)) != NULL;
    for (uint32_t i = 0; i < count && good; i++) {
        const struct st_id_at category = r->categories[i];
        out->class_ids[i] = category.id;
        good = st_cells_add(&sorted, st_cells_word(&out->classes, category.at),
                            st_cells_size(&out->classes, category.at));
    }
    st_cells_free(&out->classes);
    out->classes = sorted;
    return good || st_pull_no_memory(&r->pull);
}

static bool number_labels(struct reading *r)
{
    struct st_annotated *out = r->out;
    struct st_ids ids;
    bool good =
        st_ids_new(&ids, out->class_ids, (uint32_t)out->classes.count) || st_pull_no_memory(&r->pull);
    for (uint64_t i = 0; i < out->object_count && good; i++) {
        struct st_object *object = &out->objects[i];
        if (!(object->flags & ST_OBJECT_LABEL))
            continue;
        const uint32_t label = st_ids_find(&ids, object->label);
        if (label == UINT32_MAX) {
            r->pull.rc = st_fail(
                r->pull.err, STOKER_ECORRUPT,
                "%.500s: annotation %lld has the category %lld, which is not among the file's %llu",
                r->pull.path, (long long)object->id, (long long)object->label,
                (unsigned long long)out->classes.count);
            good = false;
        } else {
            object->label = label;
        }
    }
    st_ids_free(&ids);
    return good;
}

static bool read_file(struct reading *r, bool contiguous)
{
    int64_t *ids = NULL;
    (void)st_text_take_word(&r->pull.text, "\xef\xbb\xbf"); /* a byte order mark */
    const bool good = read_all(r) && sort_images(r, &ids) && find_images(r, ids) && group_objects(r) &&
                      sort_categories(r) && (!contiguous || number_labels(r));
    free(ids);
    free(r->image_ids);
    free(r->categories);
    return good;
}

int st_coco_read(struct st_annotated *out, const char *path, bool contiguous,
                 const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    *out = (struct st_annotated){.format = ST_BOX_XYWH, .from_zero = contiguous};
    int rc = st_held_open_any(&out->file, path, NULL, opt, err);
    if (!rc && !out->file.size)
        rc = st_fail(err, STOKER_ECORRUPT, "%s: the file is empty", path);
    if (!rc)
        rc = st_held_map(&out->file, err);
    if (!rc) {
        const char *begin = (const char *)out->file.map;
        struct reading reading = {.pull = {.text = {.at = begin, .end = begin + out->file.size},
                                           .path = path,
                                           .begin = begin,
                                           .err = err},
                                  .out = out};
        if (!read_file(&reading, contiguous))
            rc = reading.pull.rc;
    }
    if (rc)
        st_annotated_free(out);
    return rc;
}
