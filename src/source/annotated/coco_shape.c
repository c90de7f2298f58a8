/* coco_shape.c - the 'segmentation' of an annotation of COCO: polygons or run lengths
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/annotated/coco_shape.h"
#include "source/little.h"
#include "source/table/json_text.h"
#include "source/text/numbers.h"

/* ---- polygons, skipped ---------------------------------------------------------------------------- */

/* Of the eight bytes here, 0x80 in each that is no digit. What follows a byte above 0x7f may be wrong.
 */
static inline uint64_t other_bytes(const char *at)
{
    const uint64_t bytes = st_u64((const uint8_t *)at) ^ 0x3030303030303030u;
    return ((bytes + 0x7676767676767676u) | bytes) & 0x8080808080808080u;
}

/* Moves behind a number of a few digits, such as 500.49, which is what nearly all are. They differ in
 * length, so that a branch for each digit would often be guessed wrong. NULL: any other number, or none.
 */
static inline const char *skip_short_number(const char *at, const char *end)
{
    if (end - at < 8)
        return NULL;
    uint64_t others = other_bytes(at);
    if (!others)
        return NULL;
    const int whole = __builtin_ctzll(others) >> 3;
    if (whole == 0 || (*at == '0' && whole > 1))
        return NULL;
    if (at[whole] != '.')
        return at + whole;
    others &= others - 1;
    if (!others)
        return NULL;
    const int all = __builtin_ctzll(others) >> 3;
    return all > whole + 1 ? at + all : NULL;
}

static bool skip_polygon(struct st_pull *pull)
{
    static const char what[] = "a coordinate of a polygon";
    double number;
    if (!st_pull_enter(pull, '[', "a polygon"))
        return false;
    for (bool began = false; st_pull_item(pull, &began);) {
        const char *end = pull->text.end, *at = pull->text.at, *after;
        at += at < end && *at == ' ';
        while ((after = skip_short_number(at, end)) && *after == ',') {
            at = after + 1;
            at += at < end && *at == ' ';
        }
        pull->text.at = at;
        if (!st_pull_number(pull, what, &number))
            return false;
    }
    return !pull->rc;
}

static bool skip_polygons(struct st_pull *pull, enum st_shape_kind *out)
{
    if (!st_pull_enter(pull, '[', "a segmentation"))
        return false;
    for (bool began = false; st_pull_item(pull, &began); *out = ST_SHAPE_POLYGONS)
        if (!skip_polygon(pull))
            return false;
    return !pull->rc;
}

/* ---- run lengths ---------------------------------------------------------------------------------- */

static bool read_size(struct st_pull *pull, struct st_rle *out)
{
    int64_t sides[2];
    uint32_t count = 0;
    bool began = false;
    if (!st_pull_enter(pull, '[', "the 'size' of a mask"))
        return false;
    const char *from = pull->text.at;
    for (; st_pull_item(pull, &began); count++)
        if (!st_pull_int(pull, "the 'size' of a mask", &sides[count < 2 ? count : 1]))
            return false;
    if (pull->rc)
        return false;
    if (count != 2 || sides[0] < 0 || sides[0] > UINT32_MAX || sides[1] < 0 || sides[1] > UINT32_MAX)
        return st_pull_fail(pull, from, "the 'size' of a mask is not its height and width");
    out->height = (uint32_t)sides[0];
    out->width = (uint32_t)sides[1];
    return true;
}

/* Into `counts`, or nowhere if that is NULL. */
static bool read_counts(struct st_pull *pull, uint32_t *counts, uint64_t *count)
{
    static const char what[] = "a run length";
    *count = 0;
    if (!st_pull_enter(pull, '[', "the 'counts' of a mask"))
        return false;
    for (bool began = false; st_pull_item(pull, &began);) {
        int64_t run;
        st_text_skip_blanks(&pull->text);
        const char *from = pull->text.at;
        if (!st_pull_int(pull, what, &run))
            return false;
        if (run < 0 || run > UINT32_MAX)
            return st_pull_fail(pull, from, "%s is not a number from 0 to %u", what, UINT32_MAX);
        if (counts)
            counts[*count] = (uint32_t)run;
        ++*count;
    }
    return !pull->rc;
}

/* Items of the list that begins here, or more; the list was checked before. */
static uint64_t most_items(const struct st_text *text)
{
    uint64_t commas = 0;
    for (const char *at = text->at; at < text->end && *at != ']'; at++)
        commas += *at == ',';
    return commas + 1;
}

