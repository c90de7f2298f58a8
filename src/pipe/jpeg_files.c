/* jpeg_files.c - which files a device's JPEG engines are given
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/jpeg_files.h"

#include "codec/jpeg/headers.h"
#include "codec/jpeg_markers.h"
#include "source/known/known.h"

bool st_jpeg_engines_take(const struct stoker_loader *loader, struct st_bytes file,
                          struct st_jpeg_frame *frame)
{
    return st_jpeg_headers(file, frame) == ST_JPEG_OURS && st_jpeg_has_end(frame->scan) &&
           loader->engines.kind->takes(frame);
}

bool st_jpeg_engines_trust(const struct stoker_loader *loader, uint64_t sample, struct st_bytes file)
{
    struct st_known *known = loader->engines.known;
    if (!known)
        return true;
    if (!st_known_any(known, sample))
        return false;
    if (st_known_has(known, sample, st_known_sum(file)))
        return true;
    st_known_learn(known, sample, 0);
    return false;
}

bool st_jpeg_engines_want_check(const struct stoker_loader *loader, uint64_t sample,
                                struct st_bytes file)
{
    struct st_jpeg_frame frame;
    return loader->engines.known && atomic_load_explicit(&loader->engines.ready, memory_order_relaxed) &&
           !st_known_any(loader->engines.known, sample) && st_jpeg_engines_take(loader, file, &frame);
}
