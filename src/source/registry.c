/* registry.c - the kinds of source that a URI can name
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/kinds.h"

const struct st_source *const st_sources[] = {
    &st_source_folder, /* what a path without a scheme means */
    &st_source_flat,
    NULL,
};
