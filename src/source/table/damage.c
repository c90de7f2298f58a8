/* damage.c - the damaged rows of a table, and why they are damaged
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/table/table.h"

#include <stdlib.h>
#include <string.h>

#define DAMAGES_MAX (1u << 20) /* a file with more is not a table */

int st_manifest_no_memory(const struct st_manifest *manifest, struct stoker_error *err)
{
    return st_fail(err, STOKER_ENOMEM, "%s: out of memory", manifest->file.path);
}

int st_manifest_damage(struct st_manifest *manifest, uint64_t row, const char *why,
                       struct stoker_error *err)
{
    if (manifest->damage_count == DAMAGES_MAX)
        return st_fail(err, STOKER_ECORRUPT,
                       "%s: line %llu: %s; a million other rows are damaged too: is this a table?",
                       manifest->file.path, st_manifest_line(manifest, row), why);
    if (manifest->damage_count == manifest->damage_room) {
        const uint64_t room = manifest->damage_room * 2 + 16;
        struct st_manifest_damage *more = st_grow(manifest->damages, room, sizeof *more);
        if (!more)
            return st_manifest_no_memory(manifest, err);
        manifest->damages = more;
        manifest->damage_room = room;
    }
    char *copy = strdup(why);
    if (!copy)
        return st_manifest_no_memory(manifest, err);
    manifest->damages[manifest->damage_count++] = (struct st_manifest_damage){row, copy};
    manifest->lines[row] |= ST_MANIFEST_DAMAGED;
    return 0;
}

static int by_row(const void *a, const void *b)
{
    const struct st_manifest_damage *left = a, *right = b;
    return (left->row > right->row) - (left->row < right->row);
}

int st_manifest_why(const struct st_manifest *manifest, uint64_t row, struct stoker_error *err)
{
    const struct st_manifest_damage key = {.row = row};
    const struct st_manifest_damage *found =
        bsearch(&key, manifest->damages, manifest->damage_count, sizeof key, by_row);
    return st_fail(err, STOKER_ECORRUPT, "%s: line %llu: %s", manifest->file.path,
                   st_manifest_line(manifest, row), found ? found->why : "damaged");
}

int st_manifest_settle(struct st_manifest *manifest, struct stoker_error *err)
{
    if (manifest->damage_count)
        qsort(manifest->damages, manifest->damage_count, sizeof *manifest->damages, by_row);
    if (manifest->count && manifest->damage_count == manifest->count)
        return st_manifest_why(manifest, 0, err);
    return 0;
}
