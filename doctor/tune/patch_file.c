/* patch_file.c - reads and writes the program to be changed
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/err.h"
#include "doctor/tune/patch.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *dr_patch_read(const char *path, size_t *size)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    long length;
    if (!file)
        return NULL;
    if (fseek(file, 0, SEEK_END) == 0 && (length = ftell(file)) >= 0 && length < 16 << 20 &&
        fseek(file, 0, SEEK_SET) == 0 && (text = malloc((size_t)length + 1))) {
        *size = fread(text, 1, (size_t)length, file);
        text[*size] = '\0';
    }
    fclose(file);
    return text;
}

/* Written next to the file and then renamed, so that the program is never incomplete. */
int dr_patch_write(const char *path, const char *text, size_t size, const struct dr_patch *patch,
                   struct stoker_error *err)
{
    char temporary[PATH_MAX];
    struct stat known;
    if (snprintf(temporary, sizeof temporary, "%s.stoker-%d", path, (int)getpid()) >=
        (int)sizeof temporary)
        return st_fail(err, STOKER_EINVAL, "%s: the name is too long", path);
    FILE *file = fopen(temporary, "wxe");
    if (!file)
        return st_fail_errno(err, errno, "cannot write %s", temporary);
    const size_t length = strlen(patch->call);
    bool good = fwrite(text, 1, patch->begin, file) == patch->begin &&
                fwrite(patch->call, 1, length, file) == length &&
                fwrite(text + patch->end, 1, size - patch->end, file) == size - patch->end &&
                stat(path, &known) == 0 && fchmod(fileno(file), known.st_mode & 07777) == 0;
    good = fclose(file) == 0 && good && rename(temporary, path) == 0;
    const int why = errno;
    if (!good) {
        unlink(temporary);
        return st_fail_errno(err, why, "cannot write %s", path);
    }
    return 0;
}