static bool read_runs(struct st_pull *pull, struct st_arena *arena, struct st_object_shape *out)
{
    uint32_t *counts = NULL;
    if (arena) {
        counts = st_arena_take(arena, most_items(&pull->text) * sizeof *counts);
        if (!counts)
            return st_pull_no_memory(pull);
    }
    out->kind = ST_SHAPE_COUNTS;
    out->rle.counts = counts;
    return read_counts(pull, counts, &out->rle.count);
}

static bool read_text(struct st_pull *pull, struct st_arena *arena, struct st_object_shape *out)
{
    const char *from = pull->text.at + 1;
    out->kind = ST_SHAPE_TEXT;
    if (!st_pull_skip(pull) || !arena)
        return !pull->rc;
    struct st_text text = {.at = from, .end = pull->text.at};
    char *copy = st_arena_take(arena, (uint64_t)(text.end - from));
    if (!copy)
        return st_pull_no_memory(pull);
    const char *end = st_json_take_text(&text, copy);
    out->text = (struct st_bytes){(const uint8_t *)copy, end ? (size_t)(end - copy) : 0};
    return true;
}

/* Without an arena it is only checked. */
static bool read_mask(struct st_pull *pull, struct st_arena *arena, struct st_object_shape *out)
{
    struct st_bytes key;
    const char *from = pull->text.at;
    bool began = false, sized = false, good = st_pull_enter(pull, '{', "a segmentation");
    while (good && st_pull_member(pull, &began, &key)) {
        if (st_key_is(key, "size"))
            good = sized = read_size(pull, &out->rle);
        else if (!st_key_is(key, "counts"))
            good = st_pull_skip(pull);
        else
            good = st_pull_peek(pull) == '"' ? read_text(pull, arena, out) : read_runs(pull, arena, out);
    }
    if (!good || pull->rc)
        return false;
    return (sized && out->kind) ||
           st_pull_fail(pull, from, "a mask has no '%s'", sized ? "counts" : "size");
}

/* ---- polygons, read ------------------------------------------------------------------------------- */

static bool read_polygon(struct st_pull *pull, struct st_arena *arena, struct st_polygon *out)
{
    st_text_skip_blanks(&pull->text);
    double *xy = st_arena_take(arena, most_items(&pull->text) * sizeof *xy);
    uint64_t count = 0;
    bool began = false;
    if (!xy)
        return st_pull_no_memory(pull);
    if (!st_pull_enter(pull, '[', "a polygon"))
        return false;
    while (st_pull_item(pull, &began))
        if (!st_pull_number(pull, "a coordinate of a polygon", &xy[count++]))
            return false;
    *out = (struct st_polygon){xy, count / 2};
    return !pull->rc;
}

static uint64_t count_polygons(const struct st_text *text)
{
    uint64_t brackets = 0;
    for (const char *at = text->at; at < text->end; at++)
        brackets += *at == '[';
    return brackets;
}

static bool read_polygons(struct st_pull *pull, struct st_arena *arena, struct st_object_shape *out)
{
    struct st_polygon *polygons = st_arena_take(arena, count_polygons(&pull->text) * sizeof *polygons);
    bool began = false;
    if (!polygons)
        return st_pull_no_memory(pull);
    out->kind = ST_SHAPE_POLYGONS;
    out->polygons = polygons;
    if (!st_pull_enter(pull, '[', "a segmentation"))
        return false;
    while (st_pull_item(pull, &began))
        if (!read_polygon(pull, arena, &polygons[out->polygon_count++]))
            return false;
    return !pull->rc;
}

bool st_coco_skip_shape(struct st_pull *pull, enum st_shape_kind *out)
{
    struct st_object_shape mask = {0};
    *out = ST_SHAPE_NONE;
    if (st_pull_is_null(pull))
        return true;
    if (st_pull_peek(pull) != '{')
        return skip_polygons(pull, out);
    const bool good = read_mask(pull, NULL, &mask);
    *out = mask.kind;
    return good;
}

bool st_coco_read_shape(struct st_pull *pull, enum st_shape_kind kind, struct st_arena *arena,
                        struct st_object_shape *out)
{
    *out = (struct st_object_shape){0};
    return kind == ST_SHAPE_POLYGONS ? read_polygons(pull, arena, out) : read_mask(pull, arena, out);
}
