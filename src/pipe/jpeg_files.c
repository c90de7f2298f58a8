/* jpeg_files.c - which files a device's JPEG hardware is given
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/jpeg_files.h"

#include "codec/jpeg/headers.h"
#include "codec/jpeg_markers.h"
#include "source/known/known.h"

bool st_jpeg_files_take(const struct stoker_loader *loader, struct st_bytes file,
                        struct st_jpeg_frame *frame)
{
    return st_jpeg_headers(file, frame) == ST_JPEG_OURS && st_jpeg_has_end(frame->scan) &&
           loader->jpeg.kind->takes(frame);
}

bool st_jpeg_files_trust(const struct stoker_loader *loader, uint64_t sample, struct st_bytes file)
{
    struct st_known *known = loader->jpeg.known;
    if (!known)
        return true;
    if (!st_known_any(known, sample))
        return false;
    if (st_known_has(known, sample, st_known_sum(file)))
        return true;
    st_known_learn(known, sample, 0);
    return false;
}

bool st_jpeg_files_want_check(const struct stoker_loader *loader, uint64_t sample, struct st_bytes file)
{
    struct st_jpeg_frame frame;
    return loader->jpeg.known && atomic_load_explicit(&loader->jpeg.ready, memory_order_relaxed) &&
           !st_known_any(loader->jpeg.known, sample) && st_jpeg_files_take(loader, file, &frame);
}
