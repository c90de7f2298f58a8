/* out.c - escapes arbitrary text for JSON and HTML; the frame of all pages
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/out.h"

#include "base/text.h"

#include <stdbool.h>
#include <string.h>

size_t json_character(char *out, const char **at)
{
    const unsigned char c = (unsigned char)**at;
    const size_t size = st_utf8_size(*at);
    char text[JSON_CHARACTER + 1];
    uint32_t point;
    if (st_plain_size(*at, &point) > 1) {
        memcpy(out, *at, size);
        *at += size;
        return size;
    }
    int used;
    if (c == '"' || c == '\\')
        used = snprintf(text, sizeof text, "\\%c", c);
    else if (size > 1)
        used =
            snprintf(text, sizeof text, "\\u%04x", point); /* all that are not plain have four digits */
    else
        used = snprintf(text, sizeof text, c < 32 || c >= 127 || c == '<' ? "\\u%04x" : "%c", c);
    memcpy(out, text, (size_t)used);
    *at += size ? size : 1;
    return (size_t)used;
}

void json_text(FILE *to, const char *text)
{
    char out[JSON_CHARACTER];
    fputc('"', to);
    while (*text)
        fwrite(out, 1, json_character(out, &text), to);
    fputc('"', to);
}

void html_text(FILE *to, const char *text)
{
    while (*text) {
        const unsigned char c = (unsigned char)*text;
        const size_t size = st_utf8_size(text);
        uint32_t point;
        const bool plain = st_plain_size(text, &point);
        if (!plain && size && point < 0xa0)
            fputc(' ', to); /* a control character */
        else if (!plain)
            fputs("\xef\xbf\xbd", to); /* U+FFFD: replacement character */
        else if (strchr("<>&\"'", c))
            fprintf(to, "&#%u;", c);
        else
            fwrite(text, 1, size, to);
        text += size ? size : 1;
    }
}

static const char page_style[] =
    ":root{color-scheme:light dark;--page:#f5f6f7;--card:#fff;--text:#1b2026;--quiet:#5b6672;"
    "--line:#dfe3e8;--bar:#2f6f8f;--track:#e8ecef;--warn:#a33c12;--warn-page:#fdf1ea}\n"
    "@media(prefers-color-scheme:dark){:root{--page:#14181c;--card:#1d2329;--text:#e6eaee;"
    "--quiet:#9aa5b1;--line:#303841;--bar:#6db3d4;--track:#2a3139;--warn:#ffb38f;--warn-page:#33221a}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--page);color:var(--text);"
    "font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}\n"
    "main{max-width:1080px;margin:0 auto;padding:32px 24px 48px}\n"
    "h1{font-size:26px;line-height:1.25;margin:0;overflow-wrap:anywhere}\n"
    "h2{font-size:17px;margin:0 0 12px}\n"
    ".path{margin:4px 0 0;color:var(--quiet);overflow-wrap:anywhere}\n"
    ".card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:20px;"
    "margin-top:20px;min-width:0}\n"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;"
    "margin:24px 0 0}\n"
    ".tiles div{background:var(--card);border:1px solid var(--line);border-radius:10px;"
    "padding:14px 16px}\n"
    ".tiles dt{color:var(--quiet);font-size:13px}\n"
    ".tiles dd{margin:2px 0 0;font-size:21px;font-weight:600;line-height:1.3;"
    "font-variant-numeric:tabular-nums}\n"
    "table{border-collapse:collapse;width:100%}\n"
    "th,td{text-align:left;padding:6px 16px 6px 0;border-top:1px solid var(--line);"
    "overflow-wrap:anywhere;vertical-align:top}\n"
    "tr:first-child th,tr:first-child td{border-top:0}\n"
    "th{font-weight:600}td{color:var(--quiet)}\n"
    ".said{margin:14px 0 0;color:var(--quiet)}\n"
    ".warn{background:var(--warn-page);border-color:var(--warn)}.warn b{color:var(--warn)}\n"
    ".warn{overflow-wrap:anywhere}\n"
    "footer{margin-top:24px;color:var(--quiet);font-size:13px}\n"
    "@media(max-width:640px){main{padding:20px 14px 32px}.card{padding:16px}h1{font-size:22px}"
    ".tiles{grid-template-columns:1fr 1fr;gap:8px;margin-top:16px}"
    ".tiles div{padding:10px 12px}.tiles dd{font-size:18px}}\n";

void html_begin(FILE *to, const char *title, const char *style)
{
    fputs("<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
          "<meta name=viewport content=\"width=device-width,initial-scale=1\">\n"
          /* whatever a name contains, the browser loads nothing */
          "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; img-src data:; "
          "style-src "
          "'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>",
          to);
    html_text(to, title);
    fprintf(to, "</title>\n<style>\n%s%s</style>\n</head>\n<body>\n<main>\n", page_style, style);
}

void html_tile(FILE *to, const char *name, const char *value)
{
    fprintf(to, "<div><dt>%s</dt><dd>", name);
    html_text(to, value);
    fputs("</dd></div>\n", to);
}
