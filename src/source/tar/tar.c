/* tar.c - samples in tar files, as the Python package webdataset writes and reads them
 *
 * A sample is a run of adjacent members whose names are equal up to the first dot of their last
 * component; a field is one of them, selected by what follows that dot. Only the requested members are
 * read, and each is checked again when it is: its header must be the one that was indexed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/kinds.h"
#include "source/tar/classes.h"
#include "source/tar/fields.h"
#include "source/tar/members.h"
#include "source/tar/names.h"
#include "source/tar/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tar {
    struct st_shards shards;
    char *default_fields; /* chosen when the user requested none */
    struct st_cells classes;
    struct st_field_list requested;
    struct st_field fields[ST_FIELDS_MAX];
    struct st_tar_field wanted[ST_FIELDS_MAX];
};

/* One sample in the index. */
struct sample {
    const struct st_shard *shard;
    const struct st_shard_index *index;
    const char *key;
    uint64_t first, end; /* its parts */
};

#define NO_PART UINT64_MAX

static struct sample find(const struct tar *tar, uint64_t number)
{
    uint64_t local;
    struct sample s = {.shard = st_shards_find(&tar->shards, number, &local)};
    s.index = &s.shard->index;
    s.key = s.index->text + s.index->keys[local];
    s.first = s.index->firsts[local];
    s.end = s.index->firsts[local + 1];
    return s;
}

static const char *suffix_of(const struct sample *s, uint64_t part)
{
    return s->index->text + s->index->suffixes[s->index->part_suffixes[part]];
}

/* ---- which member is which field ------------------------------------------------------------- */

static int missing(const struct sample *s, const struct st_field *field, struct stoker_error *err)
{
    char has[300] = "";
    size_t used = 0;
    for (uint64_t part = s->first; part < s->end && used + 2 < sizeof has; part++)
        used += (size_t)snprintf(has + used, sizeof has - used, "%s%s", used ? ", " : "",
                                 suffix_of(s, part));
    return st_fail(err, STOKER_ECORRUPT, "%.400s: %.200s: no member %.100s; the sample has %s",
                   s->shard->file.path, s->key, field->name, has);
}

/* Fails if two members have the same name, since either could be meant. */
static int check_duplicate(const struct sample *s, uint64_t part, struct stoker_error *err)
{
    for (uint64_t other = s->first; other < s->end; other++)
        if (other != part && !strcmp(suffix_of(s, other), suffix_of(s, part)))
            return st_fail(err, STOKER_ECORRUPT,
                           "%.400s: byte %llu: %.200s has two members named %.100s", s->shard->file.path,
                           (unsigned long long)s->index->parts[part].start, s->key, suffix_of(s, part));
    return 0;
}

static uint64_t choose_part(const struct sample *s, const struct st_tar_field *field)
{
    uint32_t best = UINT32_MAX;
    uint64_t chosen = NO_PART;
    for (uint64_t part = s->first; part < s->end; part++) {
        const uint32_t rank = st_tar_field_rank(field, suffix_of(s, part));
        if (rank < best) {
            best = rank;
            chosen = part;
        }
    }
    return chosen;
}

/* Finds the part of each field (NO_PART for those that are not members) and the span that covers them.
 * Duplicates are checked for the requested parts and for the first few others. */
static int choose_parts(const struct tar *tar, const struct sample *s, uint64_t chosen[ST_FIELDS_MAX],
                        struct st_shard_part *span, struct stoker_error *err)
{
    enum { PARTS_CHECKED = 32 };
    *span = (struct st_shard_part){UINT64_MAX, 0};
    if (s->index->parts[s->first].end == ST_SHARD_LOST) {
        *span = s->index->parts[s->first];
        return 0;
    }
    int rc = 0;
    for (uint64_t part = s->first; part < s->end && part < s->first + PARTS_CHECKED && !rc; part++)
        rc = check_duplicate(s, part, err);
    for (uint32_t i = 0; i < tar->requested.count && !rc; i++) {
        chosen[i] = NO_PART;
        if (tar->wanted[i].what != ST_TAR_MEMBER)
            continue;
        chosen[i] = choose_part(s, &tar->wanted[i]);
        if (chosen[i] == NO_PART && s->index->parts[s->end - 1].end > s->index->stamp.size) {
            *span = s->index->parts[s->end - 1]; /* truncated archive: the member is past its end */
            return 0;
        }
        if (chosen[i] == NO_PART)
            return missing(s, &tar->fields[i], err);
        const struct st_shard_part *part = &s->index->parts[chosen[i]];
        span->start = part->start < span->start ? part->start : span->start;
        span->end = part->end > span->end ? part->end : span->end;
        rc = check_duplicate(s, chosen[i], err);
    }
    if (!rc && span->start > span->end) /* only names are requested */
        *span = (struct st_shard_part){s->index->parts[s->first].start, s->index->parts[s->first].start};
    return rc;
}

