/* fuzz_record.c - TFRecord files and what is in their records
 *
 * The input is a file of frames, whose checksums are put right first, and also a record by itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/checksum/crc32c.h"
#include "source/tfrecord/example.h"
#include "source/tfrecord/frames.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_sum(uint8_t *at, const uint8_t *data, size_t size)
{
    const uint32_t crc = st_crc32c(data, size), masked = (crc >> 15 | crc << 17) + 0xa282ead8u;
    memcpy(at, &masked, sizeof masked);
}

static void read_feature(const struct st_feature *feature)
{
    if (feature->count > 1u << 20) /* cannot be: each value takes a byte at least */
        abort();
    int64_t *ints = calloc(feature->count + 1, sizeof *ints);
    float *floats = calloc(feature->count + 1, sizeof *floats);
    if (ints && floats && feature->kind == ST_FEATURE_INTS)
        st_feature_ints(feature, ints);
    if (ints && floats && feature->kind == ST_FEATURE_FLOATS)
        st_feature_floats(feature, floats);
    free(ints);
    free(floats);
}

static void read_record(struct st_bytes record)
{
    static const char *const names[] = {"box", "ids", "tokens", "image/encoded", "frames", ""};
    struct st_feature features[16];
    uint32_t count;
    if (!st_example_list(record, features, 16, &count))
        for (uint32_t i = 0; i < count; i++)
            read_feature(&features[i]);
    for (int i = 0; i < 6; i++)
        features[i].name = (struct st_bytes){(const uint8_t *)names[i], strlen(names[i])};
    if (!st_example_find(record, features, 6))
        for (int i = 0; i < 6; i++)
            if (features[i].found)
                read_feature(&features[i]);
}

static void seal(uint8_t *bytes, size_t size)
{
    for (size_t at = 0; size - at >= ST_RECORD_FRAME;) {
        uint64_t length;
        put_sum(bytes + at + 8, bytes + at, 8);
        if (!st_record_length(bytes + at, &length) || length > size - at - ST_RECORD_FRAME)
            break;
        put_sum(bytes + at + ST_RECORD_HEAD + length, bytes + at + ST_RECORD_HEAD, length);
        at += ST_RECORD_FRAME + length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = malloc(size ? size : 1);
    if (!bytes)
        return 0;
    memcpy(bytes, data, size);
    seal(bytes, size);
    read_record((struct st_bytes){data, size});
    struct st_window window = {.path = "fuzz", .memory = bytes, .end = size};
    struct st_shard_builder builder = {0};
    if (!st_shard_kind_record.scan(&window, 1, &builder, NULL))
        for (uint64_t i = 0; i < builder.part_count; i++) {
            const struct st_shard_part *part = &builder.parts[i];
            struct st_bytes record;
            if (part->end <= size &&
                !st_record_open((struct st_bytes){bytes + part->start, part->end - part->start},
                                &record))
                read_record(record);
        }
    st_shard_builder_free(&builder);
    builder = (struct st_shard_builder){0};
    st_shard_kind_record.import(&window, (struct st_bytes){data, size}, &builder);
    st_shard_builder_free(&builder);
    free(bytes);
    return 0;
}
