/* shm.c - ST218: /dev/shm is too small for the batches in flight
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

#include "base/text.h"

#include <string.h>

/* The messages of torch when a worker could not allocate the memory for a batch. */
static bool was_refused(const char *failure)
{
    return strstr(failure, "Bus error") || strstr(failure, "shared memory") ||
           strstr(failure, "</torch_");
}

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    const double size = dr_known(f->shm_size) ? f->shm_size : f->limits.shm;
    /* Stoker's workers do not use it */
    if (!dr_has_processes(c) || f->loader.stoker || !dr_above(size, 0))
        return false;
    const bool full = f->shm_used_most >= DR_SHM_FULL * size, lacking = f->shm_needed > size,
               refused = was_refused(f->loader.failure);
    if (!full && !lacking && !refused)
        return false;
    struct dr_text have, need, used, ask;
    char needs[96] = "", used_most[64] = "";
    if (dr_known(f->shm_needed))
        DR_SAY(needs, " need up to %s", dr_bytes_text(&need, f->shm_needed));
    if (dr_known(f->shm_used_most))
        DR_SAY(used_most, " (%s in use)", dr_bytes_text(&used, f->shm_used_most));
    out->blocks = true;
    out->order = DR_ORDER_OWN;
    const double want = fmax(dr_known(f->shm_needed) ? f->shm_needed : size, size) * 2;
    DR_SAY(out->sentence, "/dev/shm has %s; %u worker%s with prefetch_factor=%u%s%s: %s",
           dr_bytes_text(&have, size), f->loader.workers, st_s(f->loader.workers), f->loader.prefetch,
           *needs ? needs : " share it", used_most,
           refused ? "a worker could not pass on its batch, and the loader failed"
                   : "expect a bus error or a hang");
    double fits = floor(size * DR_SHM_FULL / f->loader.batch_bytes / (f->loader.prefetch + 1.0));
    if (dr_known(fits) && fits >= 1 && fits < f->loader.workers)
        DR_SAY(out->advice, "docker run --shm-size=%.0fg (or --ipc=host); until then num_workers=%.0f",
               ceil(want / 1073741824.0), fits);
    else
        DR_SAY(
            out->advice,
            "docker run --shm-size=%.0fg (or --ipc=host; Kubernetes: an emptyDir of medium Memory, %s)",
            ceil(want / 1073741824.0), dr_bytes_text(&ask, want));
    DR_SAY(out->advice_stoker,
           "Stoker's loader does not use /dev/shm: workers pass batches in memory that no mount limits");
    DR_SAY(out->basis, "avoids a crash");
    return true;
}

const struct dr_rule dr_rule_shm = {
    .code = "ST218",
    .name = "shm-too-small",
    .title = "/dev/shm is too small for the batches in flight",
    .needs = "shm.used",
    .check = check,
    .symptoms = "\"Bus error\", \"unable to write to file </torch_...>\", or a loader that hangs; "
                "/dev/shm is nearly full.",
    .why = "Workers pass batches through /dev/shm: num_workers x prefetch_factor of them, plus one per "
           "worker. A container has 64 MB there unless configured otherwise.",
    .fix_torch = "docker run --shm-size=8g ..., or --ipc=host; or fewer workers, a smaller "
                 "prefetch_factor, uint8 batches; or\n"
                 "torch.multiprocessing.set_sharing_strategy(\"file_system\")",
    .fix_stoker = "stoker.DataLoader(dataset)   # the engine's threads run in the training process: "
                  "nothing goes through /dev/shm",
    .how_to_check = "df -h /dev/shm during training; `stoker doctor` shows the size.",
};
