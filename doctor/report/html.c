/* html.c - report.html: one self-contained page about a run; the verdict, and the order of the parts
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/report/html.h"

#include "base/text.h"

#include "cli/out.h"

extern const char dr_page_style_source[], dr_page_script_source[]; /* page.css and page.js */

/* ---- the verdict ------------------------------------------------------------------------------- */

static void put_tiles(const struct dr_page *page)
{
    const struct dr_facts *f = page->facts;
    FILE *to = page->to;
    struct dr_text low, high;
    struct dr_text share;
    fputs("<dl class=tiles>\n", to);
    dr_tile_put(page, "step time", f->step, "s");
    dr_tile_put(page, "samples per second", f->samples_per_second, "");
    fprintf(to, "<div><dt>%s</dt><dd>%s", f->has_gpu ? "GPU waits for data" : "training waits for data",
            dr_share_text(&share, f->stall_share));
    if (dr_known(f->stall_share_low) && dr_known(f->stall_share_high))
        fprintf(to, "<small>95 %% interval %s to %s</small>", dr_share_text(&low, f->stall_share_low),
                dr_share_text(&high, f->stall_share_high));
    fputs("</dd></div>\n", to);
    dr_tile_put(page, "batch was ready", f->readiness, "share");
    if (f->has_gpu)
        dr_tile_put(page, "SM active", f->gpu_sm, "share");
    dr_tile_put(page, "CPUs used", f->cpus_used, "");
    fputs("</dl>\n", to);
}

/* One rung: a bar from 1x to `gain`, on a scale that ends at `most`. */
static void put_rung(FILE *to, const char *code, const char *name, const struct dr_range *gain,
                     double most, const char *color)
{
    const double scale = 100 / (most - 0.0);
    fputs("<span class=rung-name>", to);
    if (code)
        fprintf(to, "<b>%s</b> ", code);
    html_text(to, name);
    fputs("</span><span class=rung>", to);
    if (isfinite(gain->mid)) {
        const double from = fmin(1, gain->mid), until = fmax(1, gain->mid);
        fprintf(to, "<i class=base style=\"width:%.2f%%\"></i>", scale * from);
        fprintf(to, "<i style=\"left:%.2f%%;width:%.2f%%;background:var(--c-%s)\"></i>", scale * from,
                fmax(scale * (until - from), 0.3), color);
        if (isfinite(gain->low) && isfinite(gain->high) && gain->high > gain->low)
            fprintf(to, "<i class=whisker style=\"left:%.2f%%;width:%.2f%%\"></i>", scale * gain->low,
                    scale * (fmin(gain->high, most) - gain->low));
        fputs("</span><span class=rung-gain>", to);
        if (isfinite(gain->low) && isfinite(gain->high) && gain->high > gain->low)
            fprintf(to, "<b>%.2fx</b> (%.2f to %.2f)</span>\n", gain->mid, gain->low, gain->high);
        else
            fprintf(to, "<b>%.2fx</b></span>\n", gain->mid);
    } else {
        fputs("</span><span class=rung-gain>n/a</span>\n", to);
    }
}

static void put_ladder(const struct dr_page *page)
{
    const struct dr_verdict *v = page->verdict;
    const struct dr_range now = {1, 1, 1}, ceiling = {v->ceiling, v->ceiling, v->ceiling};
    double most = isfinite(v->ceiling) ? v->ceiling : 1;
    if (isfinite(v->all.high))
        most = fmax(most, v->all.high);
    if (isfinite(v->offer.gain.high))
        most = fmax(most, v->offer.gain.high);
    for (uint32_t i = 0; i < v->findings; i++)
        if (isfinite(v->finding[i].gain.high))
            most = fmax(most, v->finding[i].gain.high);
    if (!isfinite(v->ceiling) && most <= 1) {
        dr_html_none(
            page,
            "The possible gain is unknown: the run was too short, or its steps were not seen.");
        return;
    }
    most *= 1.02;
    fputs("<h3>Gain ladder</h3>\n<div class=ladder>\n", page->to);
    put_rung(page->to, NULL, "now", &now, most, "compute");
    for (uint32_t i = 0; i < v->findings; i++)
        put_rung(page->to, v->finding[i].rule->code, v->finding[i].rule->title, &v->finding[i].gain,
                 most, "gain");
    if (isfinite(v->all.mid))
        put_rung(page->to, NULL, "all of these together", &v->all, most, "gain");
    if (isfinite(v->offer.gain.mid))
        put_rung(page->to, NULL, "Stoker's loader instead (measured)", &v->offer.gain, most, "gain");
    put_rung(page->to, NULL, "a perfect loader (ceiling)", &ceiling, most, "ceiling");
    fputs("</div>\n<p class=note>Speed-up over now, for each change alone; the thin line is the 95 % "
          "interval.",
          page->to);
    if (*v->limit_after) {
        fputs(" After all of these, the limit is ", page->to);
        html_text(page->to, v->limit_after);
        fputs(".", page->to);
    }
    fputs("</p>\n", page->to);
}

static void put_advice(FILE *to, const char *name, const char *text)
{
    if (!*text)
        return;
    fprintf(to, "<div class=advice><span>%s</span><code>", name);
    html_text(to, text);
    fputs("</code><button class=copy type=button>copy</button></div>\n", to);
}

