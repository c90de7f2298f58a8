/* print.c - the verdict on a terminal: what, why, what to do, expected gain, what was not seen
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/report/operators.h"
#include "doctor/report/report.h"

#include "base/text.h"

#include "cli/cli.h"
#include "doctor/rule/judge.h"

#include <stdarg.h>
#include <string.h>

enum { LABEL = 10, NARROWEST = 40, WIDEST = 120 };

struct page {
    FILE *to;
    uint32_t width;
    bool color, ascii, first;
};

enum ink { PLAIN, BOLD, RED, GREEN, YELLOW, DIM };
static void ink(const struct page *page, enum ink ink)
{
    static const char *const codes[] = {"0", "1", "31", "32", "33", "2"};
    if (page->color)
        fprintf(page->to, "\033[%sm", codes[ink]);
}

/* The width of a text: one column per character. */
static uint32_t columns(const char *text, size_t bytes)
{
    uint32_t count = 0;
    for (size_t i = 0; i < bytes; i++)
        count += ((unsigned char)text[i] & 0xc0) != 0x80;
    return count;
}

/* Prints words, wrapped at the page width; lines after the first are indented. `at`: the
 * current column. */
static void wrap(const struct page *page, uint32_t indent, uint32_t at, const char *text)
{
    struct shown_text room;
    bool first = true;
    for (const char *word = shown(&room, text); *word;) {
        const size_t bytes = strcspn(word, " ");
        const uint32_t wide = columns(word, bytes);
        if (!first && at + 1 + wide > page->width) {
            fprintf(page->to, "\n%*s", (int)indent, "");
            at = indent;
        } else if (!first) {
            fputc(' ', page->to);
            at++;
        }
        fwrite(word, 1, bytes, page->to);
        at += wide;
        first = false;
        word += bytes + strspn(word + bytes, " ");
    }
    fputc('\n', page->to);
}