static int tar_locate(const void *self, uint64_t sample, struct st_extent *out, struct stoker_error *err)
{
    const struct tar *tar = self;
    const struct sample s = find(tar, sample);
    uint64_t chosen[ST_FIELDS_MAX];
    struct st_shard_part span;
    const int rc = choose_parts(tar, &s, chosen, &span, err);
    return rc ? rc : st_shard_locate(&tar->shards, s.shard, span.start, span.end, out, err);
}

/* ---- members from bytes ---------------------------------------------------------------------- */

/* A member's payload: in the raw bytes, or decompressed in the scratch buffer, which may still move. */
struct payload {
    const uint8_t *raw; /* NULL: in scratch */
    uint64_t offset, size;
};

static int changed(const struct sample *s, uint64_t part, struct stoker_error *err)
{
    return st_fail(
        err, STOKER_ECORRUPT,
        "%.500s: byte %llu: the member %.200s.%.100s is not the one that was indexed: the file changed "
        "while it was open",
        s->shard->file.path, (unsigned long long)s->index->parts[part].start, s->key,
        suffix_of(s, part));
}

/* Parses the member's headers again, in bytes that begin at the archive's byte `base`. */
static int find_payload(const struct sample *s, uint64_t part, struct st_bytes raw, uint64_t base,
                        struct payload *out, struct stoker_error *err)
{
    const struct st_shard_part *span = &s->index->parts[part];
    struct st_window window = {
        .path = s->shard->file.path, .memory = raw.data, .base = base, .end = base + raw.size};
    struct st_tar_walk walk = {.window = &window, .at = span->start};
    struct st_tar_member member;
    const char *wanted = suffix_of(s, part);
    const bool same = !st_tar_next(&walk, &member, NULL) && member.regular &&
                      member.data + member.size == span->end &&
                      st_tar_name_is(member.name, s->key, wanted);
    st_tar_walk_free(&walk);
    if (!same)
        return changed(s, part, err);
    if (member.sparse)
        return st_fail(
            err, STOKER_EUNSUPPORTED,
            "%.500s: byte %llu: %.200s.%.100s is a sparse member; create the archive without --sparse",
            s->shard->file.path, (unsigned long long)span->start, s->key, wanted);
    *out = (struct payload){.raw = raw.data + (member.data - base), .size = member.size};
    if (!st_shard_verify(s->shard, part, (struct st_bytes){out->raw, out->size}))
        return st_fail(err, STOKER_ECORRUPT,
                       "%.500s: byte %llu: the checksum of %.200s.%.100s differs from when it was first "
                       "read: its bytes are damaged",
                       s->shard->file.path, (unsigned long long)member.data, s->key, wanted);
    return 0;
}

static void name_member(const struct sample *s, uint64_t part, char *out, size_t size)
{
    snprintf(out, size, "%.400s: %.200s.%.100s", s->shard->file.path, s->key, suffix_of(s, part));
}

/* Finds the member, and decompresses it if it is compressed. */
static int open_member(const struct sample *s, uint64_t part, struct st_bytes raw, uint64_t base,
                       struct st_buffer *scratch, struct payload *out, struct stoker_error *err)
{
    char where[720];
    const int rc = find_payload(s, part, raw, base, out, err);
    const enum st_packing packing = st_tar_suffix_packing(suffix_of(s, part));
    if (rc || packing == ST_PACKED_NOT)
        return rc;
    const struct st_bytes packed = {out->raw, out->size};
    const uint64_t began = st_align(scratch->size, ST_CACHE_LINE);
    if (!st_buffer_keep(scratch, began + 1))
        return st_fail(err, STOKER_ENOMEM, "out of memory for a sample");
    scratch->size = began;
    name_member(s, part, where, sizeof where);
    const int failed = st_unpack(packing, packed, st_unpack_limit(packed.size), scratch, where, err);
    *out = (struct payload){.offset = began, .size = scratch->size - began};
    return failed;
}

static void name_piece(const struct sample *s, const struct st_tar_field *field, struct st_piece *out)
{
    const char *text = field->what == ST_TAR_KEY ? s->key : s->shard->file.path;
    *out = (struct st_piece){.bytes = {(const uint8_t *)text, strlen(text)}};
}

/* Arrays of the other byte order are swapped in scratch, so it must have room for all of them after the
 * decompressed members. */
