/* check.c - checks that the files of a pack are unchanged since they were written
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/check.h"

#include "base/file.h"
#include "base/text.h"
#include "source/checksum/crc32c.h"
#include "source/held.h"
#include "source/shards/index.h"
#include "source/tar/members.h"
#include "source/tar/scan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INDEX_MOST (1ull << 30)

/* ---- whole files ------------------------------------------------------------------------------- */

int pack_sum_range(const struct st_held *file, uint64_t offset, uint64_t size, uint32_t *crc,
                   struct stoker_error *err)
{
    uint8_t *piece = malloc(1 << 20);
    int rc = piece ? STOKER_OK : st_fail(err, STOKER_ENOMEM, "%s: out of memory", file->path);
    *crc = 0;
    while (size && !rc) {
        const uint64_t now = size < 1 << 20 ? size : 1 << 20;
        rc = st_held_read(file, offset, piece, now, err);
        if (!rc)
            *crc = st_crc32c_more(*crc, piece, now);
        offset += now;
        size -= now;
    }
    free(piece);
    return rc;
}

static int sum_file(const char *path, struct st_pack_shard *shard, struct stoker_error *err)
{
    struct st_held file = {0};
    int rc = st_held_open(&file, path, err);
    shard->bytes = file.size;
    if (!rc && !st_file_sync(file.fd))
        rc = st_fail_errno(err, errno, "%s", path);
    if (!rc)
        rc = pack_sum_range(&file, 0, file.size, &shard->crc, err);
    st_held_close(&file);
    return rc;
}

int pack_finish_as(char *temporary, const char *path, struct st_pack_shard *shard,
                   struct stoker_error *err)
{
    int rc = sum_file(temporary, shard, err);
    if (!rc)
        rc = pack_rename(temporary, path, err);
    if (!rc)
        temporary[0] = '\0';
    return rc;
}

static void check_file(const char *folder, const char *name, uint64_t bytes, uint32_t written,
                       struct pack_findings *findings)
{
    char path[PATH_MAX], why[160];
    struct stoker_error error;
    struct st_held file = {0};
    uint32_t crc;
    int rc = pack_path(path, folder, name, &error);
    if (!rc)
        rc = st_held_open(&file, path, &error);
    if (!rc && file.size != bytes) {
        snprintf(why, sizeof why, "has %llu byte%s; the manifest lists %llu",
                 (unsigned long long)file.size, st_s(file.size), (unsigned long long)bytes);
        findings->bad(findings->context, path, why);
    } else if (!rc) {
        rc = pack_sum_range(&file, 0, file.size, &crc, &error);
        if (!rc && crc != written)
            findings->bad(findings->context, path,
                          "its bytes differ from those that were written (CRC32C)");
    }
    if (rc)
        findings->bad(findings->context, name, error.message);
    findings->files++;
    st_held_close(&file);
}

/* All packed samples must be there, even if the checksums of the files are right. */
static void check_count(const char *folder, uint64_t packed, uint64_t found,
                        struct pack_findings *findings)
{
    char why[160];
    snprintf(why, sizeof why, "has %llu sample%s; the manifest lists %llu", (unsigned long long)found,
             st_s(found), (unsigned long long)packed);
    if (found != packed)
        findings->bad(findings->context, folder, why);
}

int pack_check_folder(const char *folder, uint64_t samples, struct pack_findings *findings,
                      struct stoker_error *err)
{
    struct st_pack manifest;
    const int rc = st_pack_read(&manifest, folder, err);
    for (uint64_t i = 0; !rc && i < manifest.shard_count; i++) {
        const struct st_pack_shard *shard = &manifest.shards[i];
        check_file(folder, shard->name, shard->bytes, shard->crc, findings);
    }
    for (uint32_t i = 0; !rc && i < manifest.beside.count; i++) {
        const struct st_pack_file *file = &manifest.beside.files[i];
        check_file(folder, file->name, file->bytes, file->crc, findings);
    }
    if (!rc)
        check_count(folder, manifest.samples, samples, findings);
    if (!rc && !manifest.complete)
        findings->bad(findings->context, folder,
                      "the pack is not complete: run the same 'stoker pack' again");
    st_pack_free(&manifest);
    return rc == STOKER_END ? STOKER_OK : rc;
}