static void paragraph(const struct page *page, uint32_t indent, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void paragraph(const struct page *page, uint32_t indent, const char *format, ...)
{
    char text[1600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(page->to, "%*s", (int)indent, "");
    wrap(page, indent, indent, text);
}

static void label(const struct page *page, const char *text)
{
    ink(page, BOLD);
    fprintf(page->to, " %-*s", LABEL - 1, text);
    ink(page, PLAIN);
}

/* ---- the step ------------------------------------------------------------------------------------ */

struct piece {
    const char *name, *block, *plain;
    enum ink ink;
    double seconds;
};

static double sum_besides(const struct dr_facts *f)
{
    const double parts[] = {f->save, f->gc, f->logging, f->eval};
    double sum = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        sum += dr_known(parts[i]) ? parts[i] : 0;
    return sum;
}

static void step_bar(const struct page *page, const struct dr_facts *f)
{
    if (!dr_above(f->step, 0) || !dr_known(f->stall))
        return;
    const double copy = dr_known(f->copy) ? f->copy : 0, sync = dr_known(f->sync) ? f->sync : 0;
    /* GPUs work meanwhile, so this is only part of their step where there is none */
    const double besides = f->has_gpu ? 0 : fmin(sum_besides(f), fmax(0, f->step - f->stall));
    const struct piece pieces[] = {
        {"waits for data", "\u2588", "#", RED, f->stall},
        {"computes", "\u2592", "=", GREEN, fmax(0, f->step - f->stall - copy - sync - besides)},
        {"saves, logs, validates, collects garbage", "\u259a", "+", YELLOW, besides},
        {"copies", "\u2593", "%", YELLOW, copy},
        {"waits for the GPU", "\u2591", "-", DIM, sync},
    };
    const uint32_t width = page->width - LABEL - 1;
    uint32_t drawn = 0;
    double sum = 0;
    fprintf(page->to, "%*s", LABEL, "");
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        sum += pieces[i].seconds;
        ink(page, pieces[i].ink);
        for (const uint32_t end = (uint32_t)(fmin(1, sum / f->step) * width + 0.5); drawn < end; drawn++)
            fputs(page->ascii ? pieces[i].plain : pieces[i].block, page->to);
        ink(page, PLAIN);
    }
    fputc('\n', page->to);
    char legend[400];
    struct dr_text time;
    size_t used = (size_t)snprintf(legend, sizeof legend, "step %s:", dr_seconds_text(&time, f->step));
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        if (pieces[i].seconds > 0.001 * f->step && used < sizeof legend)
            used += (size_t)snprintf(legend + used, sizeof legend - used, "%s %s %s %s", i ? " " : "",
                                     page->ascii ? pieces[i].plain : pieces[i].block, pieces[i].name,
                                     dr_seconds_text(&time, pieces[i].seconds));
    paragraph(page, LABEL, "%s", legend);
    fputc('\n', page->to);
}

/* ---- why ----------------------------------------------------------------------------------------- */

static void evidence(const struct page *page, const char *what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void evidence(const struct page *page, const char *what, const char *format, ...)
{
    enum { NAME = 14 };
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ink(page, DIM);
    fprintf(page->to, "%*s%-*s", LABEL, "", NAME, what);
    ink(page, PLAIN);
    wrap(page, LABEL + NAME, LABEL + NAME, text);
}

/* The stages of a batch in percent, rounded such that they add up to 100; all 0 where they are
 * unknown. */
static void whole_percents(int percent[DR_STAGES], const struct dr_facts *f)
{
    double part[DR_STAGES], sum = 0;
    int left = 100;
    for (int i = 0; i < DR_STAGES; i++) {
        part[i] = i != DR_STAGE_PUT && f->stage_share[i] > 0 ? f->stage_share[i] : 0;
        sum += part[i];
        percent[i] = 0;
    }
    if (!(sum > 0) || !isfinite(sum))
        return;
    for (int i = 0; i < DR_STAGES; i++) {
        part[i] *= 100 / sum;
        percent[i] = (int)part[i];
        left -= percent[i];
    }
    for (; left > 0; left--) { /* to the largest remainders */
        int most = 0;
        for (int i = 1; i < DR_STAGES; i++)
            if (part[i] - percent[i] > part[most] - percent[most])
                most = i;
        percent[most]++;
    }
}

static void stages(const struct page *page, const struct dr_facts *f)
{
    char text[300] = "";
    size_t used = 0;
    int percent[DR_STAGES];
    struct dr_text time;
    whole_percents(percent, f);
    for (int i = 0; i < DR_STAGES; i++)
        if (percent[i] > 0 && used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %d %%", used ? ", " : "",
                                     dr_stage_word((enum dr_stage)i), percent[i]);
    if (used && f->stage[DR_STAGE_PUT] > 0 && used < sizeof text) /* it follows when the batch is made */
        (void)snprintf(text + used, sizeof text - used, "; then %s: %s",
                       dr_stage_word(DR_STAGE_PUT), dr_seconds_text(&time, f->stage[DR_STAGE_PUT]));
    if (used)
        evidence(page, "batch", "%s: %s", dr_seconds_text(&time, f->batch_mean), text);
}

static void evidence_of(const struct page *page, const struct dr_facts *f)
{
    struct dr_text a, b, c, d;
    if (dr_known(f->readiness))
        evidence(page, "queue", "%s of the calls of next() found their batch ready%s%s%s",
                 dr_share_text(&a, f->readiness), dr_known(f->ready_mean) ? ", " : "",
                 dr_known(f->ready_mean) ? dr_plain_text(&b, f->ready_mean) : "",
                 dr_known(f->ready_mean) ? " batches ready on average" : "");
    stages(page, f);
    if (f->loader.workers > 0 && dr_known(f->worker_on_cpu))
        evidence(page, f->loader.native ? "threads" : "workers",
                 "%u: running %s of the time, waiting for a CPU %s, blocked %s, idle %s",
                 f->loader.workers, dr_share_text(&a, f->worker_on_cpu),
                 dr_share_text(&b, f->worker_run_queue), dr_share_text(&c, f->worker_blocked),
                 dr_share_text(&d, dr_known(f->worker_idle) ? f->worker_idle : 0));
    if (dr_known(f->limits.cpus))
        evidence(page, "CPUs", "%s available%s, %s used by this run, %s by others%s%s",
                 dr_plain_text(&a, f->limits.cpus), dr_known(f->limits.cpus_quota) ? " (quota)" : "",
                 dr_plain_text(&b, f->cpus_used), dr_plain_text(&c, f->cpus_busy_others),
                 dr_known(f->throttled_share) ? "; throttled " : "",
                 dr_known(f->throttled_share) ? dr_share_text(&d, f->throttled_share) : "");
    if (dr_above(f->cpus_stolen, DR_STOLEN_SEEN * f->limits.cpus))
        evidence(page, "steal",
                 "the host of this virtual machine withholds %s CPUs, which makes everything slower and "
                 "timings unstable",
                 dr_plain_text(&a, f->cpus_stolen));
    if (dr_known(f->read_asked) || dr_known(f->disk_read))
        evidence(page, "reads", "%s requested, %s from storage; page cache hit ratio %s",
                 dr_unit_text(&a, f->read_asked, "bytes/s"),
                 dr_unit_text(&b, f->read_storage, "bytes/s"), dr_share_text(&c, f->hit_ratio));
    if (f->has_gpu)
        evidence(page, "GPU", "kernels running %s of the time, multiprocessors %s, tensor cores %s",
                 dr_share_text(&a, f->gpu_busy), dr_share_text(&b, f->gpu_sm),
                 dr_share_text(&c, f->gpu_tensor));
    if (dr_known(f->overhead_share))
        evidence(page, "watching", "took at most %s of the time, by its own measure",
                 dr_share_text(&a, f->overhead_share));
}

/* What the verdict says nothing about. */
static void left_out(const struct page *page, const struct dr_facts *f)
{
    struct dr_text seen, judged, lost;
    const double others = f->steps_seen - f->confidence_steps;
    if (dr_above(others, 0.1 * f->steps_seen) && others >= 20)
        paragraph(page, LABEL,
                  "judged: %s of %s steps; the others are of the warm-up, begin an epoch, or contain an "
                  "evaluation",
                  dr_plain_text(&judged, f->confidence_steps), dr_plain_text(&seen, f->steps_seen));
    if (dr_above(f->steps_lost, 0))
        paragraph(page, LABEL, "%s more steps were not recorded%s", dr_plain_text(&lost, f->steps_lost),
                  f->watch_error ? "" : ": later ones took their place");
    if (f->watch_error)
        paragraph(page, LABEL, "watching the training process ended early: %.200s", f->watch_error);
}

static void why(const struct page *page, const struct dr_verdict *verdict, const struct dr_facts *facts)
{
    label(page, "WHY");
    if (verdict->limiter[0]) {
        char text[240];
        DR_SAY(text, "the limit is %s", verdict->limiter);
        wrap(page, LABEL, LABEL, text);
    } else
        fputs(verdict->findings ? "" : "no data to explain it\n", page->to);
    for (uint32_t i = 0; i < verdict->findings && i < 3; i++)
        if (i > 0 || verdict->limiter[0])
            paragraph(page, LABEL, "%s", verdict->finding[i].sentence);
        else
            wrap(page, LABEL, LABEL, verdict->finding[i].sentence);
    if (facts)
        evidence_of(page, facts);
    fputc('\n', page->to);
}

/* ---- what to do ---------------------------------------------------------------------------------- */

static void gain_text(char *out, size_t size, const struct dr_range *gain)
{
    if (!dr_known(gain->mid))
        (void)snprintf(out, size, "gain unknown");
    else if (gain->high - gain->low < 0.02)
        (void)snprintf(out, size, "%.2fx", gain->mid);
    else
        (void)snprintf(out, size, "%.2fx (%.2f to %.2f)", gain->mid, gain->low, gain->high);
}

static void findings(const struct page *page, const struct dr_verdict *verdict)
{
    enum { INDENT = 12 };
    if (!verdict->findings)
        return;
    label(page, "DO THIS");
    fputc('\n', page->to);
    uint32_t shown = 0;
    for (uint32_t i = 0; i < verdict->findings; i++) {
        const struct dr_finding *finding = &verdict->finding[i];
        /* it is printed under WHY, and refers to a finding above */
        if (i && finding->order == DR_ORDER_REMARK)
            continue;
        char gain[64];
        gain_text(gain, sizeof gain, &finding->gain);
        ink(page, finding->blocks ? RED : BOLD);
        fprintf(page->to, "  %2u %-6s ", ++shown, finding->rule->code);
        ink(page, PLAIN);
        wrap(page, INDENT, INDENT, finding->advice);
        if (finding->blocks) /* not about speed: wrong data or a crash */
            paragraph(page, INDENT, "expected: %s", finding->basis);
        else
            paragraph(page, INDENT, "expected: %s, %s", gain, finding->basis);
        if (finding->advice_stoker[0])
            paragraph(page, INDENT, "with Stoker: %s", finding->advice_stoker);
        if (finding->next[0])
            paragraph(page, INDENT, "then the limit is %s", finding->next);
    }
    char all[64], text[400];
    gain_text(all, sizeof all, &verdict->all);
    size_t used = 0;
    text[0] = '\0';
    if (dr_known(verdict->all.mid) && shown > 1)
        used = (size_t)snprintf(text, sizeof text, "all changes together: %s%s%s. ", all,
                                verdict->limit_after[0] ? ", then the limit is " : "",
                                verdict->limit_after);
    if (dr_above(verdict->ceiling, 1.005) && used < sizeof text)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "A perfect loader would gain %.2fx. ", verdict->ceiling);
    if (dr_above(verdict->most, 1.005 * fmax(verdict->ceiling, 1)) && used < sizeof text)
        (void)snprintf(text + used, sizeof text - used,
                       "With everything outside the loader: at most %.2fx.", verdict->most);
    if (text[0])
        paragraph(page, INDENT, "%s", text);
    fputc('\n', page->to);
}

/* ---- the rest ------------------------------------------------------------------------------------ */

static void cleared(const struct page *page, const struct dr_verdict *verdict)
{
    if (!verdict->cleared_count)
        return;
    char text[1500] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < verdict->cleared_count && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? ", " : "",
                                 verdict->cleared[i]->name);
    ink(page, BOLD);
    fputs(" NOT THE PROBLEM  ", page->to);
    ink(page, PLAIN);
    wrap(page, LABEL, 18, text);
}

