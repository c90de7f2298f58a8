/* test_report.c - what the reports write is JSON and a page, whatever the run and its names hold
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "report_sample.h"

#include "cli/cli.h"
#include "base/text.h"
#include "cli/out.h"
#include "tap.h"

#include <ctype.h>

/* ---- a strict reader of JSON ---------------------------------------------------------------------- */

static const char *value_end(const char *at, int depth);

static const char *skip_blanks(const char *at) { return at + strspn(at, " \t\r\n"); }

static const char *text_end(const char *at)
{
    if (*at++ != '"')
        return NULL;
    while (*at != '"') {
        const size_t size = st_utf8_size(at);
        if (!size || (unsigned char)*at < 32)
            return NULL;
        if (*at == '\\') {
            if (at[1] == 'u') {
                for (int i = 2; i < 6; i++)
                    if (!isxdigit((unsigned char)at[i]))
                        return NULL;
                at += 6;
                continue;
            }
            if (!at[1] || !strchr("\"\\/bfnrt", at[1]))
                return NULL;
            at++;
        }
        at += size;
    }
    return at + 1;
}

static const char *number_end(const char *at)
{
    at += *at == '-';
    if (!isdigit((unsigned char)*at) || (*at == '0' && isdigit((unsigned char)at[1])))
        return NULL;
    at += strspn(at, "0123456789");
    if (*at == '.') {
        if (!isdigit((unsigned char)at[1]))
            return NULL;
        at += 1 + strspn(at + 1, "0123456789");
    }
    if (*at == 'e' || *at == 'E') {
        at += 1 + (at[1] == '+' || at[1] == '-');
        if (!isdigit((unsigned char)*at))
            return NULL;
        at += strspn(at, "0123456789");
    }
    return at;
}

static const char *members_end(const char *at, bool object, int depth)
{
    const char close = object ? '}' : ']';
    at = skip_blanks(at + 1);
    if (*at == close)
        return at + 1;
    for (;;) {
        if (object) {
            at = text_end(skip_blanks(at));
            if (!at || *(at = skip_blanks(at)) != ':')
                return NULL;
            at++;
        }
        at = value_end(skip_blanks(at), depth + 1);
        if (!at)
            return NULL;
        at = skip_blanks(at);
        if (*at == close)
            return at + 1;
        if (*at++ != ',')
            return NULL;
    }
}

static const char *value_end(const char *at, int depth)
{
    if (depth > 32)
        return NULL;
    if (*at == '{' || *at == '[')
        return members_end(at, *at == '{', depth);
    if (*at == '"')
        return text_end(at);
    for (const char *const *word = (const char *const[]){"true", "false", "null", NULL}; *word; word++)
        if (!strncmp(at, *word, strlen(*word)))
            return at + strlen(*word);
    return number_end(at);
}

static bool is_json(const char *text)
{
    const char *end = value_end(skip_blanks(text), 0);
    return end && !*skip_blanks(end);
}

/* ---- pages ---------------------------------------------------------------------------------------- */

/* Whether tags are closed as they were opened, and all is UTF-8 without control characters. */
static bool is_page(const char *text)
{
    char open[64][16];
    int depth = 0;
    for (const char *at = text; *at; at += st_utf8_size(at)) {
        if (!st_utf8_size(at) || ((unsigned char)*at < 32 && *at != '\n'))
            return false;
        if (*at != '<' || at[1] == '!')
            continue;
        const bool closes = at[1] == '/';
        char name[16];
        const size_t length = strspn(at + 1 + closes, "abcdefghijklmnopqrstuvwxyz0123456789");
        const char *end = strchr(at, '>');
        if (!end || !length || length >= sizeof name)
            return false;
        snprintf(name, sizeof name, "%.*s", (int)length, at + 1 + closes);
        if (closes) {
            if (!depth || strcmp(open[--depth], name) != 0)
                return false;
        } else if (strcmp(name, "meta") != 0 && strcmp(name, "input") != 0 && end[-1] != '/') {
            if (depth == 64)
                return false;
            strcpy(open[depth++], name);
            if (!strcmp(name, "script") || !strcmp(name, "style")) {
                const char *last = strstr(at, !strcmp(name, "script") ? "</script>" : "</style>");
                if (!last)
                    return false;
                at = last - 1;
            }
        }
    }
    return depth == 0;
}

static char *written(const struct sample *s, int form)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        abort();
    int rc = form == 0   ? dr_write_json(to, &s->verdict, &s->facts)
             : form == 1 ? dr_write_trace(to, &s->facts)
                         : dr_write_html(to, &s->verdict, &s->facts);
    rc |= fclose(to);
    if (rc)
        abort();
    return text;
}

static void check_kind(enum sample_kind kind)
{
    static struct sample s;
    sample_open(&s, kind);
    char *json = written(&s, 0), *trace = written(&s, 1), *html = written(&s, 2);
    ok(is_json(json), "%s: run.json is JSON", sample_names[kind]);
    ok(is_json(trace), "%s: trace.json is JSON", sample_names[kind]);
    ok(is_page(html), "%s: the page's tags are closed as they were opened", sample_names[kind]);
    ok(!strstr(html, "</script><b>") && !strstr(html, ">nan") && !strstr(html, ">inf") &&
           !strstr(html, "-nan"),
       "%s: no name becomes a tag, and nothing unknown a number", sample_names[kind]);
    ok(strlen(json) < 4u << 20 && strlen(html) < 1u << 20 && strlen(trace) < 8u << 20,
       "%s: none of the files is large: %zu, %zu, %zu bytes", sample_names[kind], strlen(json),
       strlen(html), strlen(trace));
    if (kind == SAMPLE_RICH)
        ok(strstr(html, "num_workers=11, pin_memory=True, prefetch_factor=4, persistent_workers=True)"),
           "the new line has the new settings, and the old ones that stay");
    if (kind == SAMPLE_CPU)
        ok(strstr(html, "no GPU was sampled in this run") != NULL, "without a GPU its part says so");
    if (kind == SAMPLE_UNKNOWN)
        ok(strstr(html, "No step was measured") && strstr(json, "\"code\": \"ST901\""),
           "a run without data says so");
    free(json);
    free(trace);
    free(html);
    sample_close(&s);
}

static void check_text(void)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    json_text(to, "a\"\\\n\x7f<\xc3\xa9\xff\xc2\x85");
    fclose(to);
    ok(!strcmp(text, "\"a\\\"\\\\\\u000a\\u007f\\u003c\xc3\xa9\\u00ff\\u0085\""), "text in JSON: %s",
       text);
    free(text);
    to = open_memstream(&text, &size);
    html_text(to, "a<b>&\"'\n\xff\xc3\xa9");
    fclose(to);
    ok(!strcmp(text, "a&#60;b&#62;&#38;&#34;&#39; \xef\xbf\xbd\xc3\xa9"), "text in a page: %s", text);
    free(text);
}

int main(void)
{
    ok(is_json("{\"a\": [1, -2.5e3, null, \"\\u00e9\"]}") && !is_json("{\"a\": nan}") &&
           !is_json("[1,]") && !is_json("\"\xff\""),
       "the checker tells JSON from what is none");
    check_text();
    for (int kind = 0; kind < SAMPLE_KINDS; kind++)
        if (kind == SAMPLE_KINDS - 1 || share_of(100) > 50) /* where it takes long, the hostile one alone */
            check_kind((enum sample_kind)kind);
    return done_testing();
}
