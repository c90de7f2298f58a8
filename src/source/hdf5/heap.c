/* heap.c - finds variable-length strings and sequences of an HDF5 file
 *
 * A collection begins with "GCOL", its version and its size. Objects follow: the object's number (2
 * bytes), its reference count (2), padding (4), its size (8), and its bytes, padded to a multiple of 8.
 * Number 0 is the free space, which comes last.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/hdf5/heap.h"
#include "source/little.h"

#include <string.h>

enum {
    COLLECTION_HEAD = 16,
    OBJECT_HEAD = 16,
    OBJECTS_MAX = 65536, /* numbers have 16 bits and are unique */
    WINDOW = 4096,       /* bytes read at a time: the smallest collection that the library writes */
};

struct search {
    const struct st_held *file;
    struct stoker_error *err;
    uint64_t at, end;                 /* of the collection, as offsets in the file */
    uint64_t window_at, window_bytes; /* what the window contains */
    uint8_t window[WINDOW];
};

static int damaged(const struct search *search, uint64_t at, const char *what)
{
    return st_fail(search->err, STOKER_ECORRUPT,
                   "the global heap at byte %llu is damaged: byte %llu: %s",
                   (unsigned long long)search->at, (unsigned long long)at, what);
}

/* Reads `size` bytes at `at`, which must be inside the collection. */
static int look(struct search *search, uint64_t at, uint64_t size, const uint8_t **out)
{
    if (at < search->window_at || at - search->window_at + size > search->window_bytes) {
        const uint64_t left = search->end - at;
        const uint64_t bytes = left < WINDOW ? left : WINDOW;
        search->window_bytes = 0;
        const int rc = st_held_read(search->file, at, search->window, bytes, search->err);
        if (rc)
            return rc;
        search->window_at = at;
        search->window_bytes = bytes;
    }
    *out = search->window + (at - search->window_at);
    return 0;
}

static int open_collection(struct search *search)
{
    const uint8_t *head;
    const uint64_t size = search->file->size;
    if (search->at > size || size - search->at < COLLECTION_HEAD)
        return damaged(search, search->at, "past the end of the file");
    search->end = search->at + (size - search->at < WINDOW ? size - search->at : WINDOW);
    const int rc = look(search, search->at, COLLECTION_HEAD, &head);
    if (rc)
        return rc;
    if (memcmp(head, "GCOL", 4) || head[4] != 1)
        return damaged(search, search->at, "not a collection of version 1");
    if (st_u64(head + 8) < COLLECTION_HEAD || st_u64(head + 8) > size - search->at)
        return damaged(search, search->at + 8, "its size exceeds the file, or is too small");
    search->end = search->at + st_u64(head + 8);
    if (search->window_bytes > search->end - search->at)
        search->window_bytes = search->end - search->at;
    return 0;
}

/* Walks from object to object. Each step advances by at least a header, and there are at most as many
 * objects as numbers. */
static int find_object(struct search *search, uint32_t number, struct st_h5_object *out)
{
    uint64_t at = search->at + COLLECTION_HEAD;
    for (uint32_t seen = 0; seen <= OBJECTS_MAX && search->end - at >= OBJECT_HEAD; seen++) {
        const uint8_t *head;
        const int rc = look(search, at, OBJECT_HEAD, &head);
        if (rc)
            return rc;
        const uint64_t size = st_u64(head + 8), left = search->end - at - OBJECT_HEAD;
        if (st_u16(head) == 0)
            break;
        if (size > left)
            return damaged(search, at, "an object extends past the collection");
        if (st_u16(head) == number) {
            *out = (struct st_h5_object){at + OBJECT_HEAD, size};
            return 0;
        }
        at += OBJECT_HEAD + (st_align(size, 8) < left ? st_align(size, 8) : left);
    }
    return st_fail(search->err, STOKER_ECORRUPT, "the global heap at byte %llu has no object %u",
                   (unsigned long long)search->at, number);
}

int st_h5_heap_find(struct st_h5_object *out, const struct st_held *file, uint64_t base,
                    const uint8_t reference[ST_H5_REFERENCE], uint32_t unit, struct stoker_error *err)
{
    struct search search = {.file = file, .err = err};
    const uint64_t length = st_u32(reference), address = st_u64(reference + 4);
    const uint32_t number = st_u32(reference + 12);
    *out = (struct st_h5_object){0};
    if (!length)
        return 0;
    if (!address || !number || number >= OBJECTS_MAX || !st_add(address, base, &search.at))
        return st_fail(
            err, STOKER_ECORRUPT,
            "its reference is damaged: it states %llu elements in object %u of the global heap at byte "
            "%llu",
            (unsigned long long)length, number, (unsigned long long)address);
    int rc = open_collection(&search);
    if (!rc)
        rc = find_object(&search, number, out);
    if (!rc && out->size != length * unit)
        rc = st_fail(err, STOKER_ECORRUPT,
                     "is damaged: it should have %llu elements of %u bytes, but object %u of the global "
                     "heap at byte %llu has %llu bytes",
                     (unsigned long long)length, unit, number, (unsigned long long)search.at,
                     (unsigned long long)out->size);
    return rc;
}
