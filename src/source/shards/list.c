/* list.c - the indexes of many archives in one block, which is also the file format
 *
 * The block is a header, one entry per archive sorted by inode, then the blocks of index.h. Each of
 * those has its own checksum, which is verified when the archive is looked up.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/shards/list.h"
#include "source/index/index.h"
#include "source/index/keep.h"
#include "source/shards/keep.h"
#include "source/shards/sums.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAGIC   0x7473696c78697473ull /* "stixlist" in little-endian order; marks the byte order too */
#define VERSION 1u

struct list_header {
    uint64_t magic;        /* same layout as st_index_header up to `size` */
    uint32_t version, crc; /* of the header and the entries */
    uint64_t size;         /* of the whole block */
    uint64_t kind, count;
};

struct list_entry {
    struct st_shard_file_id file_id;
    uint64_t size; /* of the archive */
    int64_t modified_ns;
    uint64_t at, length; /* of its index in the block */
};

static_assert(offsetof(struct list_header, crc) == offsetof(struct st_index_header, crc) &&
                  offsetof(struct list_header, size) == offsetof(struct st_index_header, size),
              "all kinds of index share one checksum and one reader");

struct st_shard_list {
    uint8_t *bytes;
    uint64_t kind, count;
    const struct list_entry *entries;
    uint64_t *places; /* the archive that entry i was made from; NULL: the list was read from a file */
};

static int64_t ns_of(struct timespec time) { return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec; }

bool st_shard_file_id(struct st_shard_file_id *out, const struct stat *info)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *out = (struct st_shard_file_id){.inode = info->st_ino, .changed_ns = ns_of(info->st_ctim)};
    return out->changed_ns < ns_of(now) - ST_KEEP_SETTLED_NS;
}

/* ---- reading ----------------------------------------------------------------------------------- */

void st_shard_list_path(char out[PATH_MAX], const struct st_shard_kind *kind, const char *first,
                        const struct stoker_dataset_options *opt)
{
    char place[PATH_MAX], key[PATH_MAX + 32];
    out[0] = '\0';
    if (!opt->index_dir) {
        if (snprintf(out, PATH_MAX, "%s.all.stoker-index", first) >= PATH_MAX)
            out[0] = '\0';
    } else if (realpath(first, place)) {
        const int size = snprintf(key, sizeof key, "%ss:%s", kind->name, place);
        if (st_keep_path(out, opt->index_dir, key, (uint64_t)size, NULL))
            out[0] = '\0';
    }
}

/* Whether the entries are sorted and their indexes are inside the block. */
static bool valid_entries(const struct list_entry *entries, uint64_t count, uint64_t front,
                          uint64_t size)
{
    for (uint64_t i = 0; i < count; i++)
        if ((i && entries[i].file_id.inode < entries[i - 1].file_id.inode) || entries[i].at % 8 ||
            entries[i].at < front || entries[i].at > size || entries[i].length > size - entries[i].at)
            return false;
    return true;
}

static bool front_size(uint64_t count, uint64_t *out)
{
    return st_mul(count, sizeof(struct list_entry), out) &&
           st_add(*out, sizeof(struct list_header), out);
}

struct st_shard_list *st_shard_list_load(const char *file, uint64_t kind)
{
    uint64_t size;
    uint8_t *bytes = file[0] ? st_keep_read(file, &size) : NULL;
    return bytes ? st_shard_list_take(bytes, size, kind) : NULL;
}

struct st_shard_list *st_shard_list_take(uint8_t *bytes, uint64_t size, uint64_t kind)
{
    uint64_t front;
    struct list_header header;
    struct st_shard_list *list = st_calloc(1, sizeof *list);
    bool good = list && size >= sizeof header;
    if (good) {
        memcpy(&header, bytes, sizeof header);
        good =
            header.magic == MAGIC && header.version == VERSION && header.kind == kind &&
            front_size(header.count, &front) && front <= size &&
            st_index_sum(bytes, front) == header.crc &&
            valid_entries((const struct list_entry *)(bytes + sizeof header), header.count, front, size);
    }
    if (!good) {
        free(bytes);
        free(list);
        return NULL;
    }
    *list = (struct st_shard_list){.bytes = bytes,
                                   .kind = kind,
                                   .count = header.count,
                                   .entries = (const struct list_entry *)(bytes + sizeof header)};
    return list;
}

void st_shard_list_free(struct st_shard_list *list)
{
    if (list) {
        free(list->bytes);
        free(list->places);
    }
    free(list);
}

