/* index.c - the samples of a tree of files, as one block of bytes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/index/index.h"
#include "source/checksum/crc32c.h"
#include "source/text/names.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define MAGIC   0x7864692e6b6f7473ull /* "stok.idx" in little-endian order; marks the byte order too */
#define VERSION 1u

uint32_t st_index_sum(const uint8_t *bytes, uint64_t size)
{
    const size_t skipped = offsetof(struct st_index_header, size);
    return st_crc32c(bytes + skipped, size - skipped);
}

void st_index_seal(uint8_t *bytes, uint64_t size)
{
    const uint32_t crc = st_index_sum(bytes, size);
    memcpy(bytes + offsetof(struct st_index_header, crc), &crc, sizeof crc);
}

/* Computes where the tables are from the counts; false if the sizes do not fit into 64 bits. */
static bool lay_out(struct st_index *index, const struct st_index_header *h, uint64_t *size)
{
    const struct {
        uint64_t count, each;
    } tables[] = {
        {h->key_size, 1},
        {h->class_count, sizeof *index->classes},
        {h->dir_count, sizeof *index->dirs},
        {h->sample_count, sizeof *index->names},
        {h->sample_count, sizeof *index->sample_dirs},
        {h->text_size, 1},
    };
    uint64_t at[7] = {sizeof *h};
    for (int i = 0; i < 6; i++) {
        uint64_t bytes;
        if (!st_mul(tables[i].count, tables[i].each, &bytes) || !st_add(bytes, 7, &bytes) ||
            !st_add(at[i], bytes / 8 * 8, &at[i + 1]))
            return false;
    }
    *size = at[6];
    index->key_size = h->key_size;
    index->class_count = h->class_count;
    index->dir_count = h->dir_count;
    index->sample_count = h->sample_count;
    index->text_size = h->text_size;
    if (index->bytes && *size <= index->size) {
        index->key = (const char *)index->bytes + at[0];
        index->classes = (const uint64_t *)(index->bytes + at[1]);
        index->dirs = (const struct st_index_dir *)(index->bytes + at[2]);
        index->names = (const uint64_t *)(index->bytes + at[3]);
        index->sample_dirs = (const uint32_t *)(index->bytes + at[4]);
        index->text = (const char *)index->bytes + at[5];
    }
    return true;
}

/* Every offset and index in the tables is within its bounds. */
static bool is_valid(const struct st_index *index)
{
    if (index->dir_count == 0 || index->dir_count >= ST_INDEX_SPECIAL ||
        index->class_count > UINT32_MAX || index->text_size == 0 ||
        index->text[index->text_size - 1] != '\0')
        return false;
    const uint64_t labels = index->class_count ? index->class_count : 1;
    for (uint64_t i = 0; i < index->class_count; i++)
        if (index->classes[i] >= index->text_size)
            return false;
    for (uint64_t i = 0; i < index->dir_count; i++)
        if (index->dirs[i].path >= index->text_size || index->dirs[i].label >= labels)
            return false;
    for (uint64_t i = 0; i < index->sample_count; i++)
        if (index->names[i] >= index->text_size ||
            (index->sample_dirs[i] & ~ST_INDEX_SPECIAL) >= index->dir_count)
            return false;
    return true;
}

bool st_index_load(struct st_index *out, uint8_t *bytes, uint64_t size)
{
    struct st_index_header header;
    struct st_index index = {.bytes = bytes, .size = size};
    uint64_t expected;
    if (size < sizeof header)
        return false;
    memcpy(&header, bytes, sizeof header);
    if (header.magic != MAGIC || header.version != VERSION || header.size != size ||
        !lay_out(&index, &header, &expected) || expected != size ||
        header.crc != st_index_sum(bytes, size) || !is_valid(&index))
        return false;
    *out = index;
    return true;
}

void st_index_free(struct st_index *index)
{
    free(index->bytes);
    *index = (struct st_index){0};
}

/* ---- building ---------------------------------------------------------------------------------- */

struct builder {
    struct st_scan_dir **dirs; /* in index order */
    uint64_t dir_count;
    uint64_t *classes, *names;
    struct st_index_dir *records;
    uint32_t *sample_dirs;
    char *text;
    uint64_t text_used, samples;
};

static size_t plain_size(const struct st_scan_dir *dir)
{
    return dir->path_size - (dir->path_size > 0 && !dir->absent);
}

/* The order of sorted(os.walk(...)) within each class: by path without the trailing slash. */
static int by_class(const void *a, const void *b)
{
    const struct st_scan_dir *left = *(struct st_scan_dir *const *)a,
                             *right = *(struct st_scan_dir *const *)b;
    if (!left->parent || !right->parent)
        return (left->parent != NULL) - (right->parent != NULL);
    if (left->label != right->label)
        return left->label < right->label ? -1 : 1;
    return st_name_compare(left->path, plain_size(left), right->path, plain_size(right));
}

/* With the trailing slash, so that everything below a folder directly follows it. */
static int by_tree(const void *a, const void *b)
{
    const struct st_scan_dir *left = *(struct st_scan_dir *const *)a,
                             *right = *(struct st_scan_dir *const *)b;
    return st_name_compare(left->path, left->path_size, right->path, right->path_size);
}

