/* place.c - refuses to write a pack into its own source
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/pack.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The folder of "kind:path" or of a path, with links resolved; NULL: it is not a folder. */
static char *source_folder(const char *source)
{
    struct stat status;
    const char *colon = strchr(source, ':');
    char *path = realpath(source, NULL);
    if (!path && colon)
        path = realpath(colon + 1, NULL);
    if (path && (stat(path, &status) || !S_ISDIR(status.st_mode))) {
        free(path);
        path = NULL;
    }
    return path;
}

/* The same for a folder that may not exist yet: then for its parent. */
static char *target_folder(const char *folder)
{
    char above[PATH_MAX];
    char *path = realpath(folder, NULL);
    size_t size = strlen(folder);
    if (path || size >= sizeof above)
        return path;
    memcpy(above, folder, size + 1);
    while (size && above[size - 1] == '/')
        above[--size] = '\0';
    char *slash = strrchr(above, '/');
    if (!slash)
        return realpath(".", NULL);
    slash[slash == above] = '\0';
    return realpath(above, NULL);
}

int pack_place_check(const struct pack_options *opt, struct stoker_error *err)
{
    char *source = source_folder(opt->source), *target = target_folder(opt->folder);
    const size_t size = source ? strlen(source) : 0;
    const bool inside = source && target && !strncmp(target, source, size) &&
                        (target[size] == '\0' || target[size] == '/' || source[size - 1] == '/');
    free(source);
    free(target);
    return inside ? st_fail(err, STOKER_EINVAL,
                            "%.300s is inside %.300s, the dataset to be packed, and would change it: "
                            "choose a folder elsewhere",
                            opt->folder, opt->source)
                  : STOKER_OK;
}
