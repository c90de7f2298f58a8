/* manifest.c - what a pack consists of, and how far it has come
 *
 * The manifest is replaced in one step whenever a shard is finished, and only then do the shard and its
 * bad samples count; so a run that was killed goes on behind the last finished shard.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/pack.h"

#include "source/cells.h"
#include "source/load.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANIFEST_MOST (1ull << 30)
#define SETTINGS      "\"settings\": "
#define LEDGER_SIZE   "\"ledger_size\": "
#define COMPLETE      "\"complete\": "

void pack_json_text(char *out, size_t size, const char *text)
{
    size_t used = 0;
    out[used++] = '"';
    for (const unsigned char *c = (const unsigned char *)text; *c && used + 9 < size; c++) {
        if (*c == '"' || *c == '\\')
            used += (size_t)sprintf(out + used, "\\%c", *c);
        else if (*c < 32 || *c >= 127) /* bytes as Latin-1: what is no UTF-8 must still be JSON */
            used += (size_t)sprintf(out + used, "\\u%04x", *c);
        else
            out[used++] = (char)*c;
    }
    out[used++] = '"';
    out[used] = '\0';
}

/* ---- settings ---------------------------------------------------------------------------------- */

static int write_settings(struct pack_manifest *manifest, const struct pack_options *opt,
                          const struct stoker_dataset *data, struct stoker_error *err)
{
    char *source = malloc(6 * PATH_MAX), *fields = malloc(6 * PATH_MAX);
    int size = -1;
    if (source && fields) {
        pack_json_text(source, 6 * PATH_MAX, opt->source);
        pack_json_text(fields, 6 * PATH_MAX, opt->fields ? opt->fields : "");
        size = asprintf(&manifest->settings,
                        "{\"source\": %s, \"source_samples\": %llu, \"fields\": %s, \"format\": \"%s\", "
                        "\"resize\": [%llu, %llu], \"max_size\": %llu, \"quality\": %llu, "
                        "\"shard_size\": %llu, \"shuffle\": %s, \"seed\": %llu, \"crop_ready\": %s, "
                        "\"compress\": %s, \"on_error\": \"%s\"}",
                        source, (unsigned long long)st_dataset_count(data), fields, opt->writer->name,
                        (unsigned long long)opt->resize_width, (unsigned long long)opt->resize_height,
                        (unsigned long long)opt->max_size, (unsigned long long)opt->quality,
                        (unsigned long long)opt->shard_size, opt->shuffle ? "true" : "false",
                        (unsigned long long)opt->seed, opt->crop_ready ? "true" : "false",
                        opt->compress ? "true" : "false", opt->skip_bad ? "skip" : "raise");
    }
    free(source);
    free(fields);
    if (size >= 0)
        return STOKER_OK;
    manifest->settings = NULL;
    return st_fail(err, STOKER_ENOMEM, "out of memory for the manifest");
}

/* ---- reading ----------------------------------------------------------------------------------- */

static bool note_shard(struct pack_manifest *manifest, const struct pack_shard *shard)
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

static uint64_t number(const struct st_cells *cells, const char *key, int base)
{
    for (uint64_t i = 0; i + 1 < cells->count; i += 2)
        if (!strcmp(st_cells_word(cells, i), key))
            return strtoull(st_cells_word(cells, i + 1), NULL, base);
    return 0;
}

static int take_shard(struct pack_manifest *manifest, const char *line, size_t size, const char *path,
                      struct stoker_error *err)
{
    struct st_cells cells = {0};
    struct st_lines lines;
    struct pack_shard shard = {0};
    st_lines_begin(&lines, line, size, path);
    int rc = st_json_record(&lines, &cells, err);
    if (!rc) {
        shard.first = number(&cells, "first", 10);
        shard.positions = number(&cells, "positions", 10);
        shard.samples = number(&cells, "samples", 10);
        shard.bytes = number(&cells, "bytes", 10);
        shard.crc = (uint32_t)number(&cells, "crc32c", 16);
        if (cells.count >= 2)
            snprintf(shard.name, sizeof shard.name, "%s", st_cells_word(&cells, 1));
        const bool sound = shard.name[0] && !strchr(shard.name, '/') &&
                           shard.samples <= shard.positions && shard.first == manifest->positions &&
                           shard.positions <= UINT64_MAX / 4;
        if (!sound)
            rc = st_fail(err, STOKER_ECORRUPT, "%s: the entry of shard '%s' makes no sense", path,
                         shard.name);
        else if (!note_shard(manifest, &shard))
            rc = st_fail(err, STOKER_ENOMEM, "%s: out of memory", path);
    }
    st_cells_free(&cells);
    return rc;
}

