/* html_settings.c - report.html: the current and the recommended settings of the loader
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/report/html.h"

#include "cli/out.h"

#include <stdlib.h>
#include <string.h>

enum { CALL_MOST = 1024 };

/* The first finding that changes settings. */
static const struct dr_plan *plan_of(const struct dr_verdict *verdict)
{
    for (uint32_t i = 0; i < verdict->findings; i++)
        if (verdict->finding[i].plan.workers != UINT32_MAX)
            return &verdict->finding[i].plan;
    return NULL;
}

/* ---- the call as it should be -------------------------------------------------------------------- */

/* The end of the argument that begins here: its comma, or the closing bracket of the call.
 * NULL: none. */
static const char *argument_end(const char *at)
{
    int depth = 0;
    char quote = 0;
    for (; *at; at++) {
        if (quote) {
            if (*at == '\\' && at[1])
                at++;
            else if (*at == quote)
                quote = 0;
        } else if (*at == '"' || *at == '\'') {
            quote = *at;
        } else if (strchr("([{", *at)) {
            depth++;
        } else if (strchr(")]}", *at)) {
            if (!depth--)
                return at;
        } else if (*at == ',' && !depth) {
            return at;
        }
    }
    return NULL;
}

/* The value of keyword `name` among the arguments of the call, or the closing bracket if it is not
 * there. NULL: the call cannot be parsed. */
static const char *find_argument(const char *call, const char *name, const char **end)
{
    const char *at = strchr(call, '(');
    const size_t length = strlen(name);
    while (at) {
        at += 1 + strspn(at + 1, " \t\n");
        *end = argument_end(at);
        if (!*end)
            return NULL;
        if (!strncmp(at, name, length)) {
            const char *value = at + length + strspn(at + length, " ");
            if (*value == '=' && value[1] != '=')
                return value + 1;
        }
        if (**end != ',')
            return *end;
        at = *end;
    }
    return NULL;
}

/* Sets a keyword in the text of a call; false: the text is unchanged. */
static bool set_argument(char call[CALL_MOST], const char *name, const char *value)
{
    const char *end, *from = find_argument(call, name, &end);
    char changed[CALL_MOST];
    if (!from)
        return false;
    const char *last = from - 1; /* what precedes it, without blanks */
    while (from == end && strchr(" \t\n", *last))
        last--;
    const char *before = from != end || *last == '(' ? "" : *last == ',' ? " " : ", ";
    const int size = snprintf(changed, sizeof changed, "%.*s%s%s%s%s%s", (int)(from - call), call,
                              before, from == end ? name : "", from == end ? "=" : "", value, end);
    if (size < 0 || (size_t)size >= sizeof changed)
        return false;
    memcpy(call, changed, (size_t)size + 1);
    return true;
}

static const char *python_bool(bool value) { return value ? "True" : "False"; }

/* ---- the page ---------------------------------------------------------------------------------- */

static void put_row(FILE *to, const char *name, const char *now, const char *then)
{
    const bool changes = then && strcmp(now, then) != 0;
    fprintf(to, "<tr%s><td><code>%s</code></td><td>%s</td><td>%s</td></tr>\n",
            changes ? " class=changes" : "", name, now, then ? then : "");
}

static void put_table(const struct dr_page *page, const struct dr_plan *plan)
{
    const struct dr_settings *l = &page->facts->loader;
    char now[32], then[32];
    FILE *to = page->to;
    fprintf(to, "<table class=numbers><tr><th>setting</th><th>now</th><th>%s</th></tr>\n",
            plan ? "recommended" : "");
    snprintf(now, sizeof now, "%u", l->workers);
    snprintf(then, sizeof then, "%u", plan ? plan->workers : 0);
    put_row(to, "num_workers", now, plan ? then : NULL);
    snprintf(now, sizeof now, "%u", l->prefetch);
    snprintf(then, sizeof then, "%u", plan ? plan->prefetch : 0);
    put_row(to, "prefetch_factor", now, plan ? then : NULL);
    put_row(to, "persistent_workers", python_bool(l->persistent),
            plan ? python_bool(plan->persistent) : NULL);
    put_row(to, "in_order", python_bool(l->in_order), plan ? python_bool(plan->in_order) : NULL);
    put_row(to, "pin_memory", python_bool(l->pin_memory), NULL);
    struct dr_text text;
    put_row(to, "batch_size", dr_plain_text(&text, l->batch_size), NULL);
    fputs("</table>\n", to);
}

static void put_diff(const struct dr_page *page, const struct dr_plan *plan)
{
    const struct dr_settings *l = &page->facts->loader;
    char call[CALL_MOST], number[16];
    FILE *to = page->to;
    snprintf(call, sizeof call, "%s", l->source);
    snprintf(number, sizeof number, "%u", plan->workers);
    if (!*call || !set_argument(call, "num_workers", number)) {
        dr_html_none(
            page,
            "The line that creates the loader is unknown: set the arguments above where it is created.");
        return;
    }
    if (plan->workers) {
        snprintf(number, sizeof number, "%u", plan->prefetch);
        set_argument(call, "prefetch_factor", number);
        if (plan->persistent != l->persistent)
            set_argument(call, "persistent_workers", python_bool(plan->persistent));
        if (plan->in_order != l->in_order)
            set_argument(call, "in_order", python_bool(plan->in_order));
    }
    fputs("<p class=path>", to);
    html_text(to, l->file);
    if (l->line)
        fprintf(to, ":%d", l->line);
    fputs("</p>\n<pre class=diff><del>- ", to);
    html_text(to, l->source);
    fputs("</del>\n<ins>+ <span data-copy>", to);
    html_text(to, call);
    fputs("</span></ins></pre><button class=copy type=button>copy the new line</button>\n", to);
}

void dr_html_settings(const struct dr_page *page)
{
    const struct dr_settings *l = &page->facts->loader;
    const struct dr_plan *plan = plan_of(page->verdict);
    dr_section_begin(page, "settings", "Settings", "");
    if (!*l->class_name) {
        dr_html_none(page, "No loader was seen in the training process.");
        dr_section_end(page);
        return;
    }
    fputs("<p class=lead>", page->to);
    html_text(page->to, l->class_name);
    fputs(" over ", page->to);
    html_text(page->to, *l->dataset ? l->dataset : "a dataset");
    if (*l->transform) {
        fputs(", ", page->to);
        html_text(page->to, l->transform);
    }
    fputs("</p>\n", page->to);
    put_table(page, plan);
    if (plan)
        put_diff(page, plan);
    else
        fputs("<p class=note>No finding recommends other loader settings.</p>\n", page->to);
    dr_section_end(page);
}
