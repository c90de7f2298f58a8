/* inside.c - the index that `stoker pack` stores as the last member of a tar file
 *
 * It is found from the end of the file, so that nothing else has to be read. It is used only if the
 * parts it lists cover every byte before it and a spot check of a few of them agrees. Opening cannot
 * verify more; each member's header and checksum are compared when it is read.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/tar/scan.h"
#include "source/tar/members.h"
#include "source/tar/names.h"

#include <stdlib.h>
#include <string.h>

enum { ENDING = 2 * ST_TAR_BLOCK, LOOKS = 16, LOOKS_REMOTE = 2, GROWTH = 8 };

/* Most indexes are a thousandth of their archive's size, those of the smallest samples a thirtieth. If
 * there is no header within that distance, the bytes belong to the last member and there is no index. */
#define TAIL_LIKELY 1024
#define TAIL_MOST   16
#define TAIL_FIRST  (64u << 10)
#define TAIL_LIMIT  (256ull << 20)

/* The file's bytes from `from` to its end. */
struct tail {
    struct st_window *window;
    uint8_t *bytes;
    uint64_t from;
};

static bool read_at(struct st_window *w, uint64_t at, uint8_t *into, uint64_t size)
{
    if (!w->memory)
        return !st_held_read(w->file, at, into, size, NULL);
    memcpy(into, w->memory + (at - w->base), size);
    return true;
}

/* Extends the tail back to `from`. */
static bool reach_back(struct tail *tail, uint64_t from)
{
    struct st_window *w = tail->window;
    if (from >= tail->from)
        return true;
    const uint64_t more = tail->from - from;
    uint8_t *bytes = st_alloc_aligned(w->end - from);
    if (!bytes || !read_at(w, from, bytes, more)) {
        free(bytes);
        return false;
    }
    if (tail->bytes)
        memcpy(bytes + more, tail->bytes, w->end - tail->from);
    free(tail->bytes);
    tail->bytes = bytes;
    tail->from = from;
    return true;
}

/* `stoker pack` writes no owner and no time: an archive that begins differently has no index inside. */
static bool may_be_packed(struct st_window *w)
{
    uint8_t block[ST_TAR_BLOCK];
    static const char plain[] = "0000644\0"
                                "0000000\0"
                                "0000000";
    return w->end > ENDING && w->end % ST_TAR_BLOCK == 0 && read_at(w, 0, block, sizeof block) &&
           !memcmp(block + 100, plain, sizeof plain) && !memcmp(block + 136, "00000000000", 12) &&
           !memcmp(block + 257, "ustar", 6);
}

static bool is_index(const struct st_tar_member *member)
{
    static const char name[] = "__index__";
    return member->regular && !member->sparse && member->name.size == sizeof name - 1 &&
           !memcmp(member->name.data, name, sizeof name - 1);
}

/* The member at `at`, if it is the index and only the end of the archive follows. */
static bool take_last(const struct tail *tail, uint64_t at, struct st_tar_member *out)
{
    struct st_window w = {
        .path = tail->window->path, .memory = tail->bytes, .base = tail->from, .end = tail->window->end};
    struct st_tar_walk walk = {.window = &w, .at = at};
    struct st_tar_member none;
    const bool last = !st_tar_next(&walk, out, NULL) && is_index(out) && walk.at == w.end - ENDING &&
                      st_tar_next(&walk, &none, NULL) == STOKER_END;
    st_tar_walk_free(&walk);
    out->name = (struct st_bytes){0}; /* it was owned by the walk */
    return last;
}

/* Searches backwards for the last header of the file; true if it is that of an index. */
static bool find_index(struct tail *tail, struct st_tar_member *out)
{
    const uint64_t end = tail->window->end;
    const uint64_t part = end / TAIL_MOST + TAIL_FIRST, most = part < TAIL_LIMIT ? part : TAIL_LIMIT;
    uint64_t at = end - ENDING;
    for (uint64_t span = TAIL_FIRST + end / TAIL_LIKELY;; span *= GROWTH) {
        if (span > most)
            span = most;
        if (!reach_back(tail, span < end ? (end - span) / ST_TAR_BLOCK * ST_TAR_BLOCK : 0))
            return false;
        while (at > tail->from) {
            at -= ST_TAR_BLOCK;
            const uint8_t *block = tail->bytes + (at - tail->from);
            if (!memcmp(block + 257, "ustar", 5) && st_tar_is_header(block))
                return take_last(tail, at, out);
        }
        if (!tail->from || span == most)
            return false;
    }
}

/* Whether the parts cover the file without gaps from its first byte to the index itself. */
static bool covers_all(struct tail *tail, const struct st_shard_index *index, uint64_t data)
{
    struct st_tar_member member;
    uint64_t at = 0;
    for (uint64_t i = 0; i < index->part_count; i++) {
        if (index->parts[i].start != at || index->parts[i].end > index->stamp.size)
            return false;
        at = st_align(index->parts[i].end, ST_TAR_BLOCK);
    }
    return index->part_count && at == index->stamp.size && at < data && data - at <= TAIL_FIRST &&
           reach_back(tail, at) && take_last(tail, at, &member) && member.data == data;
}

static bool part_matches(struct st_window *window, const struct st_shard_index *index,
                            uint64_t sample, uint64_t part)
{
    const struct st_shard_part *span = &index->parts[part];
    struct st_tar_walk walk = {.window = window, .at = span->start};
    struct st_tar_member member;
    const bool found = !st_tar_next(&walk, &member, NULL) && member.regular &&
                       member.data + member.size == span->end &&
                       st_tar_name_is(member.name, index->text + index->keys[sample],
                                      index->text + index->suffixes[index->part_suffixes[part]]);
    st_tar_walk_free(&walk);
    return found;
}

/* Checks samples spread over the archive, alternating between their first and last members. */
static bool spot_check(struct st_window *window, const struct st_shard_index *index)
{
    const uint64_t most = window->file && window->file->remote ? LOOKS_REMOTE : LOOKS;
    const uint64_t looks = index->sample_count < most ? index->sample_count : most;
    for (uint64_t i = 0; i < looks; i++) {
        const uint64_t sample = looks > 1 ? (index->sample_count - 1) * i / (looks - 1) : 0;
        const uint64_t part = i % 2 ? index->firsts[sample + 1] - 1 : index->firsts[sample];
        if (!part_matches(window, index, sample, part))
            return false;
    }
    return true;
}

bool st_tar_inside(struct st_window *window, struct st_shard_index *out)
{
    struct tail tail = {.window = window, .from = window->end};
    struct st_tar_member member;
    struct st_shard_index index = {0};
    if (!may_be_packed(window))
        return false;
    uint8_t *block = find_index(&tail, &member) ? st_calloc(member.size, 1) : NULL;
    if (block)
        memcpy(block, tail.bytes + (member.data - tail.from), member.size);
    const bool good = block &&
                      st_shard_index_load(&index, block, member.size, ST_TAR_INDEX) &&
                      covers_all(&tail, &index, member.data) && spot_check(window, &index);
    free(tail.bytes);
    if (good)
        *out = index;
    else
        free(block);
    return good;
}
