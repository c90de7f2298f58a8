/* load_text.c - text files of a run directory: the command, and what processes report about themselves
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/model/load.h"

#include "base/err.h"
#include "base/mem.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 16 << 20 };

void *dr_blocks_new(struct dr_blocks *blocks, uint64_t count, uint64_t size)
{
    void *block = st_calloc(count ? count : 1, size);
    return block && dr_blocks_own(blocks, block) ? block : NULL;
}

bool dr_blocks_own(struct dr_blocks *blocks, void *block)
{
    if (blocks->count == blocks->room) {
        const uint32_t room = blocks->room ? 2 * blocks->room : 64;
        void **more = st_grow(blocks->block, room, sizeof *more);
        if (!more) {
            free(block);
            return false;
        }
        blocks->block = more;
        blocks->room = room;
    }
    blocks->block[blocks->count++] = block;
    return true;
}

void dr_blocks_free(struct dr_blocks *blocks)
{
    for (uint32_t k = 0; k < blocks->count; k++)
        free(blocks->block[k]);
    free(blocks->block);
    *blocks = (struct dr_blocks){0};
}

/* The whole file, zero-terminated, at most MOST_BYTES; NULL without an error: it does not exist. */
static int read_whole(const char *path, struct dr_blocks *blocks, char **out, struct stoker_error *err)
{
    *out = NULL;
    FILE *file = fopen(path, "re");
    if (!file)
        return errno == ENOENT ? STOKER_OK : st_fail_errno(err, errno, "cannot open %s", path);
    char *text = NULL;
    size_t size = 0, room = 0;
    for (;;) {
        if (room - size < 4096) {
            char *more = room < MOST_BYTES ? st_grow(text, room ? 2 * room : 16384, 1) : NULL;
            if (!more) {
                free(text);
                fclose(file);
                return room < MOST_BYTES ? st_fail(err, STOKER_ENOMEM, "%s: out of memory", path)
                                         : st_fail(err, STOKER_ECORRUPT,
                                                   "%s: more than %d MB of text. Record the run again.",
                                                   path, MOST_BYTES >> 20);
            }
            text = more;
            room = room ? 2 * room : 16384;
        }
        const size_t got = fread(text + size, 1, room - size - 1, file);
        size += got;
        if (!got)
            break;
    }
    const bool failed = ferror(file);
    fclose(file);
    if (failed) {
        free(text);
        return st_fail(err, STOKER_EIO, "cannot read all of %s", path);
    }
    text[size] = '\0';
    *out = text;
    return dr_blocks_own(blocks, text) ? STOKER_OK
                                       : st_fail(err, STOKER_ENOMEM, "%s: out of memory", path);
}

static void unescape(char *text)
{
    char *to = text;
    for (; *text; text++) {
        if (*text == '\\' && text[1])
            *to++ = *++text == 'n' ? '\n' : *text;
        else
            *to++ = *text;
    }
    *to = '\0';
}

int dr_read_lines(const char *path, struct dr_blocks *blocks, char ***lines, uint32_t *count,
                  struct stoker_error *err)
{
    char *text;
    *count = 0;
    const int rc = read_whole(path, blocks, &text, err);
    if (rc)
        return rc;
    uint32_t ends = 0;
    for (const char *at = text; at && (at = strchr(at, '\n')); at++)
        ends++;
    *lines = dr_blocks_new(blocks, (uint64_t)ends + 1, sizeof **lines);
    if (!*lines)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory for its lines", path);
    for (char *at = text, *end; at && (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        unescape(at);
        (*lines)[(*count)++] = at;
    }
    return STOKER_OK;
}

/* By key; lines with the same key by position. */
static int compare_pairs(const void *a, const void *b)
{
    const struct dr_text_pair *one = a, *other = b;
    const int order = strcmp(one->key, other->key);
    return order ? order : (one->value > other->value) - (one->value < other->value);
}

int dr_read_said(const char *path, struct dr_blocks *blocks, struct dr_process *process,
                 struct stoker_error *err)
{
    char **lines;
    uint32_t count, kept = 0;
    const int rc = dr_read_lines(path, blocks, &lines, &count, err);
    if (rc)
        return rc;
    struct dr_text_pair *pairs = dr_blocks_new(blocks, count, sizeof *pairs);
    if (!pairs)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory for its lines", path);
    for (uint32_t k = 0; k < count; k++) {
        char *space = strchr(lines[k], ' ');
        if (space == lines[k] || !*lines[k])
            continue;
        if (space)
            *space = '\0';
        pairs[kept].key = lines[k];
        pairs[kept++].value = space ? space + 1 : "";
    }
    for (uint32_t k = 0; k < kept;
         k++) /* "" must point into the text of the file: it would sort wrongly otherwise */
        if (!*pairs[k].value)
            pairs[k].value = pairs[k].key + strlen(pairs[k].key);
    qsort(pairs, kept, sizeof *pairs, compare_pairs);
    uint32_t last = 0;
    for (uint32_t k = 0; k < kept; k++)
        if (k + 1 == kept || strcmp(pairs[k].key, pairs[k + 1].key))
            pairs[last++] = pairs[k];
    process->said = pairs;
    process->said_count = last;
    return STOKER_OK;
}

const char *dr_said(const struct dr_process *process, const char *key)
{
    for (uint32_t k = 0; k < process->said_count; k++)
        if (!strcmp(process->said[k].key, key))
            return process->said[k].value;
    return NULL;
}

double dr_said_number(const struct dr_process *process, const char *key)
{
    const char *text = dr_said(process, key);
    char *end;
    if (!text || !*text)
        return NAN;
    const double value = strtod(text, &end);
    return *end || !isfinite(value) ? NAN : value;
}
