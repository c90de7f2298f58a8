/* hand_over.c - ST215: transferring batches takes longer than making them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!dr_starved(c) || !dr_has_processes(c))
        return false;
    const double sampler = dr_known(f->sampler) ? f->sampler : 0;
    const double receiving = fmax(f->main_cpu_in_next - sampler, 0);
    const double main_share = receiving / f->step, pin_share = f->pin / f->step;
    const double put_share = f->stage_share[DR_STAGE_PUT];
    const bool pins = pin_share >= DR_PIN_BUSY, unpickles = main_share >= DR_MAIN_IN_NEXT,
               puts = put_share >= DR_PUT_HEAVY;
    if (!pins && !unpickles && !puts)
        return false;
    struct dr_text time, size, count;
    out->weight = pins        ? f->stall_share
                  : unpickles ? fmin(main_share, f->stall_share)
                              : f->stall_share * put_share;
    out->order = DR_ORDER_HAND_OVER;
    const char *tensors = dr_above(f->loader.tensors, 4)
                              ? "fewer, larger tensors per batch (one stacked tensor per field), "
                              : "";
    if (pins) {
        DR_SAY(out->sentence,
               "the pinning thread is busy %.0f %% of the time: it needs %s for a batch of %s",
               pin_share * 100, dr_seconds_text(&time, f->pin), dr_bytes_text(&size, f->pin_bytes));
        DR_SAY(out->advice,
               "%suint8 instead of float32 until the data are on the GPU: a quarter of the bytes to pin",
               tensors);
    } else if (unpickles) {
        DR_SAY(out->sentence,
               "the training thread works %s in each next() to receive and unpickle a batch of %s in %s "
               "tensors",
               dr_seconds_text(&time, receiving), dr_bytes_text(&size, f->loader.batch_bytes),
               dr_plain_text(&count, f->loader.tensors));
        DR_SAY(out->advice, "%sno Python objects in a batch: let collate_fn return tensors",
               tensors);
    } else {
        DR_SAY(out->sentence,
               "workers spend %.0f %% of their time (%s per batch) on transferring batches of %s",
               put_share * 100, dr_seconds_text(&time, f->stage[DR_STAGE_PUT]),
               dr_bytes_text(&size, f->loader.batch_bytes));
        DR_SAY(out->advice,
               "%suint8 instead of float32 until the data are on the GPU, no Python objects in a batch",
               tensors);
    }
    dr_say_stoker(
        c, out,
        "stoker.DataLoader hands batches over without a copy, in memory that is pinned in place",
        "the engine hands batches over without a copy; loader.explain() tells what keeps this data "
        "set in Python");
    const bool late = f->stage[DR_STAGE_PUT] > f->loader.workers * f->compute;
    if (unpickles && late && !pins) { /* whatever the training thread does, batches come too slowly */
        dr_gain_by_share(out, out->weight, c->ceiling, "");
        const double least = out->gain.low;
        dr_gain_by_share(out, fmin(f->stall_share, 0.95), c->ceiling,
                         "measured: the stall, of which the transfer on both sides is the cause");
        out->gain.low = fmin(least, out->gain.mid);
    } else if (unpickles && !pins)
        dr_gain_by_share(out, out->weight, c->ceiling, "measured: the training thread's time in next()");
    else if (puts && !pins)
        dr_gain_by_stage(c, out, DR_STAGE_PUT, (struct dr_range){0.75, 0.25, 0});
    else
        dr_gain_by_share(out, fmin(f->stall_share, 0.75), c->ceiling,
                         "the stall, if pinning took a quarter of its time");
    return !dr_below(out->gain.mid, DR_GAIN_WORTH); /* a small batch costs little, whatever the share */
}

const struct dr_rule dr_rule_hand_over = {
    .code = "ST215",
    .name = "hand-over",
    .title = "Pinning, pickling or transferring batches is the limit",
    .needs = "step.stall,batch.stages",
    .check = check,
    .symptoms = "The pinning thread is always busy, or the training thread works inside next() "
                "although workers make the batches, or workers spend a third of their time putting "
                "batches into the queue.",
    .why = "A batch from a worker is pickled, sent, unpickled and pinned, tensor by tensor. Many small "
           "tensors, Python objects, and float32 where uint8 would be enough all cost time there, in "
           "threads that more workers do not multiply.",
    .fix_torch = "Return one tensor per field from collate_fn (torch.stack), keep images as uint8, and "
                 "avoid lists of dicts.",
    .fix_stoker = "stoker.DataLoader(dataset, pin_memory=True)   # shared memory without a copy, "
                  "pinned in place",
    .how_to_check = "In the next report, the training thread spends less time inside next(), and the "
                    "share of the hand-over falls.",
};