bool st_shard_list_find(const struct st_shard_list *list, const struct stat *info,
                        struct st_shard_index *out)
{
    struct st_shard_file_id is;
    uint64_t low = 0, high = list->count; /* finds the first entry with this inode */
    st_shard_file_id(&is, info);
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (list->entries[middle].file_id.inode < is.inode)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < list->count && list->entries[low].file_id.inode == is.inode; low++) {
        const struct list_entry *entry = &list->entries[low];
        if (entry->file_id.changed_ns == is.changed_ns && entry->modified_ns == ns_of(info->st_mtim) &&
            entry->size == (uint64_t)info->st_size &&
            st_shard_index_load(out, list->bytes + entry->at, entry->length, list->kind) &&
            out->stamp.size == entry->size && out->stamp.modified_ns == entry->modified_ns) {
            out->lent = true;
            return true;
        }
    }
    return false;
}

/* ---- joining ----------------------------------------------------------------------------------- */

struct piece {
    uint64_t place; /* of the archive */
    uint64_t inode;
    struct st_shard_index summed; /* bytes NULL: the archive's own index is up to date */
};

static int by_inode(const void *a, const void *b)
{
    const uint64_t left = ((const struct piece *)a)->inode, right = ((const struct piece *)b)->inode;
    return (left > right) - (left < right);
}

static const struct st_shard_index *index_of(const struct st_shards *shards, const struct piece *piece)
{
    return piece->summed.bytes ? &piece->summed : &shards->items[piece->place].index;
}

/* One piece per opened archive. */
static struct piece *collect(const struct st_shards *shards, uint64_t *count)
{
    struct piece *pieces = st_calloc(shards->count, sizeof *pieces);
    *count = 0;
    for (uint64_t i = 0; pieces && i < shards->count; i++) {
        const struct st_shard *shard = &shards->items[i];
        if (!shard->index.bytes)
            continue;
        struct piece *piece = &pieces[(*count)++];
        *piece = (struct piece){.place = i, .inode = shard->file_id.inode};
        st_shard_sums_join(shard->sums, &shard->index, &piece->summed);
    }
    if (*count)
        qsort(pieces, *count, sizeof *pieces, by_inode);
    return pieces;
}

static void fill(struct st_shard_list *list, const struct st_shards *shards, const struct piece *pieces,
                 uint64_t front, uint64_t size)
{
    struct list_entry *entries = (struct list_entry *)(list->bytes + sizeof(struct list_header));
    const struct list_header header = {
        .magic = MAGIC, .version = VERSION, .size = size, .kind = list->kind, .count = list->count};
    uint64_t at = st_align(front, 8);
    memset(list->bytes, 0, at);
    memcpy(list->bytes, &header, sizeof header);
    for (uint64_t i = 0; i < list->count; i++) {
        const struct st_shard_index *index = index_of(shards, &pieces[i]);
        entries[i] = (struct list_entry){.file_id = shards->items[pieces[i].place].file_id,
                                         .size = index->stamp.size,
                                         .modified_ns = index->stamp.modified_ns,
                                         .at = at,
                                         .length = index->size};
        memcpy(list->bytes + at, index->bytes, index->size); /* a multiple of 8: see lay_out */
        st_index_seal(list->bytes + at, index->size);
        list->places[i] = pieces[i].place;
        at += index->size;
    }
    list->entries = entries;
    st_index_seal(list->bytes, front);
}

struct st_shard_list *st_shard_list_join(const struct st_shards *shards)
{
    uint64_t count, front = 0, size = 0;
    struct st_shard_list *list = st_calloc(1, sizeof *list);
    struct piece *pieces = collect(shards, &count);
    bool good = list && pieces && front_size(count, &front);
    size = st_align(front, 8);
    for (uint64_t i = 0; good && i < count; i++)
        good = st_add(size, index_of(shards, &pieces[i])->size, &size);
    if (good) {
        *list = (struct st_shard_list){.kind = shards->kind->number, .count = count};
        list->bytes = st_alloc_aligned(size);
        list->places = st_calloc(count, sizeof *list->places);
        good = list->bytes && list->places;
    }
    if (good)
        fill(list, shards, pieces, front, size);
    for (uint64_t i = 0; pieces && i < count; i++)
        st_shard_index_free(&pieces[i].summed);
    free(pieces);
    if (good)
        return list;
    st_shard_list_free(list);
    return NULL;
}

void st_shard_list_lend(const struct st_shard_list *list, struct st_shards *shards)
{
    for (uint64_t i = 0; i < list->count; i++) {
        struct st_shard_index *index = &shards->items[list->places[i]].index, lent;
        const struct list_entry *entry = &list->entries[i];
        if (!st_shard_index_load(&lent, list->bytes + entry->at, entry->length, list->kind))
            continue; /* cannot happen; the archive would keep its own index */
        lent.lent = true;
        st_shard_index_free(index);
        *index = lent;
    }
}

void st_shard_list_store(const struct st_shard_list *list, const char *file)
{
    struct list_header header;
    memcpy(&header, list->bytes, sizeof header);
    if (file[0])
        st_keep_replace(file, list->bytes, header.size,
                        false); /* a torn write is caught by the checksums */
}
