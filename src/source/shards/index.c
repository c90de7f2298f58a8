/* index.c - the index of one archive: where its samples are, as one block that is also the file format
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/shards/index.h"
#include "source/index/index.h"
#include "source/text/names.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC   0x6472687378697473ull /* "stixshrd" in little-endian order; marks the byte order too */
#define VERSION 1u

/* Only this many of the latest suffixes are searched for duplicates: datasets have a handful, and
 * hostile files must not make this slow. */
enum { SUFFIXES_SEARCHED = 32 };

static_assert(offsetof(struct st_shard_header, crc) == offsetof(struct st_index_header, crc) &&
                  offsetof(struct st_shard_header, size) == offsetof(struct st_index_header, size),
              "one checksum serves both kinds of index");

enum table { FIRSTS, KEYS, PARTS, PART_SUFFIXES, CRCS, SUFFIXES, TEXT, TABLES };

/* Computes where the tables are from the counts; false if the sizes do not fit into 64 bits. */
static bool lay_out(const struct st_shard_header *h, uint64_t at[TABLES + 1])
{
    uint64_t bound;
    const uint64_t named = h->named ? 1 : 0, summed = h->summed ? 1 : 0;
    if (!st_add(h->sample_count, 1, &bound))
        return false;
    const uint64_t counts[TABLES] = {named * bound,         named * h->sample_count, h->part_count,
                                     named * h->part_count, summed * h->part_count,  h->suffix_count,
                                     h->text_size};
    static const uint64_t sizes[TABLES] = {8, 8, sizeof(struct st_shard_part), 4, 4, 8, 1};
    at[0] = sizeof *h;
    for (int i = 0; i < TABLES; i++) {
        uint64_t bytes;
        if (!st_mul(counts[i], sizes[i], &bytes) || !st_add(bytes, 7, &bytes) ||
            !st_add(at[i], bytes / 8 * 8, &at[i + 1]))
            return false;
    }
    return true;
}

static void set_tables(struct st_shard_index *index, const struct st_shard_header *h,
                  const uint64_t at[TABLES + 1])
{
    const uint8_t *bytes = index->bytes;
    index->stamp = h->stamp;
    index->sample_count = h->sample_count;
    index->part_count = h->part_count;
    index->suffix_count = h->suffix_count;
    index->text_size = h->text_size;
    index->parts = (const struct st_shard_part *)(bytes + at[PARTS]);
    index->crcs = h->summed ? (const uint32_t *)(bytes + at[CRCS]) : NULL;
    if (!h->named)
        return;
    index->firsts = (const uint64_t *)(bytes + at[FIRSTS]);
    index->keys = (const uint64_t *)(bytes + at[KEYS]);
    index->part_suffixes = (const uint32_t *)(bytes + at[PART_SUFFIXES]);
    index->suffixes = (const uint64_t *)(bytes + at[SUFFIXES]);
    index->text = (const char *)bytes + at[TEXT];
}

/* Parts are in order and do not overlap; only the last may extend past the archive's end. */
static bool valid_parts(const struct st_shard_index *index)
{
    uint64_t before = 0;
    for (uint64_t i = 0; i < index->part_count; i++) {
        const struct st_shard_part *part = &index->parts[i];
        if (part->start < before || part->start >= part->end || part->start > index->stamp.size ||
            (part->end > index->stamp.size && i + 1 < index->part_count))
            return false;
        before = part->end;
    }
    return true;
}

static bool valid_names(const struct st_shard_index *index)
{
    if (!index->firsts)
        return index->sample_count == index->part_count && !index->suffix_count && !index->text_size;
    if (index->text_size == 0 || index->text[index->text_size - 1] != '\0' || index->firsts[0] != 0 ||
        index->firsts[index->sample_count] != index->part_count)
        return false;
    for (uint64_t i = 0; i < index->sample_count; i++)
        if (index->keys[i] >= index->text_size || index->firsts[i] >= index->firsts[i + 1])
            return false;
    for (uint64_t i = 0; i < index->part_count; i++)
        if (index->part_suffixes[i] >= index->suffix_count)
            return false;
    for (uint64_t i = 0; i < index->suffix_count; i++)
        if (index->suffixes[i] >= index->text_size)
            return false;
    return true;
}