static bool same_text(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

/* Prints consecutive signals that are missing for the same reason as one paragraph. Returns the index of
 * the next one. */
static uint32_t print_missing(const struct page *page, const struct dr_run *run, uint32_t first)
{
    const struct dr_missing *missing = &run->missing[first];
    char names[512] = "";
    uint32_t next = first;
    for (; next < run->missing_count && same_text(run->missing[next].why, missing->why) &&
           same_text(run->missing[next].remedy, missing->remedy);
         next++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", run->missing[next].signal);
    }
    const bool helps = missing->remedy && missing->remedy[0];
    paragraph(page, LABEL, "%s: %s%s%s", names, missing->why ? missing->why : "unknown",
              helps ? ". Remedy: " : "", helps ? missing->remedy : "");
    return next;
}

/* Whether the signal is missing because no GPU is seen at all. */
static bool is_without_gpu(const struct dr_run *run, uint32_t missing)
{
    const char *signal = run->missing[missing].signal;
    return !run->limits.gpu_name[0] && signal && !strncmp(signal, "gpu.", 4);
}

static void not_seen(const struct page *page, const struct dr_verdict *verdict,
                     const struct dr_facts *facts)
{
    const struct dr_run *run = facts ? facts->run : NULL;
    if (!verdict->unjudged_count && !(run && run->missing_count))
        return;
    char text[1500] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < verdict->unjudged_count && used < sizeof text; i++) {
        char lacking[64];
        const char *signal =
            facts ? dr_lacks(verdict->unjudged[i], facts, lacking, sizeof lacking) : NULL;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s%s%s", i ? ", " : "",
                                 verdict->unjudged[i]->name, signal ? " (" : "", signal ? signal : "",
                                 signal ? ")" : "");
    }
    ink(page, BOLD);
    fputs(" COULD NOT SEE    ", page->to);
    ink(page, PLAIN);
    wrap(page, LABEL, 18, text[0] ? text : "some signals");
    bool said = page->first;
    for (uint32_t i = 0; run && i < run->missing_count;) {
        if (!is_without_gpu(run, i) || page->first) {
            i = print_missing(page, run, i);
            continue;
        }
        if (!said)
            paragraph(page, LABEL, "a GPU: 'stoker doctor' says why");
        said = true;
        i++;
    }
}

