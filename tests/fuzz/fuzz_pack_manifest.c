/* fuzz_pack_manifest.c - the manifest in a folder that `stoker pack` is to go on with
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/pack.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[200], file[220];

static void remove_folder(void)
{
    unlink(file);
    rmdir(folder);
}

static void make_folder(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.150s/stoker-fuzz-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder))
        abort();
    snprintf(file, sizeof file, "%s/" ST_PACK_MANIFEST, folder);
    atexit(remove_folder);
}

/* What the rest of the program relies on. */
static void check(const struct st_pack *manifest)
{
    uint64_t next = 0;
    for (uint64_t i = 0; i < manifest->shard_count; i++) {
        const struct st_pack_shard *shard = &manifest->shards[i];
        if (!memchr(shard->name, '\0', sizeof shard->name) || !shard->name[0] ||
            strchr(shard->name, '/'))
            abort(); /* a file outside the folder */
        if (shard->first != next || shard->samples > shard->positions)
            abort();
        next += shard->positions;
    }
    if (!manifest->settings || manifest->positions != next)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct st_pack manifest = {0};
    if (!folder[0])
        make_folder();
    const int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    close(fd);
    if (!st_pack_read(&manifest, folder, NULL))
        check(&manifest);
    st_pack_free(&manifest);
    return 0;
}
