/* manifest.c - reads the manifest of a pack
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/packs/manifest.h"
#include "base/text.h"
#include "source/load.h"
#include "source/packs/classes.h"
#include "source/index/scan.h"
#include "source/shards/unpack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MANIFEST_MOST (1ull << 30)

bool st_pack_note(struct st_pack *manifest, const struct st_pack_shard *shard)
{
    if (manifest->shard_count == manifest->shard_room) {
        const uint64_t room = manifest->shard_room ? 2 * manifest->shard_room : 64;
        struct st_pack_shard *grown = st_grow(manifest->shards, room, sizeof *grown);
        if (!grown)
            return false;
        manifest->shards = grown;
        manifest->shard_room = room;
    }
    manifest->shards[manifest->shard_count++] = *shard;
    manifest->positions += shard->positions;
    manifest->samples += shard->samples;
    manifest->bytes += shard->bytes;
    manifest->bad += shard->positions - shard->samples;
    return true;
}

/* What follows this beginning of a line; NULL: it begins differently. */
static const char *after(const char *line, const char *beginning)
{
    const size_t size = strlen(beginning);
    return strncmp(line, beginning, size) ? NULL : line + size;
}

/* Whether it is the name of a file in the folder itself. */
static bool is_name(const char *name)
{
    return name[0] && name[0] != '.' && !strchr(name, '/') && strlen(name) < 64;
}

static uint64_t number(const struct st_cells *cells, const char *key, int base)
{
    for (uint64_t i = 0; i + ST_JSON_VALUE < cells->count; i += ST_JSON_WORDS)
        if (!strcmp(st_cells_word(cells, i), key))
            return strtoull(st_cells_word(cells, i + ST_JSON_VALUE), NULL, base);
    return 0;
}

/* Parses one line into words. */
static int read_words(struct st_cells *cells, const char *line, size_t size, const char *path,
                      struct stoker_error *err)
{
    struct st_lines lines;
    st_lines_begin(&lines, line, size);
    const int rc = st_json_record(&lines, cells, err);
    return rc ? st_fail_in(err, rc, path) : STOKER_OK;
}

static int invalid_entry(const char *line, const char *path, struct stoker_error *err)
{
    return st_fail(err, STOKER_ECORRUPT, "%s: the entry %.300s is invalid", path, line);
}

static int take_shard(struct st_pack *manifest, const char *line, size_t size, const char *path,
                      struct stoker_error *err)
{
    struct st_cells cells = {0};
    struct st_pack_shard shard = {0};
    int rc = read_words(&cells, line, size, path, err);
    if (!rc) {
        shard.first = number(&cells, "first", 10);
        shard.positions = number(&cells, "positions", 10);
        shard.samples = number(&cells, "samples", 10);
        shard.bytes = number(&cells, "bytes", 10);
        shard.source = number(&cells, "source", 16);
        shard.crc = (uint32_t)number(&cells, "crc32c", 16);
        if (cells.count >= 2)
            snprintf(shard.name, sizeof shard.name, "%s", st_cells_word(&cells, 1));
        const bool valid = is_name(shard.name) && shard.samples <= shard.positions &&
                           shard.first == manifest->positions && shard.positions <= UINT64_MAX / 4;
        if (!valid)
            rc = invalid_entry(line, path, err);
        else if (!st_pack_note(manifest, &shard))
            rc = st_fail(err, STOKER_ENOMEM, "%s: out of memory", path);
    }
    st_cells_free(&cells);
    return rc;
}

static int take_beside(struct st_pack_beside *beside, const char *line, size_t size, const char *path,
                       struct stoker_error *err)
{
    struct st_cells cells = {0};
    int rc = read_words(&cells, line, size, path, err);
    const char *name = !rc && cells.count >= 2 ? st_cells_word(&cells, 1) : "";
    if (!rc && (!is_name(name) || beside->count == ST_FIELDS_MAX)) {
        rc = invalid_entry(line, path, err);
    } else if (!rc) {
        struct st_pack_file *file = &beside->files[beside->count++];
        snprintf(file->name, sizeof file->name, "%s", name);
        file->bytes = number(&cells, "bytes", 10);
        file->crc = (uint32_t)number(&cells, "crc32c", 16);
    }
    st_cells_free(&cells);
    return rc;
}

static int take_mark(struct st_pack_mark *mark, const char *line, const char *path,
                     struct stoker_error *err)
{
    struct st_cells cells = {0};
    int rc = read_words(&cells, line, strlen(line), path, err);
    mark->positions = rc ? 0 : number(&cells, "positions", 10);
    mark->samples = rc ? 0 : number(&cells, "samples", 10);
    mark->source = rc ? 0 : number(&cells, "source", 16);
    st_cells_free(&cells);
    if (!rc && (!mark->samples || mark->samples > mark->positions || mark->positions > UINT64_MAX / 4))
        rc = invalid_entry(line, path, err);
    return rc;
}

