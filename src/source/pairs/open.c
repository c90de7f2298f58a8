/* open.c - opens images and their masks or boxes in the layouts of common datasets
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/pairs/boxed.h"
#include "source/pairs/pairs.h"

static const char *const mask_extensions[] = {".png", ".bmp", ".tif", ".tiff", ".gif", NULL};

static int find(struct st_pairs *out, const struct stoker_pairs *how,
                const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    const struct st_stem_options stems = {.extensions = mask_extensions, .suffix = how->suffix};
    switch (how->layout) {
    case STOKER_PAIRS_STEMS:
        return st_pairs_stems(out, how->images, how->targets, &stems, opt, err);
    case STOKER_PAIRS_VOC:
        return st_pairs_voc(out, how->images, how->set, ST_VOC_SEGMENTATION, opt, err);
    case STOKER_PAIRS_PETS:
        return st_pairs_pets(out, how->images, how->set, opt, err);
    default:
        return st_pairs_cityscapes(out, how->images, how->set, how->mode ? how->mode : "gtFine",
                                   how->suffix ? how->suffix : "gtFine_labelIds.png", opt, err);
    }
}

static int open_masks(struct stoker_dataset **out, const struct stoker_pairs *how,
                      const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    struct st_pairs pairs = {0};
    struct stoker_dataset *images = NULL, *masks = NULL, *data = NULL;
    int rc = find(&pairs, how, opt, err);
    if (!rc)
        rc = st_pairs_files(&images, &pairs, false, err);
    if (!rc)
        rc = st_pairs_files(&masks, &pairs, true, err);
    if (!rc)
        rc = st_dataset_paired(&data, images, masks, how->layout == STOKER_PAIRS_PETS, err);
    if (!rc && pairs.classes.count)
        rc = st_pairs_keep_classes(data, &pairs.classes, err);
    if (rc)
        st_dataset_drop(data);
    else
        *out = data;
    st_dataset_drop(images);
    st_dataset_drop(masks);
    st_pairs_free(&pairs);
    return rc;
}

int st_dataset_from_pairs(struct stoker_dataset **out, const struct stoker_pairs *how,
                          const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    const bool yolo = how->layout == STOKER_PAIRS_YOLO; /* which needs neither */
    const bool boxes = yolo || how->layout == STOKER_PAIRS_COCO || how->layout == STOKER_PAIRS_VOC_BOXES;
    const bool files = how->layout == STOKER_PAIRS_COCO || how->layout == STOKER_PAIRS_STEMS;
    if (how->layout > STOKER_PAIRS_YOLO)
        return st_fail(err, STOKER_EINVAL, "layout is %u; allowed are 0 to %u", (unsigned)how->layout,
                       STOKER_PAIRS_YOLO);
    if (how->masks > STOKER_SHAPES_CLASSES)
        return st_fail(err, STOKER_EINVAL, "masks is %u; allowed are 0 to %u", (unsigned)how->masks,
                       STOKER_SHAPES_CLASSES);
    if (yolo && how->points && (how->point_numbers < 2 || how->point_numbers > 3 || how->masks))
        return st_fail(err, STOKER_EINVAL,
                       "key points have 2 or 3 numbers each, and lines with key points have no masks");
    if (!how->images || !(yolo || (files ? how->targets : how->set)))
        return st_fail(err, STOKER_EINVAL, "stoker_dataset_from_pairs: %s is missing",
                       !how->images ? "images"
                       : files      ? "targets"
                                    : "set");
    return (boxes ? st_boxed_open : open_masks)(out, how, opt, err);
}
