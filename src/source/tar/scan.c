/* scan.c - the samples of a tar file: adjacent members with the same key
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/tar/scan.h"
#include "source/shards/trails.h"
#include "source/tar/members.h"
#include "source/tar/names.h"
#include "source/text/numbers.h"

#include <string.h>

static int out_of_memory(const struct st_window *window, struct stoker_error *err)
{
    return st_fail(err, STOKER_ENOMEM, "%s: out of memory for its index", window->path);
}

static bool same(struct st_bytes a, struct st_bytes b)
{
    return a.size == b.size && !memcmp(a.data, b.data, a.size);
}

/* Adds a member to the current sample or to a new one. */
static bool add_member(struct st_shard_builder *into, struct st_bytes name, uint64_t start, uint64_t end)
{
    struct st_bytes key, suffix;
    if (!st_tar_split_name(name, &key, &suffix))
        return true;
    if (!into->sample_count || !same(key, st_shard_last_key(into)))
        if (!st_shard_begin(into, key))
            return false;
    return st_shard_add(into, start, end, suffix);
}

/* The rest of a damaged archive becomes a sample, so that reading it reports the damage. */
static bool add_lost(struct st_shard_builder *into, const struct st_window *window, uint64_t at)
{
    const uint64_t start = at < window->end ? at : window->end;
    const struct st_bytes key = {(const uint8_t *)"(damaged)", 9}, none = {(const uint8_t *)"", 0};
    return st_shard_begin(into, key) && st_shard_add(into, start, ST_SHARD_LOST, none);
}

static int read_member(struct st_tar_walk *walk, struct st_trail_note *out, struct stoker_error *err)
{
    struct st_tar_member member;
    const int rc = st_tar_next(walk, &member, err);
    *out = (struct st_trail_note){.start = member.start};
    if (rc)
        return rc;
    out->name = member.name;
    out->regular = member.regular;
    out->end = member.regular ? member.data + member.size : walk->at;
    return 0;
}

/* ---- with several threads -------------------------------------------------------------------- */

static bool trail_looks_like(const uint8_t *block)
{
    return !memcmp(block + 257, "ustar", 5) && st_tar_is_header(block);
}

static void trail_begin(void *walk, struct st_window *window)
{
    ((struct st_tar_walk *)walk)->window = window;
}

static int trail_next(void *self, uint64_t at, struct st_trail_note *out)
{
    struct st_tar_walk *walk = self;
    walk->at = at;
    return read_member(walk, out, NULL);
}

static void trail_end(void *walk) { st_tar_walk_free(walk); }

static const struct st_trail_kind trail_kind = {
    .head = ST_TAR_BLOCK,
    .step = ST_TAR_BLOCK,
    .walk_size = sizeof(struct st_tar_walk),
    .looks_like = trail_looks_like,
    .begin = trail_begin,
    .next = trail_next,
    .end = trail_end,
};

/* ---- from the front -------------------------------------------------------------------------- */

static int scan_members(struct st_tar_walk *walk, uint32_t threads, struct st_shard_builder *into,
                        struct stoker_error *err)
{
    struct st_trails *trails = NULL;
    struct st_trail_note member;
    struct st_bytes key, suffix;
    bool cut = false, lost = false;
    int rc = 0;
    for (uint64_t count = 0; !rc && !cut; count++) {
        if (!trails && st_trails_due(walk->window, count))
            trails = st_trails_find(&trail_kind, walk->window, walk->at, count, threads);
        rc = st_trails_take(trails, &walk->at, &member) ? 0 : read_member(walk, &member, err);
        if (rc || !member.regular)
            continue;
        if (!add_member(into, member.name, member.start, member.end))
            rc = out_of_memory(walk->window, err);
        cut = member.end > walk->window->end;
        lost = cut && !st_tar_split_name(member.name, &key, &suffix); /* no sample represents it */
    }
    st_trails_free(trails);
    if (lost || (rc == STOKER_ECORRUPT && member.start > 0))
        rc = add_lost(into, walk->window, member.start) ? 0 : out_of_memory(walk->window, err);
    return rc == STOKER_END ? 0 : rc;
}