bool st_shard_index_load(struct st_shard_index *out, const uint8_t *bytes, uint64_t size, uint64_t kind)
{
    struct st_shard_header header;
    struct st_shard_index index = {.bytes = bytes, .size = size};
    uint64_t at[TABLES + 1];
    if (size < sizeof header)
        return false;
    memcpy(&header, bytes, sizeof header);
    if (header.magic != MAGIC || header.version != VERSION || header.size != size ||
        header.kind != kind || header.named > 1 || header.summed > 1 || !lay_out(&header, at) ||
        at[TABLES] != size || header.crc != st_index_sum(bytes, size))
        return false;
    set_tables(&index, &header, at);
    if (!valid_parts(&index) || !valid_names(&index))
        return false;
    *out = index;
    return true;
}

void st_shard_index_free(struct st_shard_index *index)
{
    if (!index->lent)
        free((void *)(uintptr_t)index->bytes);
    *index = (struct st_shard_index){0};
}

void st_shard_index_stamp(struct st_shard_index *index, const struct st_shard_stamp *stamp)
{
    uint8_t *bytes = (uint8_t *)(uintptr_t)index->bytes;
    memcpy(bytes + offsetof(struct st_shard_header, stamp), stamp, sizeof *stamp);
    index->stamp = *stamp;
}

int st_shard_index_sum(struct st_shard_index *out, const struct st_shard_index *index,
                       const uint32_t *crcs, struct stoker_error *err)
{
    struct st_shard_header header;
    uint64_t from[TABLES + 1], to[TABLES + 1];
    memcpy(&header, index->bytes, sizeof header);
    lay_out(&header, from);
    header.summed = 1;
    uint8_t *bytes = lay_out(&header, to) ? st_calloc(to[TABLES], 1) : NULL;
    if (!bytes)
        return st_fail(err, STOKER_ENOMEM, "out of memory for an index with checksums");
    for (int i = 0; i < TABLES; i++)
        if (i != CRCS)
            memcpy(bytes + to[i], index->bytes + from[i], from[i + 1] - from[i]);
    memcpy(bytes + to[CRCS], crcs, index->part_count * sizeof *crcs);
    header.size = to[TABLES];
    memcpy(bytes, &header, sizeof header);
    *out = (struct st_shard_index){.bytes = bytes, .size = header.size};
    set_tables(out, &header, to);
    return 0;
}

/* ---- building -------------------------------------------------------------------------------- */

/* Makes room for `more` entries in a table that grows by doubling. */
static bool room_for(void *table, uint64_t count, uint64_t *room, uint64_t more, uint64_t size)
{
    void *block;
    uint64_t wanted = *room ? *room : 64;
    if (more <= *room - count)
        return true;
    while (wanted - count < more)
        if (!st_mul(wanted, 2, &wanted))
            return false;
    memcpy(&block, table, sizeof block);
    block = st_grow(block, wanted, size);
    if (!block)
        return false;
    memcpy(table, &block, sizeof block);
    *room = wanted;
    return true;
}

static bool put_text(struct st_shard_builder *b, struct st_bytes text, uint64_t *at)
{
    if (!room_for(&b->text, b->text_size, &b->text_room, text.size + 1, 1))
        return false;
    *at = b->text_size;
    if (text.size)
        memcpy(b->text + *at, text.data, text.size);
    b->text[*at + text.size] = '\0';
    b->text_size += text.size + 1;
    return true;
}

bool st_shard_begin(struct st_shard_builder *b, struct st_bytes key)
{
    uint64_t keys_room = b->sample_room;
    if (!b->named) {
        b->sample_count++;
        return true;
    }
    if (!room_for(&b->keys, b->sample_count, &keys_room, 1, sizeof *b->keys) ||
        !room_for(&b->firsts, b->sample_count, &b->sample_room, 1, sizeof *b->firsts) ||
        !put_text(b, key, &b->keys[b->sample_count]))
        return false;
    b->firsts[b->sample_count++] = b->part_count;
    return true;
}

