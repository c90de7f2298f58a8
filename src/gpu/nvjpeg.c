/* nvjpeg.c - finds and opens nvJPEG at run time
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/nvjpeg.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const int versions[] = {13, 12};
enum { VERSIONS = sizeof versions / sizeof *versions };

/* What was tried, for the message. */
struct tried {
    char text[700];
    size_t length;
};

static void *try_open(const char *path, struct tried *tried)
{
    /* Never unloaded: CUDA's libraries register code that runs at exit. */
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library && tried->length < sizeof tried->text) {
        const size_t room = sizeof tried->text - tried->length;
        const int wrote =
            snprintf(tried->text + tried->length, room, "%s%s", tried->length ? ", " : "", path);
        tried->length += wrote > 0 ? (size_t)wrote : 0;
    }
    return library;
}

/* The folder of the CUDA runtime that this process has loaded, with a trailing slash. */
static bool runtime_folder(int version, char folder[PATH_MAX])
{
    char name[64];
    struct link_map *map = NULL;
    snprintf(name, sizeof name, "libcudart.so.%d", version);
    void *runtime = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
    if (!runtime)
        return false;
    const char *slash =
        !dlinfo(runtime, RTLD_DI_LINKMAP, &map) && map ? strrchr(map->l_name, '/') : NULL;
    const bool found = slash && slash - map->l_name + 1 < PATH_MAX - 64;
    if (found)
        snprintf(folder, PATH_MAX, "%.*s", (int)(slash - map->l_name + 1), map->l_name);
    dlclose(runtime);
    return found;
}

static void *find(struct tried *tried)
{
    char path[PATH_MAX + 64], folder[PATH_MAX];
    void *library = NULL;
    for (int k = 0; !library && k < VERSIONS; k++) {
        snprintf(path, sizeof path, "libnvjpeg.so.%d", versions[k]);
        library = try_open(path, tried);
    }
    for (int k = 0; !library && k < VERSIONS; k++) {
        if (!runtime_folder(versions[k], folder))
            continue;
        snprintf(path, sizeof path, "%slibnvjpeg.so.%d", folder, versions[k]);
        library = try_open(path, tried);
        if (!library) {
            snprintf(path, sizeof path, "%s../../nvjpeg/lib/libnvjpeg.so.%d", folder, versions[k]);
            library = try_open(path, tried);
        }
    }
    for (int k = 0; !library && k < VERSIONS; k++) {
        snprintf(path, sizeof path, "/usr/local/cuda/lib64/libnvjpeg.so.%d", versions[k]);
        library = try_open(path, tried);
    }
    return library;
}

int st_nvjpeg_load(struct st_nvjpeg *out, const char *path, struct stoker_error *err)
{
    struct tried tried = {0};
    const char *absent = NULL;
    memset(out, 0, sizeof *out);
    out->library = path ? try_open(path, &tried) : find(&tried);
    if (!out->library)
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "nvJPEG is not installed (tried %s): install nvidia-nvjpeg from PyPI",
                       tried.text);
#define X(name, symbol, arguments)                                                                      \
    out->name = (int(*) arguments)(uintptr_t)dlsym(out->library, #symbol);                              \
    absent = out->name ? absent : #symbol;
    ST_NVJPEG_MAP(X)
#undef X
#define X(name, symbol, arguments)                                                                      \
    out->name = (int(*) arguments)(uintptr_t)dlsym(out->library, #symbol);
    ST_NVJPEG_MORE(X)
#undef X
    if (absent) {
        st_nvjpeg_unload(out);
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "the installed nvJPEG has no %s: version 12.0 or newer is required", absent);
    }
    for (int k = 0; k < 3; k++)
        if (out->GetProperty(k, &out->version[k]) != ST_NVJPEG_SUCCESS)
            out->version[k] = 0;
    return STOKER_OK;
}

void st_nvjpeg_unload(struct st_nvjpeg *nvjpeg)
{
    if (nvjpeg->library)
        dlclose(nvjpeg->library);
    nvjpeg->library = NULL;
}

const char *st_nvjpeg_status(int status)
{
    static const char *const names[] = {
        "no error",
        "not initialised",
        "invalid parameter",
        "bad JPEG",
        "unsupported JPEG",
        "out of memory",
        "execution failed",
        "architecture mismatch",
        "internal error",
        "not supported by this GPU or build",
        "incomplete data",
    };
    return status >= 0 && status < (int)(sizeof names / sizeof *names) ? names[status]
                                                                       : "unknown status";
}
