/* clahe.h - contrast limited adaptive histogram equalisation with OpenCV's arithmetic
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_CV_CLAHE_H
#define ST_OP_CV_CLAHE_H

#include "base/mem.h"
#include "base/pixels.h"

enum { ST_CV_TILES_MOST = 256 }; /* along a side */

/* Changes the first channel in place. `clip`: how much more frequent than on average a value may be, 0
 * for any. STOKER_OK or STOKER_ENOMEM. */
int st_cv_clahe(const struct st_view *pixels, double clip, int32_t across, int32_t down,
                struct st_arena *arena);

#endif
