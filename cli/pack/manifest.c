/* manifest.c - reads what a pack consists of, and how far it has come
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/manifest.h"

#include "source/table/cells.h"
#include "source/load.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANIFEST_MOST (1ull << 30)

/* ---- reading ----------------------------------------------------------------------------------- */

bool pack_manifest_note(struct pack_manifest *manifest, const struct pack_shard *shard)
{
    if (manifest->shard_count == manifest->shard_room) {
        const uint64_t room = manifest->shard_room ? 2 * manifest->shard_room : 64;
        struct pack_shard *grown = st_grow(manifest->shards, room, sizeof *grown);
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

/* What follows the beginning of a line; NULL: it begins in another way. */
static const char *after(const char *line, const char *beginning)
{
    const size_t size = strlen(beginning);
    return strncmp(line, beginning, size) ? NULL : line + size;
}

/* Of a file in the folder itself. */
static bool is_name(const char *name)
{
    return name[0] && name[0] != '.' && !strchr(name, '/') && strlen(name) < 64;
}

static uint64_t number(const struct st_cells *cells, const char *key, int base)
{
    for (uint64_t i = 0; i + 1 < cells->count; i += 2)
        if (!strcmp(st_cells_word(cells, i), key))
            return strtoull(st_cells_word(cells, i + 1), NULL, base);
    return 0;
}

/* The words of one line. */
static int read_words(struct st_cells *cells, const char *line, size_t size, const char *path,
                      struct stoker_error *err)
{
    struct st_lines lines;
    st_lines_begin(&lines, line, size);
    const int rc = st_json_record(&lines, cells, err);
    return rc ? st_fail_in(err, rc, path) : STOKER_OK;
}

static int makes_no_sense(const char *line, const char *path, struct stoker_error *err)
{
    return st_fail(err, STOKER_ECORRUPT, "%s: the entry %.300s makes no sense", path, line);
}

static int take_shard(struct pack_manifest *manifest, const char *line, size_t size, const char *path,
                      struct stoker_error *err)
{
    struct st_cells cells = {0};
    struct pack_shard shard = {0};
    int rc = read_words(&cells, line, size, path, err);
    if (!rc) {
        shard.first = number(&cells, "first", 10);
        shard.positions = number(&cells, "positions", 10);
        shard.samples = number(&cells, "samples", 10);
        shard.bytes = number(&cells, "bytes", 10);
        shard.crc = (uint32_t)number(&cells, "crc32c", 16);
        if (cells.count >= 2)
            snprintf(shard.name, sizeof shard.name, "%s", st_cells_word(&cells, 1));
        const bool sound = is_name(shard.name) && shard.samples <= shard.positions &&
                           shard.first == manifest->positions && shard.positions <= UINT64_MAX / 4;
        if (!sound)
            rc = makes_no_sense(line, path, err);
        else if (!pack_manifest_note(manifest, &shard))
            rc = st_fail(err, STOKER_ENOMEM, "%s: out of memory", path);
    }
    st_cells_free(&cells);
    return rc;
}

static int take_beside(struct pack_beside *beside, const char *line, size_t size, const char *path,
                       struct stoker_error *err)
{
    struct st_cells cells = {0};
    int rc = read_words(&cells, line, size, path, err);
    const char *name = !rc && cells.count >= 2 ? st_cells_word(&cells, 1) : "";
    if (!rc && (!is_name(name) || beside->count == ST_FIELDS_MAX)) {
        rc = makes_no_sense(line, path, err);
    } else if (!rc) {
        struct pack_beside_file *file = &beside->files[beside->count++];
        snprintf(file->name, sizeof file->name, "%s", name);
        file->bytes = number(&cells, "bytes", 10);
        file->crc = (uint32_t)number(&cells, "crc32c", 16);
    }
    st_cells_free(&cells);
    return rc;
}

static int take_mark(struct pack_mark *mark, const char *line, const char *path,
                     struct stoker_error *err)
{
    struct st_cells cells = {0};
    int rc = read_words(&cells, line, strlen(line), path, err);
    mark->positions = rc ? 0 : number(&cells, "positions", 10);
    mark->samples = rc ? 0 : number(&cells, "samples", 10);
    st_cells_free(&cells);
    if (!rc && (!mark->samples || mark->samples > mark->positions || mark->positions > UINT64_MAX / 4))
        rc = makes_no_sense(line, path, err);
    return rc;
}

static int take_line(struct pack_manifest *manifest, char *line, const char *path,
                     struct stoker_error *err)
{
    size_t size = strlen(line);
    if (size && line[size - 1] == ',')
        line[--size] = '\0';
    const char *value;
    if ((value = after(line, PACK_LINE_SETTINGS))) {
        free(manifest->settings);
        manifest->settings = strdup(value);
        return manifest->settings ? STOKER_OK : st_fail(err, STOKER_ENOMEM, "%s: out of memory", path);
    }
    if ((value = after(line, PACK_LINE_SAMPLES)))
        manifest->claimed = strtoull(value, NULL, 10);
    if ((value = after(line, PACK_LINE_LEDGER_SIZE)))
        manifest->ledger_size = strtoull(value, NULL, 10);
    if ((value = after(line, PACK_LINE_COMPLETE)))
        manifest->complete = !strcmp(value, "true");
    if ((value = after(line, PACK_LINE_UNDER_WAY)))
        return take_mark(&manifest->mark, value, path, err);
    if (after(line, PACK_LINE_BESIDE))
        return take_beside(&manifest->beside, line, size, path, err);
    return after(line, PACK_LINE_SHARD) ? take_shard(manifest, line, size, path, err) : STOKER_OK;
}

int pack_manifest_read(struct pack_manifest *manifest, const char *folder, struct stoker_error *err)
{
    char path[PATH_MAX];
    struct st_held file = {0};
    struct st_buffer text = {0};
    *manifest = (struct pack_manifest){0};
    int rc = pack_path(path, folder, PACK_MANIFEST, err);
    if (rc)
        return rc;
    if (access(path, F_OK))
        return STOKER_END;
    rc = st_held_open(&file, path, err);
    if (!rc)
        rc = st_load(&text, &file, MANIFEST_MOST, err);
    if (!rc && !pack_append(&text, "", 1))
        rc = st_fail(err, STOKER_ENOMEM, "%s: out of memory", path);
    char *rest = NULL;
    for (char *line = rc ? NULL : strtok_r((char *)text.data, "\n", &rest); line && !rc;
         line = strtok_r(NULL, "\n", &rest))
        rc = take_line(manifest, line, path, err);
    if (!rc && !manifest->settings)
        rc = st_fail(err, STOKER_ECORRUPT, "%s: not the manifest of a pack", path);
    if (!rc && manifest->claimed != manifest->samples)
        rc = st_fail(err, STOKER_ECORRUPT, "%s: says %llu samples, and its shards have %llu: it is damaged",
                     path, (unsigned long long)manifest->claimed, (unsigned long long)manifest->samples);
    st_buffer_free(&text);
    st_held_close(&file);
    return rc;
}

/* ---- the folder -------------------------------------------------------------------------------- */

static bool is_partial(const char *name) { return !strncmp(name, ".partial-", 9); }

/* A folder of somebody's own is not written into. What a killed run left half-written goes, unless it
 * can go on. */
static int look_into(const char *folder, bool known, bool goes_on, struct stoker_error *err)
{
    DIR *dir = opendir(folder);
    int rc = STOKER_OK;
    if (!dir)
        return st_fail_errno(err, errno, "%s", folder);
    for (struct dirent *entry; !rc && (entry = readdir(dir));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
            !strcmp(entry->d_name, PACK_LOCK))
            continue;
        if (is_partial(entry->d_name) && !goes_on)
            unlinkat(dirfd(dir), entry->d_name, 0);
        else if (!known)
            rc = st_fail(err, STOKER_EINVAL,
                         "%.500s: holds '%.200s' and no manifest of a pack: name a new or empty folder",
                         folder, entry->d_name);
    }
    closedir(dir);
    return rc;
}

/* The ledger as it was when the manifest was written. */
static int cut_ledger(const struct pack_manifest *manifest, const struct pack_options *opt,
                      struct stoker_error *err)
{
    char path[PATH_MAX];
    const int rc = pack_path(path, opt->folder, PACK_LEDGER, err);
    if (rc)
        return rc;
    const int failed =
        manifest->ledger_size ? truncate(path, (off_t)manifest->ledger_size) : unlink(path);
    if (failed && (manifest->ledger_size || errno != ENOENT))
        return st_fail_errno(err, errno, "%s", path);
    return STOKER_OK;
}

/* What an earlier run finished must still be there. */
static int find_file(const char *folder, const char *name, uint64_t bytes, struct stoker_error *err)
{
    char path[PATH_MAX];
    struct stat status;
    const int rc = pack_path(path, folder, name, err);
    if (rc)
        return rc;
    const bool there = !lstat(path, &status) && S_ISREG(status.st_mode);
    return there && (uint64_t)status.st_size == bytes ? STOKER_OK : pack_was_changed(path, err);
}

static int find_files(const struct pack_manifest *m, const char *folder, struct stoker_error *err)
{
    int rc = STOKER_OK;
    for (uint64_t i = 0; i < m->shard_count && !rc; i++)
        rc = find_file(folder, m->shards[i].name, m->shards[i].bytes, err);
    for (uint32_t i = 0; i < m->beside.count && !rc; i++)
        rc = find_file(folder, m->beside.files[i].name, m->beside.files[i].bytes, err);
    return rc;
}

int pack_manifest_open(struct pack_manifest *manifest, const struct pack_options *opt,
                       const struct stoker_dataset *data, struct stoker_error *err)
{
    char *wanted;
    *manifest = (struct pack_manifest){0};
    int rc = pack_manifest_settings(&wanted, opt, data, err);
    if (rc)
        return rc;
    rc = pack_manifest_read(manifest, opt->folder, err);
    const bool ours = rc == STOKER_OK, marked = manifest->mark.positions;
    const bool known = ours && (manifest->shard_count || marked);
    if (known && strcmp(manifest->settings, wanted))
        rc = st_fail(
            err, STOKER_EINVAL,
            "%.300s: was begun with other settings or other data: give the same options again, or name "
            "another folder. Then: %.300s",
            opt->folder, manifest->settings);
    if (!rc || rc == STOKER_END)
        rc = look_into(opt->folder, ours, known && marked, err);
    if (!rc && known)
        rc = find_files(manifest, opt->folder, err);
    if (!rc && ours)
        rc = cut_ledger(manifest, opt, err);
    if (!known) {
        free(manifest->settings);
        manifest->settings = wanted;
        wanted = NULL;
        if (!rc) /* from now on the folder is known as ours */
            rc = pack_manifest_store(manifest, opt, err);
    }
    free(wanted);
    return rc;
}

void pack_manifest_free(struct pack_manifest *manifest)
{
    free(manifest->settings);
    free(manifest->shards);
    free(manifest->pending);
    *manifest = (struct pack_manifest){0};
}