static int make_pieces(const struct tar *tar, const struct sample *s, const uint64_t *chosen,
                       const struct payload *payloads, struct st_buffer *scratch,
                       struct st_piece *pieces, struct stoker_error *err)
{
    uint64_t used = st_align(scratch->size, ST_CACHE_LINE), needed = used;
    for (uint32_t i = 0; i < tar->requested.count; i++)
        if (tar->fields[i].kind == ST_FIELD_ARRAY || tar->fields[i].kind == ST_FIELD_IMAGE)
            needed += st_align(payloads[i].size, ST_CACHE_LINE);
    if (!st_buffer_keep(scratch, needed + 1))
        return st_fail(err, STOKER_ENOMEM, "out of memory for a sample of %llu bytes",
                       (unsigned long long)needed);
    int rc = 0;
    for (uint32_t i = 0; i < tar->requested.count && !rc; i++) {
        if (chosen[i] == NO_PART) {
            name_piece(s, &tar->wanted[i], &pieces[i]);
            continue;
        }
        char where[720];
        const uint8_t *data = payloads[i].raw ? payloads[i].raw : scratch->data + payloads[i].offset;
        name_member(s, chosen[i], where, sizeof where);
        rc = st_tar_piece(&tar->fields[i], (struct st_bytes){data, payloads[i].size},
                          scratch->data + used, &pieces[i], where, err);
        if (tar->fields[i].kind == ST_FIELD_ARRAY || tar->fields[i].kind == ST_FIELD_IMAGE)
            used += st_align(payloads[i].size, ST_CACHE_LINE);
    }
    return rc;
}

static int tar_split(const void *self, uint64_t sample, struct st_bytes raw, struct st_buffer *scratch,
                     struct st_piece *pieces, struct stoker_error *err)
{
    const struct tar *tar = self;
    const struct sample s = find(tar, sample);
    uint64_t chosen[ST_FIELDS_MAX];
    struct st_shard_part span;
    struct payload payloads[ST_FIELDS_MAX] = {0};
    int rc = choose_parts(tar, &s, chosen, &span, err);
    if (!rc && raw.size != span.end - span.start)
        rc = changed(&s, s.first, err);
    scratch->size = 0;
    for (uint32_t i = 0; i < tar->requested.count && !rc; i++)
        if (chosen[i] != NO_PART)
            rc = open_member(&s, chosen[i], raw, span.start, scratch, &payloads[i], err);
    return rc ? rc : make_pieces(tar, &s, chosen, payloads, scratch, pieces, err);
}

/* ---- opening ------------------------------------------------------------------------------- */

/* Image suffixes of which a sample usually has exactly one. */
static const char *const image_suffixes[] = {"jpg", "jpeg", "png", "webp", "bmp",
                                             "tif", "ppm",  "pgm", NULL};
enum { LIST_ROOM = 4096 };

static bool is_image_suffix(const char *suffix)
{
    const char *const *known = image_suffixes;
    while (*known && strcmp(*known, suffix))
        known++;
    return *known != NULL;
}

static bool any_shard_has(const struct tar *tar, const char *suffix)
{
    for (uint64_t i = 0; i < tar->shards.count; i++) {
        const struct st_shard_index *index = &tar->shards.items[i].index;
        for (uint64_t k = 0; k < index->suffix_count; k++)
            if (!strcmp(index->text + index->suffixes[k], suffix))
                return true;
    }
    return false;
}

static bool sample_has(const struct sample *s, const char *suffix)
{
    bool found = false;
    for (uint64_t part = s->first; part < s->end && !found; part++)
        found = !strcmp(suffix_of(s, part), suffix);
    return found;
}

/* Other samples may have a different image format instead of this one: "jpg;png". */
static size_t add_alternatives(const struct tar *tar, const struct sample *s, char *list, size_t used)
{
    for (const char *const *other = image_suffixes; *other; other++)
        if (!sample_has(s, *other) && any_shard_has(tar, *other) &&
            used + strlen(*other) + 2 < LIST_ROOM)
            used += (size_t)sprintf(list + used, ";%s", *other);
    return used;
}

/* The suffixes of a sample, images and audio first. */
static char *suffixes_of(const struct tar *tar, const struct sample *s)
{
    char *list = st_calloc(LIST_ROOM, 1);
    size_t used = 0;
    uint32_t count = 0;
    bool widened = false;
    for (int pass = 0; list && pass < 2; pass++)
        for (uint64_t part = s->first; part < s->end; part++) {
            const char *suffix = suffix_of(s, part);
            const size_t size = strlen(suffix);
            enum st_field_kind kind = ST_FIELD_BYTES;
            const bool plain =
                st_tar_suffix_kind(suffix, size, &kind) && size && !strpbrk(suffix, ",;= \t");
            const bool first = kind == ST_FIELD_IMAGE || kind == ST_FIELD_AUDIO;
            if (!plain || first == (pass > 0) || count == ST_FIELDS_MAX || used + size + 2 >= LIST_ROOM)
                continue;
            used += (size_t)sprintf(list + used, "%s%s", used ? "," : "", suffix);
            count++;
            if (!widened && is_image_suffix(suffix)) {
                used = add_alternatives(tar, s, list, used);
                widened = true;
            }
        }
    return list;
}