static int take_line(struct st_pack *manifest, char *line, const char *path,
                     struct stoker_error *err)
{
    size_t size = strlen(line);
    if (size && line[size - 1] == ',')
        line[--size] = '\0';
    const char *value;
    if ((value = after(line, ST_PACK_LINE_SETTINGS))) {
        free(manifest->settings);
        manifest->settings = strdup(value);
        return manifest->settings ? STOKER_OK : st_fail(err, STOKER_ENOMEM, "%s: out of memory", path);
    }
    if ((value = after(line, ST_PACK_LINE_ARCHIVES)))
        manifest->archives = strtoull(value, NULL, 16);
    if ((value = after(line, ST_PACK_LINE_SAMPLES)))
        manifest->claimed = strtoull(value, NULL, 10);
    if ((value = after(line, ST_PACK_LINE_LEDGER_SIZE)))
        manifest->ledger_size = strtoull(value, NULL, 10);
    if ((value = after(line, ST_PACK_LINE_COMPLETE)))
        manifest->complete = !strcmp(value, "true");
    if ((value = after(line, ST_PACK_LINE_UNDER_WAY)))
        return take_mark(&manifest->mark, value, path, err);
    if (after(line, ST_CLASS_LINE)) {
        const int rc = st_class_read(&manifest->classes, line, size, err);
        return rc ? st_fail_in(err, rc, path) : STOKER_OK;
    }
    if (after(line, ST_PACK_LINE_BESIDE))
        return take_beside(&manifest->beside, line, size, path, err);
    return after(line, ST_PACK_LINE_SHARD) ? take_shard(manifest, line, size, path, err) : STOKER_OK;
}

/* Many kinds of files are called manifest.json: then this is STOKER_END. */
static int begins_as_ours(const struct st_held *file, struct stoker_error *err)
{
    char head[sizeof ST_PACK_BEGIN - 1];
    const int rc = file->size < sizeof head ? STOKER_END : st_held_read(file, 0, head, sizeof head, err);
    return rc ? rc : memcmp(head, ST_PACK_BEGIN, sizeof head) ? STOKER_END : 0;
}

static int read_lines(struct st_pack *manifest, const struct st_held *file, struct stoker_error *err)
{
    struct st_buffer text = {0};
    int rc = st_load(&text, file, MANIFEST_MOST, err);
    if (!rc && !st_buffer_keep(&text, text.size + 1))
        rc = st_fail(err, STOKER_ENOMEM, "%s: out of memory", file->path);
    if (!rc)
        text.data[text.size] = '\0';
    char *rest = NULL;
    for (char *line = rc ? NULL : strtok_r((char *)text.data, "\n", &rest); line && !rc;
         line = strtok_r(NULL, "\n", &rest))
        rc = take_line(manifest, line, file->path, err);
    st_buffer_free(&text);
    return rc;
}

int st_pack_read(struct st_pack *manifest, const char *folder, struct stoker_error *err)
{
    char path[PATH_MAX];
    struct stat info;
    struct st_held file = {0};
    *manifest = (struct st_pack){0};
    if (!st_path_join(path, folder, "/", ST_PACK_MANIFEST))
        return STOKER_END;
    const int why = stat(path, &info) ? errno : 0;
    /* If the disk fails, there may be one, and the files of an unfinished pack are not a dataset. */
    if (why && st_is_transient(st_fail_errno(NULL, why, "%s", path)))
        return st_fail_errno(err, why, "%s", path);
    if (why || !S_ISREG(info.st_mode))
        return STOKER_END;
    int rc = st_held_open(&file, path, err);
    if (!rc)
        rc = begins_as_ours(&file, err);
    if (!rc)
        rc = read_lines(manifest, &file, err);
    if (!rc && !manifest->settings)
        rc = st_fail(err, STOKER_ECORRUPT,
                     "%s: contains no settings: it is damaged, or not the manifest of a pack", path);
    if (!rc && manifest->claimed != manifest->samples)
        rc = st_fail(err, STOKER_ECORRUPT,
                     "%s: states %llu sample%s, but its shards have %llu: it is damaged", path,
                     (unsigned long long)manifest->claimed, st_s(manifest->claimed),
                     (unsigned long long)manifest->samples);
    st_held_close(&file);
    return rc;
}

void st_pack_free(struct st_pack *manifest)
{
    free(manifest->settings);
    free(manifest->shards);
    free(manifest->pending);
    st_cells_free(&manifest->classes);
    *manifest = (struct st_pack){0};
}
