/* cmd_info.c - `stoker info`: what this build can do on this machine, or what a data set holds
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include "cli/info.h"

#include "source/field_list.h"

#include <stdio.h>
#include <string.h>

static void print_features(void)
{
    struct stoker_feature feature = {.size = sizeof feature};
    const char *kind = "";
    for (uint32_t i = 0; stoker_feature_at(i, &feature); i++) {
        if (strcmp(kind, feature.kind))
            printf("\n%s\n", feature.kind);
        kind = feature.kind;
        printf("  %-14s %-4s %s\n", feature.name, feature.present ? "yes" : "no",
               feature.detail ? feature.detail : "");
    }
}

static void print_ops(void)
{
    struct stoker_op op = {.size = sizeof op};
    puts("\nops");
    for (uint32_t i = 0; stoker_op_at(i, &op); i++)
        printf("  %-24s %s\n", op.name, op.help ? op.help : "");
}

static int print_build(void)
{
    printf("stoker %s\n", stoker_version_string());
    printf("CPUs this process may use: %u\n", stoker_cpu_count());
    print_features();
    print_ops();
    return EXIT_OK;
}

/* ---- a data set -------------------------------------------------------------------------------- */

static void print_fields(const struct info *info)
{
    for (uint32_t i = 0; i < info->field_count; i++) {
        const struct st_field *field = &info->fields[i];
        struct shown_text name;
        printf("%-12s %s: %s", i ? "" : "fields", shown(&name, field->name),
               st_field_kind_name(field->kind));
        for (int32_t k = 0; k < field->ndim; k++) {
            fputs(k ? " x " : " of ", stdout);
            if (field->shape[k] < 0)
                fputs("any", stdout);
            else
                printf("%lld", (long long)field->shape[k]);
        }
        putchar('\n');
    }
}

static void print_images(const struct info *info)
{
    enum { WIDTH = 30 };
    struct number_text room;
    char name[32];
    bool any = false;
    for (size_t i = 0; i < sizeof info->types / sizeof *info->types; i++) {
        if (!info->types[i])
            continue;
        printf("%-*s%s %.1f %%", any ? 0 : 13, any ? ", " : "images", info_types[i],
               100.0 * (double)info->types[i] / (double)info->images);
        any = true;
    }
    printf("%s%-12s %u x %u to %u x %u, %.2f megapixels on average\n", any ? "\n" : "", "resolution",
           info->least_width, info->least_height, info->most_width, info->most_height,
           (double)info->pixels / (double)info->images / 1e6);
    for (uint32_t i = 0; i < INFO_SIZES; i++) {
        const double share = (double)info->sizes[i] / (double)info->images;
        if (info->sizes[i] == 0)
            continue;
        info_size_name(i, name);
        printf("  %-16s %5.1f %%  ", name, 100 * share);
        for (int k = 0; k < (int)(WIDTH * share + 0.5); k++)
            putchar('#');
        putchar('\n');
    }
    if (info->decoded) {
        const double each = info->decode_seconds / (double)info->decoded;
        printf("%-12s %.2f ms an image, so an epoch takes one core about %s s\n", "decoding", 1e3 * each,
               with_commas(&room, each * (double)info->samples + 0.5));
    }
}

static void print_data(const struct info *info)
{
    struct number_text room;
    struct bytes_text each_text, all_text;
    const double each = info->looked_at ? (double)info->bytes / (double)info->looked_at : 0;
    printf("%-12s %s\n%-12s %s\n", "data", info->data, "format", info->set->kind);
    printf("%-12s %s\n", "samples", with_commas(&room, (double)info->samples));
    if (stoker_dataset_class_count(info->set))
        printf("%-12s %u\n", "classes", stoker_dataset_class_count(info->set));
    print_fields(info);
    printf("%-12s %s a sample, about %s in all\n", "size", with_unit(&each_text, each),
           with_unit(&all_text, each * (double)info->samples));
    if (info->images)
        print_images(info);
    if (info->sounds) {
        printf("%-12s %llu", "sounds", (unsigned long long)info->least_rate);
        if (info->most_rate > info->least_rate)
            printf(" to %llu", (unsigned long long)info->most_rate);
        printf(" Hz, %.1f s on average, about %.2f hours in all\n",
               info->sound_seconds / (double)info->sounds, info_hours(info));
    }
    struct shown_text shown_room;
    if (stoker_dataset_note(info->set))
        printf("%-12s %s\n", "note", shown(&shown_room, stoker_dataset_note(info->set)));
    if (info->looked_at < info->samples)
        printf("%-12s by %llu samples, spread over the whole set\n", "estimated",
               (unsigned long long)info->looked_at);
    if (info->bad)
        printf("%-12s %llu of the samples looked at, the first: %s\n", "bad",
               (unsigned long long)info->bad, shown(&shown_room, info->first_bad.message));
}

static int print_info(const char *data, const char *fields, const char *html)
{
    struct info info = {.data = data};
    struct stoker_error err = {0};
    struct st_location place;
    int rc = pack_data_open(&info.set, &place, data, fields, &err);
    if (!rc)
        rc = info_gather(&info, html != NULL, &err);
    if (!rc)
        print_data(&info);
    if (!rc && html)
        rc = info_write_html(&info, html, &err);
    info_free(&info);
    st_location_free(&place);
    return rc ? fail(EXIT_FAILED, "%s", err.message) : EXIT_OK;
}

static int info_run(int argc, char **argv)
{
    const char *data = NULL, *fields = NULL, *html = NULL;
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i];
        const bool is_html = option_is(option, "--html");
        if (is_html || option_is(option, "--fields")) {
            const char *value = option_value(argc, argv, &i);
            if (!value)
                return fail(EXIT_USAGE, "'%s' wants a value: see 'stoker help info'", option);
            *(is_html ? &html : &fields) = value;
        } else if (option[0] == '-' || data) {
            return fail(EXIT_USAGE, "info does not know what to do with '%s': see 'stoker help info'",
                        option);
        } else {
            data = option;
        }
    }
    if (!data && (html || fields))
        return fail(EXIT_USAGE, "which data set? Example: stoker info path/to/train --html page.html");
    return data ? print_info(data, fields, html) : print_build();
}

const struct command cmd_info = {
    .name = "info",
    .summary = "what this build can do on this machine; with DATA, what a data set holds",
    .usage =
        "usage: stoker info [DATA] [OPTIONS]\n"
        "\n"
        "Without DATA: the codecs and libraries of this build, the kernels chosen for this CPU, how\n"
        "files are read, how many CPUs this process may use, and the ops that a pipeline can name.\n"
        "With DATA, any data set that Stoker opens or a folder that 'stoker pack' wrote: its format,\n"
        "samples and fields, and, by up to 1,000 samples, their sizes, resolutions or lengths, and "
        "what\n"
        "it costs to decode them.\n"
        "\n"
        "  --fields LIST  which fields, such as \"jpg,cls\" (default: the data set's own choice)\n"
        "  --html FILE    the same as a page, with a few thumbnails\n",
    .run = info_run,
};