/* ---- the members of a tar file ----------------------------------------------------------------- */

struct check {
    struct st_held file;
    struct st_window window;
    struct st_buffer block;
    struct st_shard_index index;
    struct pack_findings *findings;
    uint64_t part, sample;
};

static bool is_index(const struct st_tar_member *member)
{
    return member->regular && member->name.size == 9 && !memcmp(member->name.data, "__index__", 9);
}

/* Finds the index; false: there is no valid one. */
static bool find_index(struct check *c)
{
    struct st_tar_walk walk = {.window = &c->window};
    struct st_tar_member member;
    bool found = false;
    while (!found && !st_tar_next(&walk, &member, NULL))
        found = is_index(&member);
    st_tar_walk_free(&walk);
    return found && member.size <= INDEX_MOST && st_window_has(&c->window, member.data, member.size) &&
           st_buffer_reserve(&c->block, member.size) &&
           !st_held_read(&c->file, member.data, c->block.data, member.size, NULL) &&
           st_shard_index_load(&c->index, c->block.data, member.size, st_shard_kind_tar.number) &&
           c->index.crcs;
}

static void name_part(struct check *c, char *out, size_t size)
{
    while (c->sample + 1 < c->index.sample_count && c->index.firsts[c->sample + 1] <= c->part)
        c->sample++;
    snprintf(out, size, "%.700s: %.300s.%.100s", c->file.path, c->index.text + c->index.keys[c->sample],
             c->index.text + c->index.suffixes[c->index.part_suffixes[c->part]]);
}

static int check_member(struct check *c, const struct st_tar_member *member, struct stoker_error *err)
{
    char name[1200];
    uint32_t crc = 0;
    name_part(c, name, sizeof name);
    const struct st_shard_part *part = &c->index.parts[c->part];
    if (member->start != part->start || member->data + member->size != part->end) {
        c->findings->bad(c->findings->context, name, "another member is in its place");
        return STOKER_END; /* all following members are misplaced too */
    }
    const int rc = pack_sum_range(&c->file, member->data, member->size, &crc, err);
    if (!rc && crc != c->index.crcs[c->part])
        c->findings->bad(c->findings->context, name,
                         "its bytes differ from those that were written (CRC32C)");
    c->findings->sums++;
    return rc;
}

static int check_members(struct check *c, struct stoker_error *err)
{
    struct st_tar_walk walk = {.window = &c->window};
    struct st_tar_member member;
    int rc = STOKER_OK;
    for (; !rc && c->part < c->index.part_count; c->part++) {
        rc = st_tar_next(&walk, &member, err);
        if (!rc)
            rc = check_member(c, &member, err);
        else if (rc == STOKER_ECORRUPT || rc == STOKER_END) {
            char name[1200];
            name_part(c, name, sizeof name);
            c->findings->bad(c->findings->context, name, rc == STOKER_END ? "missing" : err->message);
            rc = STOKER_END;
        }
    }
    st_tar_walk_free(&walk);
    return rc == STOKER_END ? STOKER_OK : rc;
}

int pack_check_tar(const char *path, struct pack_findings *findings, struct stoker_error *err)
{
    struct check c = {.findings = findings};
    int rc = st_held_open(&c.file, path, err);
    if (rc)
        return rc;
    c.window = (struct st_window){.path = path, .file = &c.file, .end = c.file.size};
    if (find_index(&c))
        rc = check_members(&c, err);
    st_window_free(&c.window);
    st_buffer_free(&c.block);
    st_held_close(&c.file);
    return rc;
}