static void put_finding(FILE *to, const struct dr_finding *f)
{
    fprintf(to, "<li class=\"finding%s\"><p><b class=code>%s</b> ", f->blocks ? " blocks" : "",
            f->rule->code);
    html_text(to, f->sentence);
    fputs("</p>\n", to);
    put_advice(to, "torch", f->advice);
    put_advice(to, "Stoker", f->advice_stoker);
    fputs("<p class=note>", to);
    if (isfinite(f->gain.mid))
        fprintf(to, "Expected: <b>%.2fx</b>, %.2f to %.2f; ", f->gain.mid, f->gain.low, f->gain.high);
    else
        fputs(f->blocks ? "This is about correct results, not about speed; " : "Gain unknown; ", to);
    html_text(to, *f->basis ? f->basis : "by rule");
    if (*f->next) {
        fputs(". After that, the limit is ", to);
        html_text(to, f->next);
    }
    fprintf(to, ". More: <code>stoker explain %s</code></p></li>\n", f->rule->code);
}

static void put_offer(const struct dr_page *page)
{
    const struct dr_offer *offer = &page->verdict->offer;
    if (offer->kind == DR_OFFER_NONE)
        return;
    fputs("<h3>With Stoker's loader</h3>\n<p><code>", page->to);
    html_text(page->to, offer->command);
    fputs("</code>: ", page->to);
    html_text(page->to, offer->sentence);
    fputs("</p>\n", page->to);
}

static const char *tone_of(enum dr_verdict_kind kind)
{
    return kind == DR_DATA_BOUND ? "bad" : kind == DR_COMPUTE_BOUND ? "good" : "unsure";
}

void dr_html_verdict(const struct dr_page *page)
{
    const struct dr_verdict *v = page->verdict;
    const struct dr_facts *f = page->facts;
    FILE *to = page->to;
    struct dr_text steps;
    fprintf(to,
            "<header class=\"verdict %s\" id=verdict tabindex=-1>\n<p class=kind>verdict %s</p>\n<h1>",
            tone_of(v->kind), dr_verdict_code(v));
    html_text(to, *v->sentence ? v->sentence : dr_kind_name(v->kind));
    fputs("</h1>\n", to);
    if (*v->busy) {
        fputs("<p class=limiter>", to);
        html_text(to, v->busy);
        fputs("</p>\n", to);
    }
    if (*v->limiter) {
        fputs("<p class=limiter>The limit is ", to);
        html_text(to, v->limiter);
        fputs("</p>\n", to);
    }
    fprintf(to, "<p class=path>Confidence %s, from %s step%s after the warm-up.</p>\n</header>\n",
            v->confidence ? v->confidence : "unknown", dr_plain_text(&steps, f->step_count),
            st_s(f->step_count));
    put_tiles(page);
    dr_section_begin(page, "do", v->findings ? "Do this" : "Nothing to change",
                     v->findings ? "The most important cause comes first." : "");
    put_ladder(page);
    if (v->findings)
        fputs("<ol class=findings>\n", to);
    for (uint32_t i = 0; i < v->findings; i++)
        put_finding(to, &v->finding[i]);
    if (v->findings)
        fputs("</ol>\n", to);
    put_offer(page);
    dr_section_end(page);
}

/* ---- the page ---------------------------------------------------------------------------------- */

static void put_nav(FILE *to, bool tuned)
{
    static const char *const parts[][2] = {
        {"verdict", "Verdict"},   {"do", "Do this"},  {"steps", "Steps"},
        {"pipeline", "Pipeline"}, {"queue", "Queue"}, {"workers", "Workers"},
        {"machine", "Machine"},   {"gpu", "GPU"},     {"what-if", "What if"},
        {"settings", "Settings"}, {"ranks", "Ranks"}, {"evidence", "Evidence"},
    };
    fputs("<nav aria-label=\"Parts of this page\">", to);
    if (tuned)
        fputs("<a href=\"#tune\">Tuning</a>", to);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        fprintf(to, "<a href=\"#%s\">%s</a>", parts[i][0], parts[i][1]);
    fputs("<button id=theme type=button title=\"light or dark (t)\">light / dark</button></nav>\n", to);
}

static void put_heading(const struct dr_page *page)
{
    FILE *to = page->to;
    fputs("<p class=\"path command\">", to);
    for (char *const *argument = page->facts->run->argv; argument && *argument; argument++) {
        if (argument != page->facts->run->argv)
            fputc(' ', to);
        html_text(to, *argument);
    }
    fputs("</p>\n", to);
}

int dr_write_tune_html(FILE *to, const struct dr_verdict *verdict, const struct dr_facts *facts,
                       const struct dr_tuned *tuned)
{
    const struct dr_page page = {to, verdict, facts, tuned};
    html_begin(to, tuned ? "Stoker: faster loader settings" : "Stoker: why the GPU waits",
               dr_page_style_source);
    put_nav(to, tuned != NULL);
    put_heading(&page);
    dr_html_tune(&page);
    dr_html_verdict(&page);
    dr_html_steps(&page);
    dr_html_pipeline(&page);
    dr_html_queue(&page);
    dr_html_workers(&page);
    dr_html_resources(&page);
    dr_html_gpu(&page);
    dr_html_what_if(&page);
    dr_html_settings(&page);
    dr_html_ranks(&page);
    dr_html_evidence(&page);
    fprintf(to,
            "<footer>Stoker %s. All numbers are in %s, next to this page. Keys: j and k move between "
            "sections, arrow keys move along a chart, t switches between light and dark.</footer>\n"
            "<div id=tip role=status hidden></div>\n</main>\n<script>\n%s</script>\n</body>\n</html>\n",
            stoker_version_string(), tuned ? "tune.json" : "run.json", dr_page_script_source);
    return ferror(to) ? STOKER_EIO : STOKER_OK;
}

int dr_write_html(FILE *to, const struct dr_verdict *verdict, const struct dr_facts *facts)
{
    return dr_write_tune_html(to, verdict, facts, NULL);
}
