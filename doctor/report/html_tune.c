/* html_tune.c - the page of `stoker tune`: how the loader scales with its workers, and what the change
 * gained
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/report/html.h"

#include "cli/out.h"

enum { WIDE = 1000, HIGH = 100, CURVE = 60 };

/* The axes of the chart. */
struct axes {
    double workers, rate; /* ends of both scales, which begin at 0 */
};

static double across(const struct axes *axes, double workers) { return WIDE * workers / axes->workers; }

static double down(const struct axes *axes, double rate)
{
    return HIGH * (1 - fmax(0, fmin(1, rate / axes->rate)));
}

static struct axes axes_of(const struct dr_tuned *tuned)
{
    struct axes axes = {tuned->workers, 0};
    for (uint32_t k = 0; k < tuned->points; k++) {
        axes.workers = fmax(axes.workers, tuned->point[k].workers);
        axes.rate = fmax(axes.rate, tuned->point[k].rate);
    }
    axes.workers += 1;
    if (tuned->scale)
        axes.rate = fmax(axes.rate, dr_scale_at(tuned->scale, axes.workers));
    if (tuned->floor > 0)
        axes.rate = fmax(axes.rate, fmin(1 / tuned->floor, 2 * axes.rate));
    axes.rate *= 1.1;
    return axes;
}

static void put_curve(FILE *to, const struct dr_tuned *tuned, const struct axes *axes)
{
    fputs("<path class=line style=\"stroke:var(--c-worker)\" d=\"", to);
    for (int k = 0; k <= CURVE; k++) {
        const double workers = 1 + (axes->workers - 1) * k / CURVE;
        fprintf(to, "%c%.1f %.2f", k ? 'L' : 'M', across(axes, workers),
                down(axes, dr_scale_at(tuned->scale, workers)));
    }
    fputs("\"/>", to);
}

static void put_chart(const struct dr_page *page, const struct dr_tuned *tuned)
{
    const struct axes axes = axes_of(tuned);
    const double wanted = tuned->floor > 0 ? 1 / tuned->floor : NAN;
    struct dr_text text;
    FILE *to = page->to;
    fprintf(
        to,
        "<figure class=chart><figcaption><b>The loader alone, by number of workers</b> <span "
        "class=key><i "
        "style=\"background:var(--c-compute)\"></i>measured</span>%s</figcaption><div class=plot><svg "
        "viewBox=\"0 0 %d %d\" preserveAspectRatio=none role=img aria-label=\"batches per second of the "
        "loader "
        "alone, by number of workers: the table below has the numbers\"><path class=grid d=\"M0 25H%d "
        "M0 50H%d "
        "M0 75H%d\"/>",
        tuned->scale ? " <span class=key><i style=\"background:var(--c-worker)\"></i>fitted</span>" : "",
        WIDE, HIGH, WIDE, WIDE, WIDE);
    if (tuned->workers)
        fprintf(to, "<path class=mark d=\"M%.1f 0V%d\"/>", across(&axes, tuned->workers), HIGH);
    if (tuned->scale)
        put_curve(to, tuned, &axes);
    if (isfinite(wanted) && wanted <= axes.rate)
        fprintf(to, "<path class=limit d=\"M0 %.2fH%d\"/>", down(&axes, wanted), WIDE);
    for (uint32_t k = 0; k < tuned->points; k++)
        fprintf(to, "<path class=dot style=\"stroke:var(--c-compute)\" d=\"M%.1f %.2fh0\"/>",
                across(&axes, tuned->point[k].workers), down(&axes, tuned->point[k].rate));
    fprintf(to, "</svg><span class=top>%s</span>", dr_unit_text(&text, axes.rate, "1/s"));
    if (isfinite(wanted) && wanted <= axes.rate)
        fprintf(to, "<span class=limit-name style=\"top:%.1f%%\">what training can use</span>",
                down(&axes, wanted));
    fprintf(to, "</div><div class=axis><span>0 workers</span><span>%.0f</span></div>", axes.workers);
    if (tuned->workers)
        fprintf(to, "<p class=note>Dotted line: the chosen number of workers, %u.</p>", tuned->workers);
    fputs("</figure>\n", to);
}

static void put_points(const struct dr_page *page, const struct dr_tuned *tuned)
{
    struct dr_text measured, fitted;
    FILE *to = page->to;
    fputs("<div class=scroll><table "
          "class=numbers><tr><th>workers</th><th>measured</th><th>fitted</th></tr>\n",
          to);
    for (uint32_t k = 0; k < tuned->points; k++)
        fprintf(to, "<tr><td>%.0f</td><td>%s</td><td>%s</td></tr>\n", tuned->point[k].workers,
                dr_unit_text(&measured, tuned->point[k].rate, "1/s"),
                dr_unit_text(&fitted,
                             tuned->scale ? dr_scale_at(tuned->scale, tuned->point[k].workers) : NAN,
                             "1/s"));
    fputs("</table></div>\n", to);
}

static void put_sides(const struct dr_page *page, const struct dr_tuned *tuned)
{
    const double before = tuned->side[0].rate;
    struct dr_text rate, spread;
    FILE *to = page->to;
    fputs("<h3>Confirmed by alternating runs</h3>\n<div class=scroll><table "
          "class=numbers><tr><th>loader</th><th>"
          "batches per second</th><th>spread</th><th>speed-up</th><th>predicted</th></tr>\n",
          to);
    for (uint32_t k = 0; k < DR_TUNED_SIDES; k++) {
        const struct dr_tuned_side *side = &tuned->side[k];
        if (!isfinite(side->rate))
            continue;
        fputs("<tr><td>", to);
        html_text(to, side->name);
        fprintf(to, "</td><td>%s</td><td>%s</td><td>%.2fx</td>", dr_plain_text(&rate, side->rate),
                dr_share_text(&spread, side->spread), side->rate / before);
        if (isfinite(side->predicted))
            fprintf(to, "<td>%.2fx</td></tr>\n", side->predicted);
        else
            fputs("<td></td></tr>\n", to);
    }
    fputs("</table></div>\n", to);
}

void dr_html_tune(const struct dr_page *page)
{
    const struct dr_tuned *tuned = page->tuned;
    if (!tuned)
        return;
    dr_section_begin(page, "tune", "Tuning",
                     "Measured in runs of the same program with other settings.");
    fputs("<p class=limiter>", page->to);
    html_text(page->to, tuned->advice);
    fputs("</p>\n<dl class=tiles>\n", page->to);
    dr_tile_put(page, "step now", tuned->before, "s");
    dr_tile_put(page, "step with a loader that is always ready", tuned->floor, "s");
    fputs("</dl>\n", page->to);
    if (tuned->points) {
        put_chart(page, tuned);
        put_points(page, tuned);
    } else {
        dr_html_none(page, "The loader alone was not measured.");
    }
    if (isfinite(tuned->side[0].rate))
        put_sides(page, tuned);
    dr_section_end(page);
}
