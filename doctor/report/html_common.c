/* html_common.c - what the parts of report.html share: sections, tiles and missing data
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/report/html.h"

#include "cli/out.h"

#include <stdarg.h>
#include <string.h>

void dr_section_begin(const struct dr_page *page, const char *id, const char *title, const char *lead)
{
    fprintf(page->to, "<section class=card id=%s tabindex=-1>\n<h2>%s</h2>\n", id, title);
    if (*lead)
        fprintf(page->to, "<p class=lead>%s</p>\n", lead);
}

void dr_section_end(const struct dr_page *page) { fputs("</section>\n", page->to); }

void dr_html_none(const struct dr_page *page, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fputs("<p class=none>", page->to);
    html_text(page->to, text);
    fputs("</p>\n", page->to);
}

const char *dr_why_missing(const struct dr_run *run, const char *signal, const char *otherwise)
{
    const char *dot = strchr(signal, '.');
    const size_t family = dot ? (size_t)(dot - signal) + 1 : 0;
    /* the signal itself, otherwise one of its group */
    for (int wide = 0; wide < (family ? 2 : 1); wide++)
        for (uint32_t i = 0; i < run->missing_count; i++)
            if (wide ? !strncmp(run->missing[i].signal, signal, family)
                     : !strcmp(run->missing[i].signal, signal))
                return run->missing[i].why;
    return otherwise;
}

void dr_tile_put(const struct dr_page *page, const char *name, double value, const char *unit)
{
    struct dr_text text;
    html_tile(page->to, name, dr_unit_text(&text, value, unit));
}