static int take_line(struct pack_manifest *manifest, char *line, const char *path,
                     struct stoker_error *err)
{
    size_t size = strlen(line);
    if (size && line[size - 1] == ',')
        line[--size] = '\0';
    if (!strncmp(line, SETTINGS, strlen(SETTINGS))) {
        free(manifest->settings);
        manifest->settings = strdup(line + strlen(SETTINGS));
        return manifest->settings ? STOKER_OK : st_fail(err, STOKER_ENOMEM, "%s: out of memory", path);
    }
    if (!strncmp(line, LEDGER_SIZE, strlen(LEDGER_SIZE)))
        manifest->ledger_size = strtoull(line + strlen(LEDGER_SIZE), NULL, 10);
    if (!strncmp(line, COMPLETE, strlen(COMPLETE)))
        manifest->complete = !strcmp(line + strlen(COMPLETE), "true");
    return !strncmp(line, "{\"name\"", 7) ? take_shard(manifest, line, size, path, err) : STOKER_OK;
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
    st_buffer_free(&text);
    st_held_close(&file);
    return rc;
}

/* ---- the folder -------------------------------------------------------------------------------- */

static bool is_partial(const char *name) { return !strncmp(name, ".partial-", 9); }

/* A folder of somebody's own is not written into. What a killed run left half-written goes. */
static int look_into(const char *folder, bool known, struct stoker_error *err)
{
    DIR *dir = opendir(folder);
    int rc = STOKER_OK;
    if (!dir)
        return st_fail_errno(err, errno, "%s", folder);
    for (struct dirent *entry; !rc && (entry = readdir(dir));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        if (is_partial(entry->d_name))
            unlinkat(dirfd(dir), entry->d_name, 0);
        else if (!known)
            rc = st_fail(err, STOKER_EINVAL,
                         "%.500s: holds '%.200s' and no manifest of a pack: name a new or empty folder",
                         folder, entry->d_name);
    }
    closedir(dir);
    return rc;
}

/* The ledger as it was when the last shard was finished. */
static int cut_ledger(const struct pack_manifest *manifest, const struct pack_options *opt,
                      struct stoker_error *err)
{
    char path[PATH_MAX];
    const int rc = pack_path(path, opt->folder, PACK_LEDGER, err);
    if (rc)
        return rc;
    if (truncate(path, (off_t)manifest->ledger_size) && errno != ENOENT)
        return st_fail_errno(err, errno, "%s", path);
    return STOKER_OK;
}

static int store(const struct pack_manifest *manifest, const struct pack_options *opt,
                 struct stoker_error *err);

int pack_manifest_open(struct pack_manifest *manifest, const struct pack_options *opt,
                       const struct stoker_dataset *data, struct stoker_error *err)
{
    struct pack_manifest wanted = {0};
    *manifest = (struct pack_manifest){0};
    if (mkdir(opt->folder, 0777) && errno != EEXIST)
        return st_fail_errno(err, errno, "%s", opt->folder);
    int rc = write_settings(&wanted, opt, data, err);
    if (rc)
        return rc;
    rc = pack_manifest_read(manifest, opt->folder, err);
    const bool ours = rc == STOKER_OK, known = ours && manifest->shard_count;
    if (known && strcmp(manifest->settings, wanted.settings))
        rc = st_fail(
            err, STOKER_EINVAL,
            "%.300s: was begun with other settings or other data: give the same options again, or name "
            "another folder. Then: %.300s",
            opt->folder, manifest->settings);
    if (!rc || rc == STOKER_END)
        rc = look_into(opt->folder, ours, err);
    manifest->resumed = known;
    if (!rc && known)
        rc = cut_ledger(manifest, opt, err);
    if (!known) {
        free(manifest->settings);
        manifest->settings = wanted.settings;
        wanted.settings = NULL;
        if (!rc) /* from now on the folder is known as ours */
            rc = store(manifest, opt, err);
    }
    free(wanted.settings);
    return rc;
}

/* ---- writing ----------------------------------------------------------------------------------- */

