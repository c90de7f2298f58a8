/* manifest.h - what reading and writing the manifest of a pack share
 *
 * The manifest is JSON of which every entry is one line, so that lines are all that has to be parsed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CLI_PACK_MANIFEST_H
#define ST_CLI_PACK_MANIFEST_H

#include "cli/pack/pack.h"

/* How lines begin. */
#define PACK_LINE_SETTINGS    "\"settings\": "
#define PACK_LINE_SAMPLES     "\"samples\": "
#define PACK_LINE_LEDGER_SIZE "\"ledger_size\": "
#define PACK_LINE_COMPLETE    "\"complete\": "
#define PACK_LINE_UNDER_WAY   "\"under_way\": "
#define PACK_LINE_SHARD       "{\"name\": "
#define PACK_LINE_BESIDE      "{\"file\": "

/* One line of JSON: what the output depends on. The caller frees it. */
int pack_manifest_settings(char **out, const struct pack_options *opt, const struct stoker_dataset *data,
                           struct stoker_error *err);
/* Adds a shard to the list; false when out of memory. */
bool pack_manifest_note(struct pack_manifest *manifest, const struct pack_shard *shard);
/* Replaces the file in one step. */
int pack_manifest_store(const struct pack_manifest *manifest, const struct pack_options *opt,
                        struct stoker_error *err);

#endif
