/* others.c - what else a folder without samples contains, for the error message
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/location.h"
#include "source/text/names.h"
#include "source/index/scan.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

enum {
    LOOKED_AT = 10000, /* entries: a sentence is not worth reading a million names */
    EXTENSIONS = 32,
    LONGEST = 12, /* of an extension, with its dot and the final NUL */
};

/* Images of kinds that no codec decodes. */
static const char *const foreign[] = {".gif", ".avif", ".heic", ".heif", ".jxl", ".jp2", ".j2k",
                                      ".svg", ".psd",  ".exr",  ".hdr",  ".dds", ".qoi", ".dcm",
                                      ".raw", ".dng",  ".cr2",  ".nef",  ".arw", NULL};

struct others {
    struct {
        char name[LONGEST];
        uint32_t files;
    } found[EXTENSIONS];
    uint32_t count, looked_at;
};

static void count_file(struct others *others, const char *name)
{
    const char *dot = strrchr(name, '.');
    if (!dot || dot == name || !dot[1] || strlen(dot) >= LONGEST)
        return;
    char lower[LONGEST] = "";
    for (size_t i = 0; dot[i]; i++)
        lower[i] = dot[i] >= 'A' && dot[i] <= 'Z' ? (char)(dot[i] + ('a' - 'A')) : dot[i];
    uint32_t k = 0;
    while (k < others->count && strcmp(others->found[k].name, lower) != 0)
        k++;
    if (k == EXTENSIONS)
        return;
    if (k == others->count)
        memcpy(others->found[others->count++].name, lower, sizeof lower);
    others->found[k].files++;
}

/* Counts the files of a folder that are not samples; `depth` levels of folders below it are looked into.
 */
static void count_folder(struct others *others, const char *folder, const char *const *samples,
                         int depth)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    char path[PATH_MAX];
    while (dir && others->looked_at < LOOKED_AT && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.')
            continue;
        others->looked_at++;
        if (entry->d_type == DT_DIR) {
            if (depth && st_path_join(path, folder, "/", entry->d_name))
                count_folder(others, path, samples, depth - 1);
        } else if (!st_name_has_extension(entry->d_name, strlen(entry->d_name), samples)) {
            count_file(others, entry->d_name);
        }
    }
    if (dir)
        closedir(dir);
}

void st_others_hint(const char *folder, const char *const *samples, char *out, size_t size)
{
    struct others others = {0};
    uint32_t most = 0;
    out[0] = '\0';
    count_folder(&others, folder, samples, 2);
    for (uint32_t k = 1; k < others.count; k++)
        most = others.found[k].files > others.found[most].files ? k : most;
    if (!others.count)
        return;
    const char *name = others.found[most].name;
    const bool image = st_name_has_extension(name, strlen(name), foreign);
    snprintf(out, size, "; it contains %s files%s", name,
             image ? ", which Stoker does not read: convert them to JPEG, PNG or WebP" : "");
}