static bool put(struct st_buffer *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool put(struct st_buffer *text, const char *format, ...)
{
    va_list args;
    char *line = NULL;
    va_start(args, format);
    const int size = vasprintf(&line, format, args);
    va_end(args);
    const bool good = size >= 0 && pack_append(text, line, (uint64_t)size);
    if (size >= 0)
        free(line);
    return good;
}

static int store(const struct pack_manifest *manifest, const struct pack_options *opt,
                 struct stoker_error *err)
{
    struct st_buffer text = {0};
    bool good =
        put(&text, "{\n\"stoker_pack\": 1,\n" SETTINGS "%s,\n" COMPLETE "%s,\n", manifest->settings,
            manifest->complete ? "true" : "false") &&
        put(&text, "\"samples\": %llu,\n\"bad\": %llu,\n\"bytes\": %llu,\n" LEDGER_SIZE "%llu,\n",
            (unsigned long long)manifest->samples, (unsigned long long)manifest->bad,
            (unsigned long long)manifest->bytes, (unsigned long long)manifest->ledger_size) &&
        put(&text, "\"shards\": [\n");
    for (uint64_t i = 0; i < manifest->shard_count && good; i++) {
        const struct pack_shard *s = &manifest->shards[i];
        good = put(&text,
                   "{\"name\": \"%s\", \"first\": %llu, \"positions\": %llu, \"samples\": %llu, "
                   "\"bytes\": %llu, "
                   "\"crc32c\": \"%08x\"}%s\n",
                   s->name, (unsigned long long)s->first, (unsigned long long)s->positions,
                   (unsigned long long)s->samples, (unsigned long long)s->bytes, s->crc,
                   i + 1 < manifest->shard_count ? "," : "");
    }
    good = good && put(&text, "]\n}\n");
    const int rc = good ? pack_file_put(opt->folder, PACK_MANIFEST, text.data, text.size, err)
                        : st_fail(err, STOKER_ENOMEM, "out of memory for the manifest");
    st_buffer_free(&text);
    return rc;
}

int pack_manifest_bad(struct pack_manifest *manifest, const struct stoker_dataset *data,
                      const struct pack_sample *sample, struct stoker_error *err)
{
    enum { ROOM = 6 * 1024 };
    char name[PATH_MAX], quoted_name[ROOM], reason[ROOM], line[2 * ROOM + 100];
    st_dataset_name(data, sample->number, name, sizeof name);
    pack_json_text(quoted_name, sizeof quoted_name, name);
    pack_json_text(reason, sizeof reason, sample->error.message);
    const int size = snprintf(line, sizeof line, "{\"sample\": %llu, \"name\": %s, \"reason\": %s}\n",
                              (unsigned long long)sample->number, quoted_name, reason);
    const uint64_t wanted = manifest->pending_size + (uint64_t)size;
    if (wanted > manifest->pending_room) {
        char *grown = st_grow(manifest->pending, 2 * wanted, 1);
        if (!grown)
            return st_fail(err, STOKER_ENOMEM, "out of memory for the ledger");
        manifest->pending = grown;
        manifest->pending_room = 2 * wanted;
    }
    memcpy(manifest->pending + manifest->pending_size, line, (size_t)size);
    manifest->pending_size = wanted;
    return STOKER_OK;
}

static int append_ledger(struct pack_manifest *manifest, const struct pack_options *opt,
                         struct stoker_error *err)
{
    char path[PATH_MAX];
    const int rc = pack_path(path, opt->folder, PACK_LEDGER, err);
    if (rc || !manifest->pending_size)
        return rc;
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return st_fail_errno(err, errno, "%s", path);
    errno = ENOSPC;
    const bool good =
        write(fd, manifest->pending, manifest->pending_size) == (ssize_t)manifest->pending_size &&
        !fsync(fd);
    const int why = errno;
    close(fd);
    if (!good)
        return st_fail_errno(err, why, "%s", path);
    manifest->ledger_size += manifest->pending_size;
    manifest->pending_size = 0;
    return STOKER_OK;
}

int pack_manifest_add(struct pack_manifest *manifest, const struct pack_options *opt,
                      const struct pack_shard *shard, bool last, struct stoker_error *err)
{
    const int rc = append_ledger(manifest, opt, err);
    if (rc)
        return rc;
    if (!shard->samples && manifest->shard_count) { /* bad samples at the end, and no file */
        manifest->shards[manifest->shard_count - 1].positions += shard->positions;
        manifest->positions += shard->positions;
        manifest->bad += shard->positions;
    } else if (!note_shard(manifest, shard)) {
        return st_fail(err, STOKER_ENOMEM, "out of memory for the manifest");
    }
    manifest->complete = last;
    return store(manifest, opt, err);
}

void pack_manifest_free(struct pack_manifest *manifest)
{
    free(manifest->settings);
    free(manifest->shards);
    free(manifest->pending);
    *manifest = (struct pack_manifest){0};
}
