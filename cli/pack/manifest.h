/* manifest.h - what reading and writing the manifest of a pack share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CLI_PACK_MANIFEST_H
#define ST_CLI_PACK_MANIFEST_H

#include "cli/pack/pack.h"

/* One line of JSON: what the output depends on. The caller frees it. */
int pack_manifest_settings(char **out, const struct pack_options *opt, const struct stoker_dataset *data,
                           struct stoker_error *err);
/* Replaces the file in one step. */
int pack_manifest_store(const struct st_pack *manifest, const struct pack_options *opt,
                        struct stoker_error *err);

#endif
