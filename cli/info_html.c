/* info_html.c - what `stoker info` found out, as a page that needs nothing but itself
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/info.h"

#include "source/field_list.h"

#include <errno.h>
#include <stdio.h>

/* Text of the data set's own, which may hold anything. */
static void put_text(FILE *file, const char *text)
{
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'' || c < 32)
            fprintf(file, "&#%u;", c < 32 ? 32 : c);
        else
            fputc(c, file);
    }
}

static void put_row(FILE *file, const char *name, const char *value)
{
    fprintf(file, "<tr><th>%s</th><td>", name);
    put_text(file, value);
    fputs("</td></tr>\n", file);
}

static void put_numbers(FILE *file, const struct info *info)
{
    struct pack_size_text size;
    char text[200];
    const double each = info->looked_at ? (double)info->bytes / (double)info->looked_at : 0;
    put_row(file, "format", info->set->source->scheme);
    snprintf(text, sizeof text, "%llu", (unsigned long long)info->samples);
    put_row(file, "samples", text);
    put_row(file, "bytes a sample", pack_size(&size, each));
    put_row(file, "bytes in all, about", pack_size(&size, each * (double)info->samples));
    for (uint32_t i = 0; i < info->field_count; i++) {
        snprintf(text, sizeof text, "%.100s: %s", info->fields[i].name,
                 st_field_kind_name(info->fields[i].kind));
        put_row(file, "field", text);
    }
    if (info->decoded) {
        snprintf(text, sizeof text, "%.2f ms an image on one core",
                 1e3 * info->decode_seconds / (double)info->decoded);
        put_row(file, "decoding", text);
    }
}

static void put_sizes(FILE *file, const struct info *info)
{
    char name[32];
    fputs("<h2>Longer sides</h2>\n<table>\n", file);
    for (uint32_t i = 0; i < INFO_SIZES; i++) {
        const double share = info->images ? 100.0 * (double)info->sizes[i] / (double)info->images : 0;
        info_size_name(i, name);
        fprintf(file,
                "<tr><th>%s</th><td><div class=bar style=\"width:%.1fem\"></div> %.1f %%</td></tr>\n",
                name, share / 4, share);
    }
    fputs("</table>\n", file);
}

int info_write_html(const struct info *info, const char *path, struct stoker_error *err)
{
    FILE *file = fopen(path, "we");
    if (!file)
        return st_fail_errno(err, errno, "%s", path);
    fputs("<!doctype html>\n<meta charset=utf-8>\n<title>", file);
    put_text(file, info->data);
    fputs("</title>\n<style>body{font:15px sans-serif;margin:2em}th{text-align:left;padding-right:1em;"
          "font-weight:normal}.bar{display:inline-block;height:.8em;background:#478}figure{display:"
          "inline-block;"
          "margin:.5em;max-width:170px;vertical-align:top}figcaption{font-size:11px;overflow-wrap:"
          "anywhere}"
          "</style>\n<h1>",
          file);
    put_text(file, info->data);
    fputs("</h1>\n<table>\n", file);
    put_numbers(file, info);
    fputs("</table>\n", file);
    put_sizes(file, info);
    for (uint32_t i = 0; i < info->thumbnail_count; i++) {
        fprintf(file, "<figure><img alt=\"\" src=\"data:image/jpeg;base64,%s\"><figcaption>",
                info->thumbnails[i]);
        put_text(file, info->captions[i] ? info->captions[i] : "");
        fputs("</figcaption></figure>\n", file);
    }
    const int failed = ferror(file);
    if (fclose(file) || failed)
        return st_fail_errno(err, errno ? errno : EIO, "%s", path);
    return STOKER_OK;
}
