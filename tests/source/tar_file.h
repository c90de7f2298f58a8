/* tar_file.h - writes tar files for a test, right and wrong ones
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_SOURCE_TAR_FILE_H
#define ST_TESTS_SOURCE_TAR_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Puts the right sum into a header. */
static void tar_seal(uint8_t block[512])
{
    unsigned sum = 8 * ' ';
    for (int i = 0; i < 512; i++)
        sum += i < 148 || i >= 156 ? block[i] : 0;
    snprintf((char *)block + 148, 8, "%06o", sum & 0777777);
    block[155] = ' ';
}

static void tar_header(uint8_t block[512], const char *name, char type, uint64_t size)
{
    memset(block, 0, 512);
    memcpy(block, name, strnlen(name, 100));
    memcpy(block + 100, "0000644", 7);
    snprintf((char *)block + 124, 12, "%011llo", (unsigned long long)size);
    memcpy(block + 136, "00000000000", 11);
    block[156] = (uint8_t)type;
    memcpy(block + 257, "ustar\00000", 8);
    tar_seal(block);
}

static void tar_put(FILE *file, const void *data, size_t size)
{
    if (size && fwrite(data, 1, size, file) != size)
        abort();
}

/* Up to the next block. */
static void tar_pad(FILE *file)
{
    static const uint8_t zeros[512];
    tar_put(file, zeros, (size_t)(512 - ftell(file) % 512) % 512);
}

/* A member with a payload of its own, padded. */
static void tar_member(FILE *file, const char *name, const void *data, size_t size)
{
    uint8_t block[512];
    tar_header(block, name, '0', size);
    tar_put(file, block, sizeof block);
    tar_put(file, data, size);
    tar_pad(file);
}

static inline void tar_end(FILE *file)
{
    static const uint8_t zeros[1024];
    if (fwrite(zeros, 1, sizeof zeros, file) != sizeof zeros || fclose(file))
        abort();
}

/* `count` samples "00017.bin" (of `size` bytes that depend on the number) and "00017.cls" (the number).
 */
static inline void tar_samples(const char *path, unsigned count, size_t size)
{
    FILE *file = fopen(path, "wb");
    uint8_t *data = malloc(size ? size : 1);
    if (!file || !data)
        abort();
    for (unsigned i = 0; i < count; i++) {
        char name[32], label[16];
        memset(data, (int)(i & 255), size);
        snprintf(name, sizeof name, "%05u.bin", i);
        tar_member(file, name, data, size);
        snprintf(name, sizeof name, "%05u.cls", i);
        tar_member(file, name, label, (size_t)snprintf(label, sizeof label, "%u", i));
    }
    free(data);
    tar_end(file);
}

#endif
