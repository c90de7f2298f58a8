/* lists.c - text files that list the samples of a dataset, a line each
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/pairs/lists.h"
#include "source/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* `text` ends with a NUL. */
static int read_lines(char *text, const char *path, st_list_line *each, void *context,
                      struct stoker_error *err)
{
    int rc = 0;
    unsigned long long number = 0;
    for (char *next; text && !rc; text = next) {
        char *end = strchr(text, '\n');
        next = end ? end + 1 : NULL;
        end = end ? end : text + strlen(text);
        while (text < end && is_blank(*text))
            text++;
        while (end > text && is_blank(end[-1]))
            end--;
        *end = '\0';
        number++;
        if (*text)
            rc = each(context, text, number, err);
    }
    return rc ? st_fail_in(err, rc, path) : 0;
}

int st_list_read(const char *folder, const char *name, st_list_line *each, void *context,
                 struct stoker_error *err)
{
    enum { LARGEST = 1 << 28 };
    char *path;
    if (asprintf(&path, "%s%s.txt", folder, name) < 0)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", folder);
    struct st_held file;
    struct st_buffer text = {0};
    int rc = st_held_open(&file, path, err);
    if (!rc)
        rc = st_load(&text, &file, LARGEST, err);
    if (!rc && !st_buffer_keep(&text, text.size + 1))
        rc = st_fail(err, STOKER_ENOMEM, "%s: out of memory", path);
    if (!rc && memchr(text.data, '\0', text.size))
        rc = st_fail(err, STOKER_ECORRUPT, "%s: a NUL character in it: it is no list", path);
    if (!rc) {
        text.data[text.size] = '\0';
        rc = read_lines((char *)text.data, path, each, context, err);
    }
    st_buffer_free(&text);
    st_held_close(&file);
    free(path);
    return rc;
}