static int tar_scan(struct st_window *window, uint32_t threads, struct st_shard_builder *into,
                    struct stoker_error *err)
{
    if (window->end == 0)
        return st_fail(err, STOKER_ECORRUPT, "%s: the file is empty, not a tar file", window->path);
    struct st_tar_walk walk = {.window = window};
    const int rc = scan_members(&walk, threads, into, err);
    st_tar_walk_free(&walk);
    return rc;
}

/* ---- DALI's index ---------------------------------------------------------------------------- */

/* Splits the next word off a line; false at the end of the line. */
static bool take_word(struct st_bytes *line, struct st_bytes *word)
{
    while (line->size && *line->data == ' ')
        line->data++, line->size--;
    const uint8_t *space = memchr(line->data, ' ', line->size);
    *word = (struct st_bytes){line->data, space ? (size_t)(space - line->data) : line->size};
    line->data += word->size;
    line->size -= word->size;
    return word->size > 0;
}

static bool take_line(struct st_bytes *text, struct st_bytes *line)
{
    if (!text->size)
        return false;
    const uint8_t *end = memchr(text->data, '\n', text->size);
    *line = (struct st_bytes){text->data, end ? (size_t)(end - text->data) : text->size};
    const size_t used = line->size + (end ? 1 : 0);
    text->data += used;
    text->size -= used;
    return true;
}

static bool take_number(struct st_bytes *line, uint64_t *out)
{
    struct st_bytes word;
    int64_t value;
    if (!take_word(line, &word) || !st_text_int(word, &value) || value < 0)
        return false;
    *out = (uint64_t)value;
    return true;
}

/* Whether there is a member with this name and size at this offset. */
static bool member_matches(struct st_window *window, struct st_bytes name, uint64_t data, uint64_t size)
{
    struct st_tar_member member;
    struct st_tar_walk walk = {.window = window, .at = data - ST_TAR_BLOCK};
    const bool found = !st_tar_next(&walk, &member, NULL) && member.data == data &&
                       member.size == size && member.regular && !member.sparse &&
                       same(member.name, name);
    st_tar_walk_free(&walk);
    return found;
}

/* Imports one member of a line: suffix, offset, size and name. Only the headers of the first 64 members
 * and of every 64th after that are checked; a scan would read all. */
static bool import_member(struct st_window *window, struct st_bytes *line, uint64_t *before,
                          struct st_shard_builder *into)
{
    struct st_bytes suffix, name;
    uint64_t data, size;
    if (!take_word(line, &suffix) || !take_number(line, &data) || !take_number(line, &size) ||
        !take_word(line, &name))
        return false;
    /* Members must follow each other without gaps: a gap means that something was skipped or that a name
     * has an extension header. */
    if (data != *before + ST_TAR_BLOCK || !st_window_has(window, data, size))
        return false;
    *before = st_align(data + size, ST_TAR_BLOCK);
    if ((into->part_count < 64 || into->part_count % 64 == 0) &&
        !member_matches(window, name, data, size))
        return false;
    return add_member(into, name, data - ST_TAR_BLOCK, data + size);
}

/* The format is "v1.2 COUNT", then one line per sample. It must cover the whole archive except trailing
 * zeros. */
static bool tar_import(struct st_window *window, struct st_bytes text, struct st_shard_builder *into)
{
    struct st_bytes line, version;
    struct st_tar_member member;
    uint64_t count, before = 0;
    if (!take_line(&text, &line) || !take_word(&line, &version) || version.size != 4 ||
        memcmp(version.data, "v1.2", 4) || !take_number(&line, &count) || !count)
        return false;
    for (uint64_t i = 0; i < count; i++) {
        if (!take_line(&text, &line))
            return false;
        do
            if (!import_member(window, &line, &before, into))
                return false;
        while (line.size);
    }
    struct st_tar_walk walk = {.window = window, .at = before};
    const bool ends = st_tar_next(&walk, &member, NULL) == STOKER_END;
    st_tar_walk_free(&walk);
    return ends && into->sample_count == count;
}

const struct st_shard_kind st_shard_kind_tar = {
    .name = "tar file",
    .extension = ".tar",
    .number = ST_TAR_INDEX,
    .named = true,
    .packing = st_packing_of,
    .scan = tar_scan,
    .inside = st_tar_inside,
    .import = tar_import,
};
