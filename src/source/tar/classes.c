/* classes.c - the class names stored in a tar file that `stoker pack` wrote
 *
 * They are a comment in a global PAX header at the start of the file, which tar programs ignore.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/tar/classes.h"
#include "source/packs/classes.h"
#include "source/tar/members.h"

#include <stdlib.h>
#include <string.h>

/* Where the class lines begin in the header's text; NULL: there is no such comment. */
static char *find_comment(char *text)
{
    static const char word[] = " comment=" ST_TAR_CLASSES "\n";
    const size_t digits = strspn(text, "0123456789");
    return digits && !strncmp(text + digits, word, sizeof word - 1) ? text + digits + sizeof word - 1
                                                                    : NULL;
}

static bool read_lines(struct st_cells *out, char *text)
{
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (st_class_read(out, line, strlen(line), NULL))
            return false;
    return true;
}

static int read_classes(struct st_cells *out, const struct st_held *file, struct stoker_error *err)
{
    uint8_t block[ST_TAR_BLOCK];
    if (file->size < 2 * ST_TAR_BLOCK)
        return 0;
    int rc = st_held_read(file, 0, block, sizeof block, err);
    if (rc || block[156] != 'g' || !st_tar_is_header(block))
        return rc;
    block[136] = '\0';
    const uint64_t size = strtoull((const char *)block + 124, NULL, 8);
    if (size > ST_TAR_EXTENSION_MAX || size > file->size - ST_TAR_BLOCK)
        return 0;
    char *text = st_calloc(size + 1, 1);
    rc = text ? st_held_read(file, ST_TAR_BLOCK, text, size, err)
              : st_fail(err, STOKER_ENOMEM, "%s: out of memory", file->path);
    char *lines = rc ? NULL : find_comment(text);
    if (lines && !read_lines(out, lines))
        st_cells_free(out);
    free(text);
    return rc;
}

int st_tar_classes(struct st_cells *out, const struct st_held *file, struct stoker_error *err)
{
    struct st_held again = {0};
    if (file->fd || file->remote)
        return file->fd ? read_classes(out, file, err) : 0;
    int rc = st_held_open(&again, file->path, err); /* not kept open, because there are many */
    if (!rc)
        rc = read_classes(out, &again, err);
    st_held_close(&again);
    return rc;
}
