/* work.c - what a worker has to make images with
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/work.h"

#include "base/cpu.h"
#include "codec/jpeg/kernels.h"
#include "op/kernels/kernels.h"

void st_work_equip(struct st_work *work)
{
    const enum st_cpu_level level = st_cpu_level();
    work->level = level;
    work->kernels = st_kernels_for(level);
    work->colour = st_colour_rows_for(level);
    work->jpeg = st_jpeg_kernels_for(level);
    work->warp = st_warp_rows_for(level);
}