struct st_bytes st_shard_last_key(const struct st_shard_builder *b)
{
    const char *key = b->text + b->keys[b->sample_count - 1];
    return (struct st_bytes){(const uint8_t *)key, strlen(key)};
}

/* The number of the suffix; a new one is added to the table in lower case. */
static bool suffix_number(struct st_shard_builder *b, struct st_bytes suffix, uint32_t *number)
{
    const uint64_t oldest =
        b->suffix_count > SUFFIXES_SEARCHED ? b->suffix_count - SUFFIXES_SEARCHED : 0;
    for (uint64_t i = b->suffix_count; i > oldest; i--) {
        const char *known = b->text + b->suffixes[i - 1];
        if (st_name_equals_lower((const char *)suffix.data, suffix.size, known)) {
            *number = (uint32_t)(i - 1);
            return true;
        }
    }
    if (b->suffix_count == UINT32_MAX ||
        !room_for(&b->suffixes, b->suffix_count, &b->suffix_room, 1, sizeof *b->suffixes) ||
        !put_text(b, suffix, &b->suffixes[b->suffix_count]))
        return false;
    for (char *c = b->text + b->suffixes[b->suffix_count]; *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
    *number = (uint32_t)b->suffix_count++;
    return true;
}

bool st_shard_add(struct st_shard_builder *b, uint64_t start, uint64_t end, struct st_bytes suffix)
{
    uint64_t suffix_room = b->part_room;
    if (b->named) {
        if (!room_for(&b->part_suffixes, b->part_count, &suffix_room, 1, sizeof *b->part_suffixes) ||
            !suffix_number(b, suffix, &b->part_suffixes[b->part_count]))
            return false;
    }
    if (!room_for(&b->parts, b->part_count, &b->part_room, 1, sizeof *b->parts))
        return false;
    b->parts[b->part_count++] = (struct st_shard_part){start, end};
    return true;
}

static void put_table(uint8_t *bytes, uint64_t at, const void *table, uint64_t count, uint64_t size)
{
    if (count)
        memcpy(bytes + at, table, count * size);
}

int st_shard_build(struct st_shard_index *out, const struct st_shard_builder *b, uint64_t kind,
                   const struct st_shard_stamp *stamp, struct stoker_error *err)
{
    struct st_shard_header header = {.magic = MAGIC,
                                     .version = VERSION,
                                     .kind = kind,
                                     .stamp = *stamp,
                                     .sample_count = b->sample_count,
                                     .part_count = b->part_count,
                                     .suffix_count = b->suffix_count,
                                     .named = b->named,
                                     .text_size = b->named ? b->text_size + 1 : 0};
    uint64_t at[TABLES + 1];
    uint8_t *bytes = lay_out(&header, at) ? st_calloc(at[TABLES], 1) : NULL;
    if (!bytes)
        return st_fail(err, STOKER_ENOMEM, "out of memory for the index of %llu samples",
                       (unsigned long long)b->sample_count);
    header.size = at[TABLES];
    put_table(bytes, at[FIRSTS], b->firsts, b->named ? b->sample_count : 0, 8);
    if (b->named)
        memcpy(bytes + at[FIRSTS] + b->sample_count * 8, &b->part_count, 8);
    put_table(bytes, at[KEYS], b->keys, b->named ? b->sample_count : 0, 8);
    put_table(bytes, at[PARTS], b->parts, b->part_count, sizeof *b->parts);
    put_table(bytes, at[PART_SUFFIXES], b->part_suffixes, b->named ? b->part_count : 0, 4);
    put_table(bytes, at[SUFFIXES], b->suffixes, b->suffix_count, 8);
    put_table(bytes, at[TEXT], b->text, b->text_size, 1);
    memcpy(bytes, &header, sizeof header);
    *out = (struct st_shard_index){.bytes = bytes, .size = header.size};
    set_tables(out, &header, at);
    return 0;
}

void st_shard_builder_free(struct st_shard_builder *b)
{
    free(b->parts);
    free(b->firsts);
    free(b->keys);
    free(b->suffixes);
    free(b->part_suffixes);
    free(b->text);
    *b = (struct st_shard_builder){0};
}
