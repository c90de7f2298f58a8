/* voc.c - reads annotations in the XML of Pascal VOC
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/annotated/voc.h"
#include "source/annotated/xml.h"
#include "source/text/numbers.h"

#include <math.h>

const char *const st_voc_classes[] = {"__background__",
                                      "aeroplane",
                                      "bicycle",
                                      "bird",
                                      "boat",
                                      "bottle",
                                      "bus",
                                      "car",
                                      "cat",
                                      "chair",
                                      "cow",
                                      "diningtable",
                                      "dog",
                                      "horse",
                                      "motorbike",
                                      "person",
                                      "pottedplant",
                                      "sheep",
                                      "sofa",
                                      "train",
                                      "tvmonitor",
                                      NULL};

struct reading {
    struct st_xml xml;
    struct st_annotated *table;
    struct st_annotated_image *image;
    struct st_buffer word;
    const char *const *classes;
};

static bool is(struct st_bytes name, const char *word)
{
    return name.size == strlen(word) && !memcmp(name.data, word, name.size);
}

static struct st_bytes word_of(const struct reading *r)
{
    return (struct st_bytes){r->word.data, r->word.size};
}

static bool fail_value(struct reading *r, const char *at, const char *what, const char *kind)
{
    return st_xml_fail(&r->xml, at, "<%s> is '%.60s' instead of %s", what, (const char *)r->word.data,
                       kind);
}

static bool read_number(struct reading *r, const char *what, double *out)
{
    const char *from = r->xml.text.at;
    int64_t whole;
    if (!st_xml_text(&r->xml, what, &r->word))
        return false;
    if (st_text_int(word_of(r), &whole))
        *out = (double)whole;
    else if (!st_text_float(word_of(r), out) || !isfinite(*out))
        return fail_value(r, from, what, "a number");
    return true;
}

static bool read_side(struct reading *r, const char *what, uint32_t *out)
{
    const char *from = r->xml.text.at;
    int64_t whole;
    if (!st_xml_text(&r->xml, what, &r->word))
        return false;
    if (!st_text_int(word_of(r), &whole) || whole < 0 || whole > INT32_MAX)
        return fail_value(r, from, what, "a number of pixels");
    *out = (uint32_t)whole;
    return true;
}

static bool read_flag(struct reading *r, const char *what, struct st_object *object, uint32_t flag)
{
    double number;
    if (!read_number(r, what, &number))
        return false;
    object->flags = number != 0 ? object->flags | flag : object->flags & ~flag;
    return true;
}

static bool read_class(struct reading *r, struct st_object *object)
{
    const char *from = r->xml.text.at;
    if (!st_xml_text(&r->xml, "name", &r->word))
        return false;
    for (int64_t i = 0; r->classes[i]; i++)
        if (!strcmp((const char *)r->word.data, r->classes[i])) {
            object->label = i;
            object->flags |= ST_OBJECT_LABEL;
            return true;
        }
    return fail_value(r, from, "name", "one of the classes");
}

static bool read_box(struct reading *r, struct st_object *object)
{
    static const char *const sides[] = {"xmin", "ymin", "xmax", "ymax"};
    const char *from = r->xml.text.at;
    unsigned found = 0;
    struct st_bytes name;
    while (st_xml_child(&r->xml, &name)) {
        unsigned side = 0;
        while (side < 4 && !is(name, sides[side]))
            side++;
        if (!(side < 4 ? read_number(r, sides[side], &object->box[side]) : st_xml_skip(&r->xml)))
            return false;
        found |= 1u << side;
    }
    object->flags |= ST_OBJECT_BOX;
    for (unsigned side = 0; side < 4 && !r->xml.rc; side++)
        if (!(found & 1u << side))
            return st_xml_fail(&r->xml, from, "<bndbox> has no <%s>", sides[side]);
    return !r->xml.rc;
}

static bool read_object(struct reading *r)
{
    struct st_object *object = st_annotated_add_object(r->table);
    const char *from = r->xml.text.at;
    struct st_bytes name;
    bool good = true;
    if (!object) {
        r->xml.rc = st_fail(r->xml.err, STOKER_ENOMEM, "%.500s: out of memory", r->xml.path);
        return false;
    }
    r->image->count++;
    while (good && st_xml_child(&r->xml, &name)) {
        if (is(name, "name"))
            good = read_class(r, object);
        else if (is(name, "bndbox"))
            good = read_box(r, object);
        else if (is(name, "difficult"))
            good = read_flag(r, "difficult", object, ST_OBJECT_DIFFICULT);
        else if (is(name, "truncated"))
            good = read_flag(r, "truncated", object, ST_OBJECT_TRUNCATED);
        else
            good = st_xml_skip(&r->xml);
    }
    if (!good || r->xml.rc)
        return false;
    return ((object->flags & ST_OBJECT_LABEL) && (object->flags & ST_OBJECT_BOX)) ||
           st_xml_fail(&r->xml, from, "an <object> has no <%s>",
                       object->flags & ST_OBJECT_LABEL ? "bndbox" : "name");
}

static bool read_size(struct reading *r)
{
    struct st_bytes name;
    while (st_xml_child(&r->xml, &name))
        if (!(is(name, "width")    ? read_side(r, "width", &r->image->width)
              : is(name, "height") ? read_side(r, "height", &r->image->height)
                                   : st_xml_skip(&r->xml)))
            return false;
    return !r->xml.rc;
}

static bool read_name(struct reading *r)
{
    struct st_buffer *names = &r->table->names;
    if (!st_xml_text(&r->xml, "filename", &r->word))
        return false;
    if (!st_buffer_keep(names, names->size + r->word.size + 1)) {
        r->xml.rc = st_fail(r->xml.err, STOKER_ENOMEM, "%.500s: out of memory", r->xml.path);
        return false;
    }
    r->image->name = names->size;
    memcpy(names->data + names->size, r->word.data, r->word.size + 1);
    names->size += r->word.size + 1;
    return true;
}

static bool read_annotation(struct reading *r)
{
    struct st_bytes name;
    bool good = st_xml_child(&r->xml, &name);
    if (!r->xml.rc && (!good || !is(name, "annotation")))
        return st_xml_fail(&r->xml, r->xml.begin, "the file does not begin with <annotation>");
    while (good && st_xml_child(&r->xml, &name)) {
        if (is(name, "object"))
            good = read_object(r);
        else if (is(name, "filename"))
            good = read_name(r);
        else if (is(name, "size"))
            good = read_size(r);
        else
            good = st_xml_skip(&r->xml);
    }
    if (!good || r->xml.rc)
        return false;
    return !st_xml_child(&r->xml, &name) ||
           st_xml_fail(&r->xml, (const char *)name.data, "a second root element");
}

/* The name of an image whose file gives none is empty. */
static bool begin_image(struct reading *r)
{
    struct st_buffer *names = &r->table->names;
    r->image = st_annotated_add_image(r->table);
    if (!r->image || !st_buffer_keep(names, names->size + 1)) {
        r->xml.rc = st_fail(r->xml.err, STOKER_ENOMEM, "%.500s: out of memory", r->xml.path);
        return false;
    }
    r->image->name = names->size;
    names->data[names->size++] = '\0';
    return true;
}

int st_voc_add(struct st_annotated *table, struct st_bytes xml, const char *path,
               const char *const *classes, struct stoker_error *err)
{
    struct reading r = {.table = table, .classes = classes};
    table->format = ST_BOX_XYXY;
    st_xml_begin(&r.xml, xml, path, err);
    if (begin_image(&r))
        (void)read_annotation(&r);
    st_buffer_free(&r.word);
    return r.xml.rc;
}
