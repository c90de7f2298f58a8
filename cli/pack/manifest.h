/* manifest.h - shared by reading and writing the manifest of a pack
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CLI_PACK_MANIFEST_H
#define ST_CLI_PACK_MANIFEST_H

#include "cli/pack/pack.h"

/* The options that the output depends on, as one line of JSON. The caller frees it. */
int pack_manifest_settings(char **out, const struct pack_options *opt, const struct stoker_dataset *data,
                           struct stoker_error *err);
/* Replaces the file atomically. */
int pack_manifest_store(const struct st_pack *manifest, const struct pack_options *opt,
                        struct stoker_error *err);

#endif
