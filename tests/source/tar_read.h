/* tar_read.h - opens and reads what tar_file.h wrote
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_SOURCE_TAR_READ_H
#define ST_TESTS_SOURCE_TAR_READ_H

#include "source/reader/reader.h"
#include "tap.h"

#include <fcntl.h>
#include <sys/stat.h>

static struct st_buffer buffer, scratch;
static struct stoker_error err;

static inline struct stoker_dataset *open_tar(const char *uri, const char *fields, const char *index_dir)
{
    const struct stoker_dataset_options opt = {
        .size = sizeof opt, .fields = fields, .index_dir = index_dir, .threads = 2};
    struct stoker_dataset *data = NULL;
    err.message[0] = '\0';
    if (st_dataset_open(&data, uri, &opt, &err))
        return NULL;
    return data;
}

static inline int read_pieces(struct stoker_dataset *data, uint64_t sample, struct st_piece *pieces)
{
    struct st_bytes raw;
    err.message[0] = '\0';
    const int rc = st_read_sample(data, sample, &buffer, &raw, &err);
    return rc ? rc : data->source->split(data->self, sample, raw, &scratch, pieces, &err);
}

/* "bin,cls" of tar_samples. */
static inline bool is_sample(struct stoker_dataset *data, uint64_t sample, unsigned number, size_t size)
{
    struct st_piece pieces[2];
    bool good = !read_pieces(data, sample, pieces) && pieces[0].bytes.size == size &&
                pieces[1].whole == (int64_t)number;
    for (size_t i = 0; good && i < size; i++)
        good = pieces[0].bytes.data[i] == (number & 255);
    if (!good)
        note("sample %llu: %s", (unsigned long long)sample, err.message);
    return good;
}

static inline void set_time(const char *path, long seconds)
{
    const struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    if (utimensat(AT_FDCWD, path, times, 0))
        abort();
}

#endif
