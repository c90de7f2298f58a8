/* pairs.h - images and the files that belong to them: masks and annotations, in the layouts of common
 * datasets
 *
 * Paths are the root as given, joined with the rest as Python's os.path.join does. A list is in
 * torchvision's order where that is defined. A file that is missing is an error that names the first
 * ones, and how many there are: torchvision fails when it comes to them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_PAIRS_PAIRS_H
#define ST_SOURCE_PAIRS_PAIRS_H

#include "source/annotated/annotated.h"
#include "source/table/cells.h"

struct st_pair {
    uint64_t image, target; /* paths in `text`; the target's is empty where there is none */
    int64_t label, group;   /* Oxford-IIIT Pet: the breed, and cat (0) or dog (1) */
};

/* Zeroed, it is empty. */
struct st_pairs {
    struct st_pair *list;
    uint64_t count, room;
    struct st_buffer text;   /* NUL-terminated */
    struct st_cells classes; /* names, where the layout has some */
};

static inline const char *st_pairs_image(const struct st_pairs *pairs, uint64_t index)
{
    return (const char *)pairs->text.data + pairs->list[index].image;
}
static inline const char *st_pairs_target(const struct st_pairs *pairs, uint64_t index)
{
    return (const char *)pairs->text.data + pairs->list[index].target;
}
void st_pairs_free(struct st_pairs *pairs); /* safe after a failure, and twice */

/* The images of the pairs, with their labels, or their targets. */
int st_pairs_files(struct stoker_dataset **out, const struct st_pairs *pairs, bool targets,
                   struct stoker_error *err);
/* Moves the names of classes to the dataset. */
int st_pairs_keep_classes(struct stoker_dataset *data, struct st_cells *classes,
                          struct stoker_error *err);

/* ---- layouts: they fill empty pairs ----------------------------------------------------------------
 */

struct st_stem_options {
    const char *const *extensions; /* of targets, in lower case, ending with NULL */
    const char *suffix;            /* of the targets' names, before the extension: "_mask"; NULL: none */
    bool optional; /* images may lack a target, as those without objects do in YOLO's layout */
};
/* The images below one folder, sorted by path, and the files below another with the same path but for
 * the extension. */
int st_pairs_stems(struct st_pairs *out, const char *images, const char *targets,
                   const struct st_stem_options *how, const struct stoker_dataset_options *opt,
                   struct stoker_error *err);

enum st_voc_task { ST_VOC_SEGMENTATION, ST_VOC_DETECTION };
/* `root` is the folder with JPEGImages in it, `image_set` a list in ImageSets/Segmentation or
 * ImageSets/Main without
 * ".txt". In the order of the list, whose empty lines are left out. */
int st_pairs_voc(struct st_pairs *out, const char *root, const char *image_set, enum st_voc_task task,
                 const struct stoker_dataset_options *opt, struct stoker_error *err);

/* Oxford-IIIT Pet: `root` is the folder with images and annotations in it, `split` a list in annotations
 * without ".txt". Targets are trimaps, classes the breeds as torchvision writes them. */
int st_pairs_pets(struct st_pairs *out, const char *root, const char *split,
                  const struct stoker_dataset_options *opt, struct stoker_error *err);

/* Cityscapes: `mode` is "gtFine" or "gtCoarse", `suffix` what targets have in the place of
 * "leftImg8bit.png": "gtFine_labelIds.png". Sorted by city and name: torchvision's order is that in
 * which the file system lists them. Hidden files are left out. */
int st_pairs_cityscapes(struct st_pairs *out, const char *root, const char *split, const char *mode,
                        const char *suffix, const struct stoker_dataset_options *opt,
                        struct stoker_error *err);

/* The images of a table of annotations below a folder, in its order: pair i has the objects of image i.
 */
int st_pairs_annotated(struct st_pairs *out, const char *root, const struct st_annotated *table,
                       const struct stoker_dataset_options *opt, struct stoker_error *err);

/* YOLO: `images` is a folder, or a text file that lists images; `labels` the folder with the label
 * files, NULL where YOLO has it. Folders are sorted by path, a list has its order. Images without
 * objects have no target. */
int st_pairs_yolo(struct st_pairs *out, const char *images, const char *labels,
                  const struct stoker_dataset_options *opt, struct stoker_error *err);

/* ---- for layouts -----------------------------------------------------------------------------------
 */

/* Adds a pair with the paths folder + name + ending; a NULL name is an empty path. */
struct st_path_parts {
    const char *folder, *name, *ending;
};
struct st_pair *st_pairs_add(struct st_pairs *pairs, struct st_path_parts image,
                             struct st_path_parts target);
/* root + "/" + folder + "/", freed by the caller; `folder` may be NULL. NULL if out of memory. */
char *st_pairs_folder(const char *root, const char *folder);

#endif
