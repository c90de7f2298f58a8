/* pairs.c - what src/source/pairs finds in folders, for compare_pairs.py
 *
 *     pairs stems IMAGES TARGETS SUFFIX OPTIONAL EXTENSION...
 *     pairs voc ROOT IMAGE_SET segmentation|detection
 *     pairs pets ROOT SPLIT
 *     pairs cityscapes ROOT SPLIT MODE SUFFIX
 *     pairs coco ROOT FILE
 *
 * The answer is a line of JSON, in which all text is in hexadecimal.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/annotated/coco.h"
#include "source/pairs/pairs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_hex(const char *text)
{
    putchar('"');
    for (; *text; text++)
        printf("%02x", (unsigned char)*text);
    putchar('"');
}

static int find(struct st_pairs *out, int argc, char **argv, struct stoker_error *err)
{
    const char *kind = argv[1];
    if (!strcmp(kind, "stems") && argc > 6) {
        const struct st_stem_options how = {(const char *const *)argv + 6, argv[4], atoi(argv[5]) != 0};
        return st_pairs_stems(out, argv[2], argv[3], &how, NULL, err);
    }
    if (!strcmp(kind, "voc") && argc == 5) {
        const enum st_voc_task task =
            strcmp(argv[4], "detection") ? ST_VOC_SEGMENTATION : ST_VOC_DETECTION;
        return st_pairs_voc(out, argv[2], argv[3], task, NULL, err);
    }
    if (!strcmp(kind, "pets") && argc == 4)
        return st_pairs_pets(out, argv[2], argv[3], NULL, err);
    if (!strcmp(kind, "cityscapes") && argc == 6)
        return st_pairs_cityscapes(out, argv[2], argv[3], argv[4], argv[5], NULL, err);
    if (strcmp(kind, "coco") || argc != 4)
        exit(2);
    struct st_annotated table;
    int rc = st_coco_read(&table, argv[3], false, NULL, err);
    if (!rc)
        rc = st_pairs_annotated(out, argv[2], &table, NULL, err);
    st_annotated_free(&table);
    return rc;
}

int main(int argc, char **argv)
{
    struct st_pairs pairs = {0};
    struct stoker_error err = {0};
    if (argc < 4)
        return 2;
    const int rc = find(&pairs, argc, argv, &err);
    printf("{\"code\": %d, \"error\": ", rc);
    put_hex(err.message);
    printf(", \"pairs\": [");
    for (uint64_t i = 0; i < pairs.count; i++) {
        printf("%s[", i ? ", " : "");
        put_hex(st_pairs_image(&pairs, i));
        printf(", ");
        put_hex(st_pairs_target(&pairs, i));
        printf(", %lld, %lld]", (long long)pairs.list[i].label, (long long)pairs.list[i].group);
    }
    printf("], \"classes\": [");
    for (uint64_t i = 0; i < pairs.classes.count; i++) {
        printf("%s", i ? ", " : "");
        put_hex(st_cells_word(&pairs.classes, i));
    }
    puts("]}");
    st_pairs_free(&pairs);
    return 0;
}