static uint64_t put_text(struct builder *b, const char *text, uint64_t size)
{
    const uint64_t at = b->text_used;
    memcpy(b->text + at, text, size);
    b->text[at + size] = '\0';
    b->text_used += size + 1;
    return at;
}

static void put_sample(struct builder *b, uint64_t dir, uint64_t k)
{
    const struct st_scan_dir *from = b->dirs[dir];
    const char *name = from->names + (from->offsets[k] & ~ST_SCAN_SPECIAL);
    b->names[b->samples] = put_text(b, name, strlen(name));
    b->sample_dirs[b->samples++] =
        (uint32_t)dir | (from->offsets[k] & ST_SCAN_SPECIAL ? ST_INDEX_SPECIAL : 0);
}

/* Adds the samples of folder `dir` and everything below it, sorted by path: merges its file names with
 * its folder names, which end in a slash. Returns the first folder that is not below it. */
static uint64_t put_tree(struct builder *b, uint64_t dir)
{
    const struct st_scan_dir *from = b->dirs[dir];
    const size_t above = from->path_size;
    uint64_t next = dir + 1;
    for (uint64_t k = 0;;) {
        const struct st_scan_dir *below = next < b->dir_count ? b->dirs[next] : NULL;
        if (below && (below->path_size <= above || memcmp(below->path, from->path, above)))
            below = NULL;
        const char *name = k < from->count ? from->names + (from->offsets[k] & ~ST_SCAN_SPECIAL) : NULL;
        if (!below && !name)
            return next;
        if (name && (!below || st_name_compare(name, strlen(name), below->path + above,
                                               below->path_size - above) < 0))
            put_sample(b, dir, k++);
        else if (below->absent)
            next++;
        else
            next = put_tree(b, next);
    }
}

static void fill(struct builder *b, const struct st_scan *scan)
{
    for (uint32_t i = 0; i < scan->class_count; i++) {
        const struct st_scan_dir *dir = scan->dirs[i + 1];
        b->classes[i] = put_text(b, dir->path, plain_size(dir));
    }
    for (uint64_t i = 0; i < b->dir_count; i++) {
        const struct st_scan_dir *dir = b->dirs[i];
        b->records[i] = (struct st_index_dir){
            .path = put_text(b, dir->path, dir->path_size), .stamp = dir->stamp, .label = dir->label};
    }
    if (!scan->class_count) {
        put_tree(b, 0);
        return;
    }
    for (uint64_t i = 0; i < b->dir_count; i++)
        for (uint64_t k = 0; k < b->dirs[i]->count; k++)
            put_sample(b, i, k);
}

static void measure(struct st_index_header *header, const struct st_scan *scan)
{
    for (uint32_t i = 0; i < scan->class_count; i++)
        header->text_size += scan->dirs[i + 1]->path_size;
    for (uint64_t i = 0; i < scan->count; i++) {
        header->text_size += scan->dirs[i]->path_size + 1 + scan->dirs[i]->names_size;
        header->sample_count += scan->dirs[i]->count;
    }
}

int st_index_build(struct st_index *out, const struct st_scan *scan, const void *key, uint64_t key_size,
                   struct stoker_error *err)
{
    struct st_index_header header = {.magic = MAGIC,
                                     .version = VERSION,
                                     .key_size = key_size,
                                     .class_count = scan->class_count,
                                     .dir_count = scan->count};
    struct st_index index = {0};
    if (scan->count >= ST_INDEX_SPECIAL)
        return st_fail(err, STOKER_ELIMIT, "more than 2147483647 folders");
    measure(&header, scan);
    if (!lay_out(&index, &header, &header.size))
        return st_fail(err, STOKER_ENOMEM, "out of memory for the list of files");
    index.size = header.size;
    index.bytes = st_calloc(header.size, 1);
    struct st_scan_dir **dirs = st_calloc(scan->count, sizeof(struct st_scan_dir *));
    if (!index.bytes || !dirs) {
        free(index.bytes);
        free(dirs);
        return st_fail(err, STOKER_ENOMEM, "out of memory for the list of %llu files",
                       (unsigned long long)header.sample_count);
    }
    lay_out(&index, &header, &header.size);
    memcpy(dirs, scan->dirs, scan->count * sizeof *dirs);
    qsort(dirs, scan->count, sizeof *dirs, scan->class_count ? by_class : by_tree);
    struct builder builder = {.dirs = dirs,
                              .dir_count = scan->count,
                              .classes = (uint64_t *)(uintptr_t)index.classes,
                              .names = (uint64_t *)(uintptr_t)index.names,
                              .records = (struct st_index_dir *)(uintptr_t)index.dirs,
                              .sample_dirs = (uint32_t *)(uintptr_t)index.sample_dirs,
                              .text = (char *)(uintptr_t)index.text};
    fill(&builder, scan);
    free(dirs);
    if (key_size)
        memcpy(index.bytes + sizeof header, key, key_size);
    memcpy(index.bytes, &header, sizeof header);
    *out = index;
    return 0;
}
