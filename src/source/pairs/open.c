/* open.c - opens images and their masks in the layouts of common datasets
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/pairs/pairs.h"

#include <stdlib.h>

static const char *const mask_extensions[] = {".png", ".bmp", ".tif", ".tiff", ".gif", NULL};

static int find(struct st_pairs *out, const struct stoker_pairs *how,
                const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    const struct st_stem_options stems = {.extensions = mask_extensions, .suffix = how->suffix};
    const char *const needed = how->layout == STOKER_PAIRS_STEMS ? how->masks : how->set;
    if (!how->images || !needed)
        return st_fail(err, STOKER_EINVAL, "stoker_dataset_from_pairs: %s is missing",
                       !how->images                        ? "images"
                       : how->layout == STOKER_PAIRS_STEMS ? "masks"
                                                           : "set");
    switch (how->layout) {
    case STOKER_PAIRS_STEMS:
        return st_pairs_stems(out, how->images, how->masks, &stems, opt, err);
    case STOKER_PAIRS_VOC:
        return st_pairs_voc(out, how->images, how->set, ST_VOC_SEGMENTATION, opt, err);
    case STOKER_PAIRS_PETS:
        return st_pairs_pets(out, how->images, how->set, opt, err);
    case STOKER_PAIRS_CITYSCAPES:
        return st_pairs_cityscapes(out, how->images, how->set, how->mode ? how->mode : "gtFine",
                                   how->suffix ? how->suffix : "gtFine_labelIds.png", opt, err);
    }
    return st_fail(err, STOKER_EINVAL, "layout is %u; allowed are 0 to %u", (unsigned)how->layout,
                   STOKER_PAIRS_CITYSCAPES);
}

/* The images of the pairs, with their labels, or their targets. */
static int list_files(struct stoker_dataset **out, const struct st_pairs *pairs, bool targets,
                      struct stoker_error *err)
{
    const char **paths = st_calloc(pairs->count, sizeof *paths);
    int64_t *labels = st_calloc(pairs->count, sizeof *labels);
    int rc = 0;
    if ((!paths || !labels) && pairs->count)
        rc = st_fail(err, STOKER_ENOMEM, "no memory for %llu paths", (unsigned long long)pairs->count);
    for (uint64_t k = 0; !rc && k < pairs->count; k++) {
        paths[k] = targets ? st_pairs_target(pairs, k) : st_pairs_image(pairs, k);
        labels[k] = pairs->list[k].label;
    }
    if (!rc)
        rc = st_dataset_from_files(out, paths, labels, pairs->count, err);
    free(paths);
    free(labels);
    return rc;
}

static int keep_classes(struct stoker_dataset *data, struct st_pairs *pairs, struct stoker_error *err)
{
    data->classes = st_calloc(1, sizeof *data->classes);
    if (!data->classes) {
        st_dataset_drop(data);
        return st_fail(err, STOKER_ENOMEM, "no memory for the names of classes");
    }
    *data->classes = pairs->classes;
    pairs->classes = (struct st_cells){0};
    return 0;
}

int st_dataset_from_pairs(struct stoker_dataset **out, const struct stoker_pairs *how,
                          const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    struct st_pairs pairs = {0};
    struct stoker_dataset *images = NULL, *masks = NULL;
    int rc = find(&pairs, how, opt, err);
    if (!rc)
        rc = list_files(&images, &pairs, false, err);
    if (!rc)
        rc = list_files(&masks, &pairs, true, err);
    if (!rc)
        rc = st_dataset_paired(out, images, masks, how->layout == STOKER_PAIRS_PETS, err);
    if (!rc && pairs.classes.count)
        rc = keep_classes(*out, &pairs, err);
    st_dataset_drop(images);
    st_dataset_drop(masks);
    st_pairs_free(&pairs);
    return rc;
}
