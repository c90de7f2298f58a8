/* annotated_images.c - the images that a table of annotations names
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/pairs/pairs.h"
#include "source/pairs/partners.h"

int st_pairs_annotated(struct st_pairs *out, const char *root, const struct st_annotated *table,
                       const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    struct st_partners images = {0};
    int rc = st_partners_open(&images, root, NULL, false, opt, err);
    for (uint64_t i = 0; i < table->image_count && !rc; i++) {
        const char *name = st_annotated_name(table, i);
        if (!st_pairs_add(out, (struct st_path_parts){name[0] == '/' ? "" : images.folder, name, ""},
                          (struct st_path_parts){0}))
            rc = st_fail(err, STOKER_ENOMEM, "%s: out of memory", root);
        else
            st_partners_has(&images, st_pairs_image(out, i));
    }
    if (!rc)
        rc = st_partners_check(&images, "image of the annotations is missing",
                               "images of the annotations are missing", "", err);
    st_partners_close(&images);
    return rc;
}
