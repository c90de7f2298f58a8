/* dataset.c - a source with its state, counted by those who hold it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/held.h"
#include "source/kinds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct stoker_dataset *st_dataset_new(const struct st_source *source)
{
    struct stoker_dataset *data = st_calloc(1, sizeof *data);
    if (!data)
        return NULL;
    data->source = source;
    data->self = st_calloc(1, source->self_size);
    atomic_init(&data->holders, 1);
    if (!data->self) {
        free(data);
        return NULL;
    }
    return data;
}

/* The kind that "scheme:..." names, and where its path begins; NULL when no kind has that name. */
static const struct st_source *kind_of(const char *uri, const char **path)
{
    for (const struct st_source *const *kind = st_sources; *kind; kind++) {
        const size_t size = strlen((*kind)->scheme);
        if (!strncmp(uri, (*kind)->scheme, size) && uri[size] == ':') {
            *path = uri + size + 1;
            return *kind;
        }
    }
    return NULL;
}

/* The kind that a path without a scheme looks like; NULL when it looks like none. */
static const struct st_source *kind_that_suits(const char *path, const uint8_t *head, size_t size)
{
    for (const struct st_source *const *kind = st_sources; *kind; kind++)
        if ((*kind)->suits && (*kind)->suits(path, head, size))
            return *kind;
    return NULL;
}

static const struct st_source *kind_by_look(const char *path)
{
    uint8_t head[4096];
    size_t size = 0;
    struct st_held file = {0};
    if (!st_held_open(&file, path, NULL)) {
        size = file.size < sizeof head ? file.size : sizeof head;
        if (st_held_read(&file, 0, head, size, NULL))
            size = 0;
    }
    st_held_close(&file);
    return kind_that_suits(path, head, size);
}

/* The kind of what a URL names: by its name, for which no server need be asked, or by its first bytes.
 */
static int kind_of_remote(const struct st_source **out, const char *url,
                          const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    char name[PATH_MAX];
    uint8_t head[4096];
    struct st_held file = {0};
    if (snprintf(name, sizeof name, "%.*s", (int)strcspn(url, "?#"), url) >= (int)sizeof name)
        return st_fail(err, STOKER_EINVAL, "%.300s...: the URL is too long", url);
    *out = kind_that_suits(name, head, 0);
    if (*out)
        return 0;
    int rc = st_held_open_any(&file, url, NULL, opt, err);
    const size_t size = file.size < sizeof head ? file.size : sizeof head;
    if (!rc)
        rc = st_held_read(&file, 0, head, size, err);
    st_held_close(&file);
    if (!rc && !(*out = kind_that_suits(name, head, size)))
        rc = st_fail(err, STOKER_EUNSUPPORTED,
                     "%.700s: neither name nor content tell what kind of data set it is; "
                     "write tar:URL, or another kind",
                     name);
    return rc;
}

static bool looks_like_scheme(const char *uri)
{
    const size_t size = strspn(uri, "abcdefghijklmnopqrstuvwxyz0123456789+");
    return size > 0 && uri[size] == ':' && access(uri, F_OK);
}

int st_dataset_open(struct stoker_dataset **out, const char *uri,
                    const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    const struct stoker_dataset_options defaults = {.size = sizeof defaults};
    const char *path = uri;
    const struct st_source *kind = kind_of(uri, &path);
    if (!kind && st_remote_is_url(uri)) {
        const int rc = kind_of_remote(&kind, uri, opt, err);
        if (rc)
            return rc;
    }
    if (!kind && looks_like_scheme(uri)) {
        char known[200] = "";
        for (size_t i = 0, at = 0; st_sources[i] && at < sizeof known; i++)
            at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", i ? ", " : "",
                                   st_sources[i]->scheme);
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "%s: no such folder, and no such kind of data set; this "
                       "build knows %s",
                       uri, known);
    }
    if (!kind)
        kind = kind_by_look(path);
    struct stoker_dataset *data = st_dataset_new(kind ? kind : st_sources[0]);
    if (!data)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", uri);
    const int rc = data->source->open(data->self, path, opt ? opt : &defaults, err);
    if (rc)
        st_dataset_drop(data);
    else
        *out = data;
    return rc;
}

struct stoker_dataset *st_dataset_hold(struct stoker_dataset *data)
{
    atomic_fetch_add(&data->holders, 1);
    return data;
}

void st_dataset_drop(struct stoker_dataset *data)
{
    if (!data || atomic_fetch_sub(&data->holders, 1) != 1)
        return;
    data->source->close(data->self);
    free(data->self);
    free(data);
}

uint64_t st_dataset_count(const struct stoker_dataset *data) { return data->source->count(data->self); }

int64_t st_dataset_label(const struct stoker_dataset *data, uint64_t sample)
{
    return sample < st_dataset_count(data) ? data->source->label(data->self, sample) : 0;
}

size_t st_dataset_name(const struct stoker_dataset *data, uint64_t sample, char *buffer, size_t size)
{
    if (sample < st_dataset_count(data))
        return data->source->name(data->self, sample, buffer, size);
    return st_name_by_number(data->self, sample, buffer, size);
}

uint64_t st_dataset_memory(const struct stoker_dataset *data)
{
    return data->source->memory ? data->source->memory(data->self) : 0;
}

int64_t st_label_zero(const void *self, uint64_t sample)
{
    (void)self, (void)sample;
    return 0;
}

size_t st_name_by_number(const void *self, uint64_t sample, char *buffer, size_t size)
{
    (void)self;
    const int length = snprintf(buffer, size, "sample %llu", (unsigned long long)sample);
    return length > 0 ? (size_t)length : 0;
}
