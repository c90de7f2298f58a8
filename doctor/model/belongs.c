/* belongs.c - which processes and events belong to the training loader
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/model/parts.h"

bool dr_is_maker(const struct dr_part *part, const struct dr_process *process)
{
    if (process == part->trainer)
        return !part->facts->loader.workers || part->facts->loader.native;
    if (process->role != DR_WORKER || process->trainer != part->trainer_index)
        return false;
    const double loader = dr_said_number(process, "worker.loader");
    return !dr_known(loader) || loader == part->intervals.loader;
}

bool dr_is_measured(const struct dr_part *part, const struct dr_event *event)
{
    /* The engine writes its counters once per second, for the time before. */
    const uint64_t late = part->facts->loader.native ? 1000000000 : 0;
    return event->loader == part->intervals.loader && event->start_ns >= part->from_ns &&
           event->start_ns <= part->to_ns + late;
}
