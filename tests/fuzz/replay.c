/* replay.c - a fuzz target as a plain test: runs every file of the folder given
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool replay(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    uint8_t *data =
        malloc(size > 0 ? (size_t)size : 1); /* of the exact size: a sanitizer sees every overrun */
    const bool whole = size >= 0 && data && fread(data, 1, (size_t)size, file) == (size_t)size;
    fclose(file);
    if (whole)
        LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    return whole;
}

int main(int argc, char **argv)
{
    struct dirent **names = NULL;
    const int count = argc == 2 ? scandir(argv[1], &names, NULL, alphasort) : -1;
    if (!ok(count > 2, "there is a corpus%s%s", count < 0 ? ": " : "", count < 0 ? strerror(errno) : ""))
        return done_testing();
    for (int k = 0; k < count; k++) {
        if (names[k]->d_name[0] != '.')
            ok(replay(argv[1], names[k]->d_name), "%s", names[k]->d_name);
        free(names[k]);
    }
    free(names);
    return done_testing();
}
