/* offer.c - what the same program would gain with Stoker's loader: one line at the end of a report
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/judge.h"

#include "doctor/run/script.h"

/* "python -m stoker train.py" for "python train.py --lr 1"; without a script that python could be given,
 * what to write into the program. */
static void command_text(char *out, size_t size, const struct dr_run *run)
{
    struct dr_script script;
    if (run && dr_script_of(&script, run->argv) && !script.with_stoker)
        (void)snprintf(out, size, "%s -m stoker %s%.100s", script.launcher,
                       script.is_module ? "-m " : "", script.name);
    else
        (void)snprintf(out, size, "from stoker import DataLoader");
}

/* Nothing is gained by whatever makes the batches. */
static bool step_is_limit(const struct dr_verdict *out, const struct dr_case *c)
{
    return out->ceiling < DR_GAIN_WORTH && !dr_above(c->facts->trainer_run_queue, DR_STALL_MATTERS);
}

static void measured(struct dr_verdict *out, const struct dr_case *c)
{
    const struct dr_tried *tried = &c->facts->tried;
    struct dr_offer *offer = &out->offer;
    struct dr_text torch, stoker, samples;
    const double queued = dr_known(c->facts->trainer_run_queue) ? c->facts->trainer_run_queue : 0;
    offer->gain =
        dr_gain_with_stoker(c->facts, c->trace, &c->now, c->ceiling / (1 - fmin(queued, 0.9)));
    if (tried->on_gpu && dr_known(offer->gain.mid)) /* at best the loader is never the limit */
        offer->gain.high = fmax(offer->gain.high, c->ceiling);
    const char *place = tried->on_gpu ? "; it makes batches on the GPU, which may gain more: only their "
                                        "making on the CPU was measured"
                                      : "";
    dr_plain_text(&samples, tried->samples);
    dr_seconds_text(&torch, tried->torch_cpu);
    dr_seconds_text(&stoker, tried->stoker_cpu);
    const struct dr_range *gain = &offer->gain;
    if (!dr_known(gain->mid)) {
        const char *why = dr_not_covered(c->facts);
        DR_SAY(offer->sentence,
               "a sample takes %s of CPU time instead of %s; what that gains cannot be "
               "simulated%s%s",
               stoker.text, torch.text, why ? ": " : "", why ? why : "");
    } else if (gain->mid < DR_GAIN_WORTH && gain->mid > 1 / DR_GAIN_WORTH &&
               !(tried->on_gpu && gain->high >= DR_GAIN_WORTH)) {
        offer->kind = DR_OFFER_NOTHING;
        if (tried->share > 1 / DR_GAIN_WORTH)
            DR_SAY(offer->sentence,
                   "nothing to gain: a sample takes %s of CPU time instead of %s%s%.300s", stoker.text,
                   torch.text, tried->why ? ", because " : "", tried->why ? tried->why : "");
        else if (out->ceiling >= DR_GAIN_WORTH)
            DR_SAY(offer->sentence,
                   "nothing to gain: a sample takes %s of CPU time instead of %s, but that is not what "
                   "takes the time",
                   stoker.text, torch.text);
        else
            DR_SAY(offer->sentence, "nothing to gain: the step is the limit");
    } else {
        offer->kind = DR_OFFER_GAIN;
        DR_SAY(offer->sentence,
               "%.2fx (%.2f to %.2f), measured with %s samples of this run: %s of CPU time instead of "
               "%s%s",
               gain->mid, gain->low, gain->high, samples.text, stoker.text, torch.text, place);
        out->ceiling = fmax(out->ceiling, gain->mid); /* what frees CPUs shortens steps, too */
        out->most = fmax(out->most, gain->high);
    }
}

void dr_make_offer(struct dr_verdict *out, const struct dr_case *c)
{
    const struct dr_facts *f = c->facts;
    struct dr_offer *offer = &out->offer;
    if (f->loader.stoker || !f->loader.class_name[0])
        return;
    command_text(offer->command, sizeof offer->command, f->run);
    offer->kind = DR_OFFER_UNKNOWN;
    if (f->tried.samples > 0) {
        measured(out, c);
    } else if (step_is_limit(out, c)) {
        offer->kind = DR_OFFER_NOTHING;
        DR_SAY(offer->sentence, "nothing to gain: the step is the limit");
    } else if (f->tried.error) {
        DR_SAY(offer->sentence, "could not be measured: %.400s", f->tried.error);
    } else {
        DR_SAY(offer->sentence,
               "not measured; 'stoker run --try-stoker' does that at the end of the run");
    }
}
