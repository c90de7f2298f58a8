/* jpeg_files.h - which files a device's JPEG hardware is given
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_JPEG_FILES_H
#define ST_PIPE_JPEG_FILES_H

#include "pipe/executor.h"

struct st_jpeg_frame;

/* Whether they can decode the file. Truncated files are left to the CPU, which reports them properly. */
bool st_jpeg_files_take(const struct stoker_loader *loader, struct st_bytes file,
                        struct st_jpeg_frame *frame);
/* Whether the file is trusted not to be damaged. If it is another one than the dataset remembers, it is
 * unknown again. */
bool st_jpeg_files_trust(const struct stoker_loader *loader, uint64_t sample, struct st_bytes file);
/* Whether a worker that makes this sample should decode the whole file, to find out whether the hardware
 * can be trusted with it. */
bool st_jpeg_files_want_check(const struct stoker_loader *loader, uint64_t sample, struct st_bytes file);

#endif
