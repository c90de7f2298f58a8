/* dataset.c - a source with its state, counted by those who hold it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
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
