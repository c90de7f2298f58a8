/* manifest_write.c - records the contents of a pack and its progress
 *
 * The manifest is replaced atomically, and only its contents count: after a kill, the next run continues
 * after the last finished shard, or after the last mark in a single output.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/out.h"
#include "cli/pack/pack.h"
#include "base/file.h"
#include "source/packs/classes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void pack_json_text(char *out, size_t size, const char *text)
{
    size_t used = 0;
    out[used++] = '"';
    while (*text && used + JSON_CHARACTER + 2 < size)
        used += json_character(out + used, &text);
    out[used++] = '"';
    out[used] = '\0';
}

int pack_manifest_settings(char **out, const struct pack_options *opt, const struct stoker_dataset *data,
                           struct stoker_error *err)
{
    char *source = malloc(6 * PATH_MAX), *fields = malloc(6 * PATH_MAX);
    int size = -1;
    if (source && fields) {
        pack_json_text(source, 6 * PATH_MAX, opt->source);
        pack_json_text(fields, 6 * PATH_MAX, opt->fields ? opt->fields : "");
        size = asprintf(out,
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
    *out = NULL;
    return st_fail(err, STOKER_ENOMEM, "out of memory for the manifest");
}

/* ---- the file ---------------------------------------------------------------------------------- */

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

static bool put_head(struct st_buffer *text, const struct st_pack *m)
{
    const struct st_pack_mark *mark = &m->mark;
    return put(text,
               ST_PACK_BEGIN ST_PACK_LINE_SETTINGS "%s,\n" ST_PACK_LINE_ARCHIVES
                                                   "%016llx\",\n" ST_PACK_LINE_COMPLETE "%s,\n",
               m->settings, (unsigned long long)m->archives, m->complete ? "true" : "false") &&
           put(text, ST_PACK_LINE_SAMPLES "%llu,\n\"bad\": %llu,\n\"bytes\": %llu,\n",
               (unsigned long long)m->samples, (unsigned long long)m->bad,
               (unsigned long long)m->bytes) &&
           put(text, ST_PACK_LINE_LEDGER_SIZE "%llu,\n", (unsigned long long)m->ledger_size) &&
           (!mark->positions ||
            put(text,
                ST_PACK_LINE_UNDER_WAY
                "{\"positions\": %llu, \"samples\": %llu, \"source\": \"%016llx\"},\n",
                (unsigned long long)mark->positions, (unsigned long long)mark->samples,
                (unsigned long long)mark->source));
}

static bool put_classes(struct st_buffer *text, const struct st_cells *classes)
{
    bool good = !classes->count || put(text, "\"classes\": [\n");
    for (uint64_t i = 0; i < classes->count && good; i++)
        good = st_class_write(text, st_cells_word(classes, i)) &&
               put(text, i + 1 < classes->count ? ",\n" : "\n],\n");
    return good;
}

static bool put_shards(struct st_buffer *text, const struct st_pack *m)
{
    bool good = put(text, "\"shards\": [\n");
    for (uint64_t i = 0; i < m->shard_count && good; i++) {
        const struct st_pack_shard *s = &m->shards[i];
        good = put(text,
                   ST_PACK_LINE_SHARD "\"%s\", \"first\": %llu, \"positions\": %llu, \"samples\": %llu, "
                                   "\"bytes\": %llu, \"crc32c\": \"%08x\", \"source\": \"%016llx\"}%s\n",
                   s->name, (unsigned long long)s->first, (unsigned long long)s->positions,
                   (unsigned long long)s->samples, (unsigned long long)s->bytes, s->crc,
                   (unsigned long long)s->source, i + 1 < m->shard_count ? "," : "");
    }
    return good && put(text, "]");
}

static bool put_beside(struct st_buffer *text, const struct st_pack_beside *beside)
{
    bool good = !beside->count || put(text, ",\n\"beside\": [\n");
    for (uint32_t i = 0; i < beside->count && good; i++)
        good = put(text, ST_PACK_LINE_BESIDE "\"%s\", \"bytes\": %llu, \"crc32c\": \"%08x\"}%s\n",
                   beside->files[i].name, (unsigned long long)beside->files[i].bytes,
                   beside->files[i].crc, i + 1 < beside->count ? "," : "");
    return good && put(text, beside->count ? "]\n}\n" : "\n}\n");
}

int pack_manifest_store(const struct st_pack *manifest, const struct pack_options *opt,
                        struct stoker_error *err)
{
    struct st_buffer text = {0};
    const bool good = put_head(&text, manifest) && put_classes(&text, &manifest->classes) &&
                      put_shards(&text, manifest) && put_beside(&text, &manifest->beside);
    const int rc = good ? pack_file_put(opt->folder, ST_PACK_MANIFEST, text.data, text.size, err)
                        : st_fail(err, STOKER_ENOMEM, "out of memory for the manifest");
    st_buffer_free(&text);
    return rc;
}

/* ---- progress ------------------------------------------------------------------------------------ */

int pack_manifest_bad(struct st_pack *manifest, const struct stoker_dataset *data,
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

static int append_ledger(struct st_pack *manifest, const struct pack_options *opt,
                         struct stoker_error *err)
{
    char path[PATH_MAX];
    const int rc = pack_path(path, opt->folder, PACK_LEDGER, err);
    if (rc || !manifest->pending_size)
        return rc;
    const int fd = st_file_open(path, O_WRONLY | O_CREAT | O_NOFOLLOW);
    if (fd < 0)
        return st_fail_errno(err, errno, "%s", path);
    const bool good =
        st_file_write(fd, manifest->ledger_size, manifest->pending, manifest->pending_size) &&
        st_file_sync(fd);
    const int why = errno;
    close(fd);
    if (!good)
        return pack_cannot_write(path, why, err);
    manifest->ledger_size += manifest->pending_size;
    manifest->pending_size = 0;
    return STOKER_OK;
}

int pack_manifest_add(struct st_pack *manifest, const struct pack_options *opt,
                      const struct st_pack_shard *shard, bool last, struct stoker_error *err)
{
    const int rc = append_ledger(manifest, opt, err);
    if (rc)
        return rc;
    if (!shard->samples &&
        manifest->shard_count) { /* only bad samples at the end, so there is no file */
        manifest->shards[manifest->shard_count - 1].positions += shard->positions;
        manifest->shards[manifest->shard_count - 1].source = shard->source;
        manifest->positions += shard->positions;
        manifest->bad += shard->positions;
    } else if (!st_pack_note(manifest, shard)) {
        return st_fail(err, STOKER_ENOMEM, "out of memory for the manifest");
    }
    manifest->mark = (struct st_pack_mark){0};
    manifest->complete = last;
    return pack_manifest_store(manifest, opt, err);
}

int pack_manifest_mark(struct st_pack *manifest, const struct pack_options *opt,
                       struct st_pack_mark mark, struct stoker_error *err)
{
    const int rc = append_ledger(manifest, opt, err);
    manifest->mark = mark;
    return rc ? rc : pack_manifest_store(manifest, opt, err);
}
