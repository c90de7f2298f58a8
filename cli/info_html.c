/* info_html.c - the result of `stoker info` as a self-contained page
 *
 * It has no script and loads no font or other file, so that it can be mailed and opens without a
 * network. It follows the browser's choice of light or dark.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/info.h"

#include "base/text.h"

#include "cli/cli.h"
#include "cli/out.h"

#include "source/fields/field_list.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char style[] =
    ".pair{display:grid;grid-template-columns:minmax(0,2fr) minmax(0,3fr);gap:0 20px}\n"
    ".bars{display:grid;grid-template-columns:max-content minmax(40px,1fr) max-content;gap:7px 12px;"
    "align-items:center;font-variant-numeric:tabular-nums}\n"
    ".bars span:nth-child(3n){text-align:right;color:var(--quiet)}\n"
    ".track{display:block;height:14px;background:var(--track);border-radius:3px;overflow:hidden}\n"
    ".track i{display:block;height:100%;background:var(--bar);border-radius:3px}\n"
    ".shots{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:18px 14px}\n"
    "figure{margin:0;min-width:0}\n"
    "figure span{display:flex;height:160px;align-items:center;justify-content:center;"
    "background:var(--track);border-radius:6px;overflow:hidden}\n"
    "figure img{display:block;max-width:100%;max-height:160px}\n"
    "figcaption{margin-top:6px;font-size:12.5px;line-height:1.4;overflow-wrap:anywhere}\n"
    "figcaption small{display:block;color:var(--quiet);font-size:12px}\n"
    "@media(max-width:640px){.pair{display:block}.shots{grid-template-columns:1fr 1fr;gap:14px 10px}}\n";

/* ---- numbers ----------------------------------------------------------------------------------- */

/* "80 ms", "0.8 s", "12 min", "3.1 h". */
static void time_text(char *out, size_t size, double seconds)
{
    if (seconds < 0.5)
        snprintf(out, size, "%.0f ms", 1e3 * seconds);
    else if (seconds < 120)
        snprintf(out, size, seconds < 10 ? "%.1f s" : "%.0f s", seconds);
    else
        snprintf(out, size, seconds < 7200 ? "%.0f min" : "%.1f h",
                 seconds < 7200 ? seconds / 60 : seconds / 3600);
}

static void put_tiles(FILE *file, const struct info *info)
{
    struct bytes_text size;
    struct number_text number;
    char text[64];
    const double each = info->looked_at ? (double)info->bytes / (double)info->looked_at : 0;
    const uint32_t classes = stoker_dataset_class_count(info->set);
    fputs("<dl class=tiles>\n", file);
    html_tile(file, "samples", with_commas(&number, (double)info->samples));
    if (classes)
        html_tile(file, "classes", with_commas(&number, classes));
    html_tile(file, "total, about", with_unit(&size, each * (double)info->samples));
    html_tile(file, "per sample", with_unit(&size, each));
    if (info->sounds) {
        snprintf(text, sizeof text, "%.1f s", info->sound_seconds / (double)info->sounds);
        html_tile(file, "per sound", text);
        snprintf(text, sizeof text, "%.2f h", info_hours(info));
        html_tile(file, "of sound in total", text);
    }
    if (info->decoded) {
        const double decode = info->decode_seconds / (double)info->decoded;
        snprintf(text, sizeof text, "%.2f ms", 1e3 * decode);
        html_tile(file, "decoding, per image", text);
        time_text(text, sizeof text, decode * (double)info->samples);
        html_tile(file, "epoch on one core", text);
    }
    fputs("</dl>\n", file);
}

static void put_fields(FILE *file, const struct info *info)
{
    fputs("<section class=card>\n<h2>Fields</h2>\n<table>\n", file);
    for (uint32_t i = 0; i < info->field_count; i++) {
        const struct st_field *field = &info->fields[i];
        char shape[ST_DIMS_MAX * 24 + 32] = "";
        int used = 0;
        for (int32_t k = 0; k < field->ndim; k++)
            used += field->shape[k] < 0
                        ? snprintf(shape + used, sizeof shape - (size_t)used, "%sany", k ? " × " : ", ")
                        : snprintf(shape + used, sizeof shape - (size_t)used, "%s%lld", k ? " × " : ", ",
                                   (long long)field->shape[k]);
        fputs("<tr><th>", file);
        html_text(file, field->name);
        fprintf(file, "</th><td>%s%s</td></tr>\n", st_field_kind_name(field->kind), shape);
    }
    fputs("</table>\n</section>\n", file);
}

