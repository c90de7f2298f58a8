/* voc_lists.c - the images that the lists of Pascal VOC name, with their masks or annotations
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/pairs/lists.h"
#include "source/pairs/pairs.h"
#include "source/pairs/partners.h"

#include <stdlib.h>

struct reading {
    struct st_pairs *out;
    struct st_partners images, targets;
    const char *ending;
};

static int add_line(void *context, char *line, unsigned long long number, struct stoker_error *err)
{
    struct reading *r = context;
    if (!st_pairs_add(r->out, (struct st_path_parts){r->images.folder, line, ".jpg"},
                      (struct st_path_parts){r->targets.folder, line, r->ending}))
        return st_fail(err, STOKER_ENOMEM, "out of memory at line %llu", number);
    st_partners_has(&r->images, st_pairs_image(r->out, r->out->count - 1));
    st_partners_has(&r->targets, st_pairs_target(r->out, r->out->count - 1));
    return 0;
}

int st_pairs_voc(struct st_pairs *out, const char *root, const char *image_set, enum st_voc_task task,
                 const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    const bool masks = task == ST_VOC_SEGMENTATION;
    struct reading r = {.out = out, .ending = masks ? ".png" : ".xml"};
    char *images = st_pairs_folder(root, "JPEGImages"),
         *lists = st_pairs_folder(root, masks ? "ImageSets/Segmentation" : "ImageSets/Main");
    char *targets = st_pairs_folder(root, masks ? "SegmentationClass" : "Annotations");
    int rc = images && lists && targets ? 0 : st_fail(err, STOKER_ENOMEM, "%s: out of memory", root);
    if (!rc)
        rc = st_partners_open(&r.images, images, NULL, false, opt, err);
    if (!rc)
        rc = st_partners_open(&r.targets, targets, NULL, false, opt, err);
    if (!rc)
        rc = st_list_read(lists, image_set, add_line, &r, err);
    if (!rc)
        rc = st_partners_check(&r.images, "listed image is missing", "listed images are missing", "",
                               err);
    if (!rc)
        rc = st_partners_check(&r.targets, "file of a listed image is missing",
                               "files of listed images are missing", "", err);
    st_partners_close(&r.images);
    st_partners_close(&r.targets);
    free(images);
    free(lists);
    free(targets);
    return rc;
}
