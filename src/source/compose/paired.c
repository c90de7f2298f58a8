/* paired.c - images of one dataset with the masks of another, sample by sample
 *
 * The reader fetches images ahead. Masks, which are small, are read when they are needed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/text.h"
#include "source/kinds.h"
#include "source/reader/reader.h"

struct paired {
    struct stoker_dataset *images, *masks;
    bool labelled;
};

enum { IMAGE, MASK, LABEL, FIELDS };
static const struct st_field paired_field[FIELDS] = {
    [IMAGE] = {.name = "image", .kind = ST_FIELD_IMAGE, .dtype = STOKER_DTYPE_U8},
    [MASK] = {.name = "mask", .kind = ST_FIELD_IMAGE, .dtype = STOKER_DTYPE_U8},
    [LABEL] = {.name = "label", .kind = ST_FIELD_INT},
};

static uint64_t paired_count(const void *self)
{
    return st_dataset_count(((const struct paired *)self)->images);
}

static int64_t paired_label(const void *self, uint64_t sample)
{
    return st_dataset_label(((const struct paired *)self)->images, sample);
}

static size_t paired_name(const void *self, uint64_t sample, char *buffer, size_t size)
{
    return st_dataset_name(((const struct paired *)self)->images, sample, buffer, size);
}

static int paired_locate(const void *self, uint64_t sample, struct st_extent *out,
                         struct stoker_error *err)
{
    const struct stoker_dataset *images = ((const struct paired *)self)->images;
    return images->source->locate(images->self, sample, out, err);
}

static const struct st_field *paired_fields(const void *self, uint32_t *count)
{
    *count = ((const struct paired *)self)->labelled ? FIELDS : LABEL;
    return paired_field;
}

static int paired_split(const void *self, uint64_t sample, struct st_bytes raw,
                        struct st_buffer *scratch, struct st_piece *pieces, struct stoker_error *err)
{
    const struct paired *paired = self;
    pieces[IMAGE] = (struct st_piece){.bytes = raw};
    pieces[MASK] = (struct st_piece){0};
    if (paired->labelled)
        pieces[LABEL] = (struct st_piece){.whole = paired_label(self, sample)};
    const int rc = st_read_sample(paired->masks, sample, scratch, &pieces[MASK].bytes, err);
    if (rc) {
        char name[512];
        st_dataset_name(paired->masks, sample, name, sizeof name);
        return st_fail_in(err, rc, name);
    }
    return 0;
}

static uint32_t paired_class_count(const void *self)
{
    return st_dataset_class_count(((const struct paired *)self)->images);
}

static const char *paired_class_name(const void *self, uint32_t index)
{
    return st_dataset_class_name(((const struct paired *)self)->images, index);
}

static uint64_t paired_memory(const void *self)
{
    const struct paired *paired = self;
    return st_dataset_memory(paired->images) + st_dataset_memory(paired->masks);
}

static void paired_close(void *self)
{
    struct paired *paired = self;
    st_dataset_drop(paired->images);
    st_dataset_drop(paired->masks);
}

static const struct st_source st_source_paired = {
    .scheme = "paired",
    .self_size = sizeof(struct paired),
    .count = paired_count,
    .label = paired_label,
    .name = paired_name,
    .locate = paired_locate,
    .fields = paired_fields,
    .split = paired_split,
    .class_count = paired_class_count,
    .class_name = paired_class_name,
    .memory = paired_memory,
    .close = paired_close,
};

int st_dataset_paired(struct stoker_dataset **out, struct stoker_dataset *images,
                      struct stoker_dataset *masks, bool labelled, struct stoker_error *err)
{
    const uint64_t count = st_dataset_count(images), other = st_dataset_count(masks);
    if (images->source->fields || masks->source->fields || !images->source->locate)
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "images and masks can be paired if both datasets are files of images; samples "
                       "with fields have their masks among these");
    if (count != other)
        return st_fail(err, STOKER_EINVAL, "%llu image%s cannot be paired with %llu mask%s",
                       (unsigned long long)count, st_s(count), (unsigned long long)other, st_s(other));
    struct stoker_dataset *data = st_dataset_new(&st_source_paired);
    if (!data)
        return st_fail(err, STOKER_ENOMEM, "no memory for a dataset");
    *(struct paired *)data->self =
        (struct paired){st_dataset_hold(images), st_dataset_hold(masks), labelled};
    *out = data;
    return 0;
}
