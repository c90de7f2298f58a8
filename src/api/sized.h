/* sized.h - structures of programs that were compiled against another version of the header
 *
 * A structure that may grow begins with its size. An older program's is shorter, a newer program's
 * longer than the library's own; both agree on what the two have in common.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_API_SIZED_H
#define ST_API_SIZED_H

#include "base/err.h"

struct st_sized {
    const char *name;
    size_t size;  /* of this version */
    size_t first; /* of the first version that was released: no program has a shorter one */
};

/* Defines `variable` for struct `type`, whose last member in its first version was `last`. A member that
 * a later version adds must not lie in bytes that were padding before, since programs leave those
 * uninitialised. */
#define ST_SIZED(variable, type, last)                                                                  \
    _Static_assert((offsetof(struct type, last) + sizeof(((struct type *)0)->last)) %                   \
                           _Alignof(struct type) == 0,                                                  \
                   "padding at the end: move a member or add one");                                     \
    static const struct st_sized variable = {                                                           \
        "struct " #type, sizeof(struct type),                                                           \
        offsetof(struct type, last) + sizeof(((struct type *)0)->last)}

/* Writes the defaults, a whole structure of this version, to the caller's `size` bytes; the rest becomes
 * 0. */
void st_sized_init(const struct st_sized *of, const void *defaults, void *out, size_t size);
/* Copies the caller's members over `own`, which holds the defaults. Refuses a size that no version has,
 * and a member that this version does not know unless it is 0. */
int st_sized_take(const struct st_sized *of, void *own, const void *given, struct stoker_error *err);
/* Copies `own` to the caller's structure, as far as that goes; members that this version does not know
 * become 0. Refuses a size that no version has. */
int st_sized_give(const struct st_sized *of, const void *own, void *out, struct stoker_error *err);

#endif
