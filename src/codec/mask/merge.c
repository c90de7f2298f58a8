/* merge.c - the union of masks given as run lengths
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/mask/rle.h"

/* One of two masks, up to the end of its current run. */
struct side {
    const struct st_rle *rle;
    uint64_t next, end;
    bool inside;
};

static struct side begin(const struct st_rle *rle)
{
    return (struct side){rle, 1, rle->counts[0], false};
}

/* Moves on to the run that contains the pixel at `position`, which is the current run or a later one. */
static void move_to(struct side *side, uint64_t position)
{
    while (side->end <= position && side->next < side->rle->count) {
        side->end += side->rle->counts[side->next++];
        side->inside = !side->inside;
    }
}

/* `counts` has room for one more than both have. */
static struct st_rle merge_two(const struct st_rle *a, const struct st_rle *b, uint32_t *counts)
{
    const uint64_t pixels = (uint64_t)a->width * a->height;
    struct side one = begin(a), other = begin(b);
    uint64_t count = 0, from = 0, at = 0;
    bool inside = false;
    while (at < pixels) {
        move_to(&one, at);
        move_to(&other, at);
        if ((one.inside || other.inside) != inside) {
            inside = !inside;
            counts[count++] = (uint32_t)(at - from);
            from = at;
        }
        at = one.end < other.end ? one.end : other.end;
    }
    counts[count++] = (uint32_t)(pixels - from);
    return (struct st_rle){a->width, a->height, counts, count};
}

/* In pairs, and those again in pairs: the time is that of the counts times the logarithm of the number
 * of masks. */
int st_rle_merge(struct st_rle *out, const struct st_rle *masks, uint64_t count, struct st_arena *arena,
                 struct stoker_error *err)
{
    struct st_rle *left = count <= SIZE_MAX / 64 ? st_arena_take(arena, count * sizeof *left) : NULL;
    if (!left)
        return st_fail(err, STOKER_ENOMEM, "out of memory for the union of masks");
    memcpy(left, masks, count * sizeof *left);
    for (uint64_t rest = count; rest > 1; rest = (rest + 1) / 2)
        for (uint64_t i = 0; i < rest; i += 2) {
            if (i + 1 == rest) {
                left[i / 2] = left[i];
                break;
            }
            uint32_t *counts =
                st_arena_take(arena, (left[i].count + left[i + 1].count + 1) * sizeof *counts);
            if (!counts)
                return st_fail(err, STOKER_ENOMEM, "out of memory for the union of masks");
            left[i / 2] = merge_two(&left[i], &left[i + 1], counts);
        }
    *out = left[0];
    return 0;
}