void dr_print_verdict(FILE *to, const struct dr_style *style, const struct dr_verdict *verdict,
                      const struct dr_facts *facts)
{
    struct page page = {to, style->width, style->color, style->ascii, style->first};
    page.width = page.width < NARROWEST ? NARROWEST : page.width > WIDEST ? WIDEST : page.width;
    struct number_text steps;
    if (verdict->busy[0]) {
        label(&page, "BUSY");
        ink(&page, YELLOW);
        wrap(&page, LABEL, LABEL, verdict->busy);
        ink(&page, PLAIN);
    }
    label(&page, "VERDICT");
    ink(&page, verdict->kind == DR_DATA_BOUND      ? RED
               : verdict->kind == DR_COMPUTE_BOUND ? GREEN
                                                   : YELLOW);
    wrap(&page, LABEL, LABEL,
         verdict->sentence[0] ? verdict->sentence : "cannot tell: nothing was recorded");
    ink(&page, PLAIN);
    if (verdict->failed)
        return;
    if (verdict->kind != DR_CANNOT_TELL && facts && dr_known(facts->confidence_steps))
        paragraph(&page, LABEL,
                  "confidence %s (%s step%s; 95 %% interval of the stall: %.0f to %.0f %%)",
                  verdict->confidence ? verdict->confidence : "low",
                  with_commas(&steps, facts->confidence_steps), dr_s(facts->confidence_steps),
                  dr_known(facts->stall_share_low) ? facts->stall_share_low * 100 : 0.0,
                  dr_known(facts->stall_share_high) ? facts->stall_share_high * 100 : 100.0);
    if (facts)
        left_out(&page, facts);
    fputc('\n', to);
    if (facts)
        step_bar(&page, facts);
    if (verdict->findings || facts)
        why(&page, verdict, facts);
    if (facts && facts->operator_count && verdict->kind != DR_COMPUTE_BOUND) {
        struct dr_text time;
        label(&page, "SAMPLES");
        fprintf(to, "%s each, in %s:\n", dr_seconds_text(&time, facts->sample_seconds),
                facts->loader.workers ? "a worker" : "the training thread");
        dr_print_operators(to, LABEL, facts);
        fputc('\n', to);
    }
    findings(&page, verdict);
    cleared(&page, verdict);
    not_seen(&page, verdict, facts);
    if (verdict->findings) {
        label(&page, "NEXT");
        fprintf(to, "stoker explain %s\n", verdict->finding[0].rule->code);
    }
    if (verdict->offer.kind != DR_OFFER_NONE) {
        char text[sizeof verdict->offer.command + sizeof verdict->offer.sentence + 2];
        snprintf(text, sizeof text, "%s: %s", verdict->offer.command, verdict->offer.sentence);
        label(&page, "STOKER");
        ink(&page, verdict->offer.kind == DR_OFFER_GAIN ? GREEN : PLAIN);
        wrap(&page, LABEL, LABEL, text);
        ink(&page, PLAIN);
    }
}