static void put_bar(FILE *file, const char *name, double percent)
{
    fprintf(
        file,
        "<span>%s</span><span class=track><i style=\"width:%.1f%%\"></i></span><span>%.1f %%</span>\n",
        name, percent, percent);
}

/* A histogram of the longer sides, from the smallest size that occurs to the largest. */
static void put_images(FILE *file, const struct info *info)
{
    const double images = (double)info->images;
    uint32_t first = 0, last = INFO_SIZES - 1;
    char name[32];
    while (first < last && !info->sizes[first])
        first++;
    while (last > first && !info->sizes[last])
        last--;
    fputs("<section class=card>\n<h2>Longer side, in pixels</h2>\n<div class=bars>\n", file);
    for (uint32_t i = first; i <= last; i++) {
        info_size_name(i, name);
        put_bar(file, name, 100 * (double)info->sizes[i] / images);
    }
    fprintf(file, "</div>\n<p class=said>%u × %u to %u × %u, %.2f megapixels on average",
            info->least_width, info->least_height, info->most_width, info->most_height,
            (double)info->pixels / images / 1e6);
    for (size_t i = 0; i < sizeof info->types / sizeof *info->types; i++)
        if (info->types[i])
            fprintf(file, "; %s %.1f %%", info_types[i], 100 * (double)info->types[i] / images);
    fputs("</p>\n</section>\n", file);
}

/* ---- the page ---------------------------------------------------------------------------------- */

static void put_warnings(FILE *file, const struct info *info)
{
    const char *note = info->set->source->note ? info->set->source->note(info->set->self) : NULL;
    struct number_text bad, all;
    if (info->bad) {
        fprintf(file,
                "<section class=\"card warn\"><b>%s of %s examined samples %s bad.</b> The first: ",
                with_commas(&bad, (double)info->bad), with_commas(&all, (double)info->looked_at),
                info->bad == 1 ? "is" : "are");
        html_text(file, info->first_bad.message);
        fputs("</section>\n", file);
    }
    if (note) {
        fputs("<section class=card><b>Note.</b> ", file);
        html_text(file, note);
        fputs("</section>\n", file);
    }
}

static void put_thumbnails(FILE *file, const struct info *info)
{
    if (!info->thumbnail_count)
        return;
    fputs("<section class=card>\n<h2>Some samples</h2>\n<div class=shots>\n", file);
    for (uint32_t i = 0; i < info->thumbnail_count; i++) {
        const struct info_thumbnail *shot = &info->thumbnails[i];
        fprintf(file,
                "<figure><span><img alt=\"\" src=\"data:image/jpeg;base64,%s\"></span><figcaption>",
                shot->base64);
        html_text(file, shot->caption ? shot->caption : "");
        fprintf(file, "<small>%u × %u</small></figcaption></figure>\n", shot->width, shot->height);
    }
    fputs("</div>\n</section>\n", file);
}

/* The last component of a path. */
static const char *short_name(const char *data)
{
    const char *name = data;
    for (const char *c = data; *c; c++)
        if (*c == '/' && c[1])
            name = c + 1;
    return name;
}

static void put_page(FILE *file, const struct info *info)
{
    struct number_text looked_at, samples;
    html_begin(file, short_name(info->data), style);
    fputs("<h1>", file);
    html_text(file, short_name(info->data));
    fprintf(file, "</h1>\n<p class=path>%s: ", info->set->kind);
    html_text(file, info->data);
    fputs("</p>\n", file);
    put_tiles(file, info);
    put_warnings(file, info);
    fprintf(file, "<div%s>\n", info->images ? " class=pair" : "");
    put_fields(file, info);
    if (info->images)
        put_images(file, info);
    fputs("</div>\n", file);
    put_thumbnails(file, info);
    fprintf(file, "<footer>From %s of %s sample%s%s. Stoker %s.</footer>\n</main>\n</body>\n</html>\n",
            with_commas(&looked_at, (double)info->looked_at),
            with_commas(&samples, (double)info->samples), st_s(info->samples),
            info->looked_at < info->samples ? ", spread over the whole set" : "",
            stoker_version_string());
}

int info_write_html(const struct info *info, const char *path, struct stoker_error *err)
{
    FILE *file = fopen(path, "we");
    if (!file)
        return st_fail_errno(err, errno, "%s", path);
    put_page(file, info);
    const int failed = ferror(file);
    if (fclose(file) || failed)
        return st_fail_errno(err, errno ? errno : EIO, "%s", path);
    return STOKER_OK;
}
