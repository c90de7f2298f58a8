/* fuzz_source.c - a file that somebody sent: SCHEME is the kind of dataset it is opened as
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/reader/reader.h"
#include "source/reader/ring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SAMPLES = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void touch(const struct st_field *fields, const struct st_piece *pieces, uint32_t count)
{
    volatile uint64_t sum = 0;
    for (uint32_t k = 0; k < count; k++)
        if (fields[k].kind != ST_FIELD_INT && fields[k].kind != ST_FIELD_FLOAT)
            for (size_t i = 0; i < pieces[k].bytes.size; i++)
                sum += pieces[k].bytes.data[i];
}

static void read_some(struct stoker_dataset *set)
{
    const uint64_t count = st_dataset_count(set) < SAMPLES ? st_dataset_count(set) : SAMPLES;
    struct st_buffer buffer = {0}, scratch = {0};
    uint32_t field_count;
    const struct st_field *fields = set->source->fields(set->self, &field_count);
    char name[200];
    for (uint64_t i = 0; i < count; i++) {
        struct st_piece pieces[ST_FIELDS_MAX];
        struct st_bytes raw = {0};
        struct st_extent extent;
        st_dataset_name(set, i, name, sizeof name);
        st_dataset_label(set, i);
        /* A manifest's files are not for us to open. */
        const int rc =
            NAMES_FILES ? st_locate(set, i, &extent, NULL) : st_read_sample(set, i, &buffer, &raw, NULL);
        if (!rc && !set->source->split(set->self, i, raw, &scratch, pieces, NULL))
            touch(fields, pieces, field_count);
    }
    st_buffer_free(&buffer);
    st_buffer_free(&scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stoker_dataset *set = NULL;
    char uri[60];
    const int fd = memfd_create("input", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(uri, sizeof uri, SCHEME ":/proc/self/fd/%d", fd);
    if (!st_dataset_open(&set, uri, NULL, NULL))
        read_some(set);
    st_dataset_drop(set);
    close(fd);
    return 0;
}
