/* load.c - loads a whole file into memory, decompressing it if necessary
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/load.h"
#include "source/shards/unpack.h"

static enum st_packing packing_of(const struct st_held *file)
{
    uint8_t head[16] = {0};
    const uint64_t size = file->size < sizeof head ? file->size : sizeof head;
    return st_held_read(file, 0, head, size, NULL) ? ST_PACKED_NOT : st_packing_of(head, size);
}

bool st_load_is_packed(const struct st_held *file) { return packing_of(file) != ST_PACKED_NOT; }

int st_load(struct st_buffer *out, const struct st_held *file, uint64_t limit, struct stoker_error *err)
{
    const enum st_packing packing = packing_of(file);
    if (file->size > limit)
        return st_fail(err, STOKER_ELIMIT,
                       "%s: its size of %llu bytes exceeds the %llu bytes allowed in memory", file->path,
                       (unsigned long long)file->size, (unsigned long long)limit);
    struct st_buffer whole = {0};
    if (!st_buffer_reserve(&whole, file->size + 1) || !st_buffer_reserve(out, 1)) {
        st_buffer_free(&whole);
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory for %llu bytes", file->path,
                       (unsigned long long)file->size);
    }
    int rc = st_held_read(file, 0, whole.data, file->size, err);
    whole.size = file->size;
    if (!rc && packing != ST_PACKED_NOT) {
        const uint64_t likely = st_unpack_limit(whole.size);
        out->size = 0;
        rc = st_unpack(packing, (struct st_bytes){whole.data, whole.size},
                       limit < likely ? limit : likely, out, file->path, err);
    } else if (!rc) {
        st_buffer_free(out);
        *out = whole;
        return 0;
    }
    st_buffer_free(&whole);
    return rc;
}