/* The fields of the first sample that is not damaged. */
static int choose_fields(struct tar *tar, const char *path, struct stoker_error *err)
{
    uint64_t number = 0;
    while (number + 1 < tar->shards.sample_count) {
        const struct sample s = find(tar, number);
        if (s.index->parts[s.first].end != ST_SHARD_LOST)
            break;
        number++;
    }
    const struct sample s = find(tar, number);
    tar->default_fields = suffixes_of(tar, &s);
    if (!tar->default_fields)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", path);
    if (!tar->default_fields[0])
        return st_fail(err, STOKER_EINVAL,
                       "%.600s: the first sample has no readable member; set fields= to select some",
                       path);
    return 0;
}

/* Takes the classes of the first archive if the last one has the same: a pattern may combine unrelated
 * archives. */
static int take_classes(struct tar *tar, struct stoker_error *err)
{
    struct st_cells last = {0};
    int rc = st_tar_classes(&tar->classes, &tar->shards.items[0].file, err);
    if (!rc && tar->classes.count && tar->shards.count > 1)
        rc = st_tar_classes(&last, &tar->shards.items[tar->shards.count - 1].file, err);
    if (tar->shards.count > 1 &&
        (last.text_size != tar->classes.text_size ||
         (last.text_size && memcmp(last.text, tar->classes.text, last.text_size))))
        st_cells_free(&tar->classes);
    st_cells_free(&last);
    return rc;
}

static int tar_open(void *self, const char *path, const struct stoker_dataset_options *opt,
                    struct stoker_error *err)
{
    struct tar *tar = self;
    int rc = st_shards_open(&tar->shards, &st_shard_kind_tar, path, opt, err);
    if (!rc && tar->shards.count)
        rc = take_classes(tar, err);
    if (!rc && !opt->fields && tar->shards.sample_count)
        rc = choose_fields(tar, path, err);
    if (!rc)
        rc = st_field_list_parse(&tar->requested, opt->fields ? opt->fields : tar->default_fields, err);
    for (uint32_t i = 0; i < tar->requested.count && !rc; i++)
        rc = st_tar_field_parse(&tar->wanted[i], &tar->fields[i], &tar->requested.items[i], err);
    return rc;
}

/* Recognizes names of tar files, compressed or not, also in patterns; or the magic that all but the
 * oldest tar files contain. */
static bool tar_matches(const char *path, const uint8_t *head, size_t size)
{
    static const char *const endings[] = {".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar}"};
    const size_t length = strlen(path);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t tail = strlen(endings[i]);
        if (length > tail && !strcmp(path + length - tail, endings[i]))
            return !st_shard_is_folder(path);
    }
    return size >= ST_TAR_BLOCK && !memcmp(head + 257, "ustar", 5) && st_tar_is_header(head);
}

static uint64_t tar_count(const void *self) { return ((const struct tar *)self)->shards.sample_count; }

static size_t tar_name(const void *self, uint64_t sample, char *buffer, size_t size)
{
    const struct sample s = find(self, sample);
    const int length = snprintf(buffer, size, "%s: %s", s.shard->file.path, s.key);
    return length > 0 ? (size_t)length : 0;
}

static const struct st_field *tar_fields(const void *self, uint32_t *count)
{
    const struct tar *tar = self;
    *count = tar->requested.count;
    return tar->fields;
}

static uint64_t tar_memory(const void *self)
{
    return st_shards_memory(&((const struct tar *)self)->shards);
}

static const char *tar_note(const void *self)
{
    return st_shards_note(&((const struct tar *)self)->shards);
}

static uint32_t tar_class_count(const void *self)
{
    return (uint32_t)((const struct tar *)self)->classes.count;
}

static const char *tar_class_name(const void *self, uint32_t index)
{
    return st_cells_word(&((const struct tar *)self)->classes, index);
}

static void tar_close(void *self)
{
    struct tar *tar = self;
    st_cells_free(&tar->classes);
    st_shards_close(&tar->shards);
    st_field_list_free(&tar->requested);
    free(tar->default_fields);
}

const struct st_source st_source_tar = {
    .scheme = "tar",
    .self_size = sizeof(struct tar),
    .matches = tar_matches,
    .lists = true,
    .open = tar_open,
    .count = tar_count,
    .label = st_label_zero,
    .name = tar_name,
    .locate = tar_locate,
    .fields = tar_fields,
    .split = tar_split,
    .memory = tar_memory,
    .class_count = tar_class_count,
    .class_name = tar_class_name,
    .note = tar_note,
    .close = tar_close,
};
