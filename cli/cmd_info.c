/* cmd_info.c - `stoker info`: what this build supports on this machine, or what a dataset contains
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include "cli/info.h"
#include "cli/json.h"

#include "source/fields/field_list.h"

#include <math.h>
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

static void write_build(void)
{
    struct json json = {.to = stdout};
    struct stoker_feature feature = {.size = sizeof feature};
    struct stoker_op op = {.size = sizeof op};
    json_open(&json, NULL, '{');
    json_string(&json, "version", stoker_version_string());
    json_count(&json, "cpus", stoker_cpu_count());
    json_open(&json, "features", '[');
    for (uint32_t i = 0; stoker_feature_at(i, &feature); i++) {
        json_open(&json, NULL, '{');
        json_string(&json, "kind", feature.kind);
        json_string(&json, "name", feature.name);
        json_bool(&json, "present", feature.present);
        json_string(&json, "detail", feature.detail);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_open(&json, "ops", '[');
    for (uint32_t i = 0; stoker_op_at(i, &op); i++) {
        json_open(&json, NULL, '{');
        json_string(&json, "name", op.name);
        json_string(&json, "help", op.help);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_close(&json, '}');
}

static int print_build(bool json)
{
    if (json) {
        write_build();
        return EXIT_OK;
    }
    printf("stoker %s\n", stoker_version_string());
    printf("CPUs this process may use: %u\n", stoker_cpu_count());
    print_features();
    print_ops();
    return EXIT_OK;
}

/* ---- a dataset -------------------------------------------------------------------------------- */

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
        printf("%-12s %.2f ms per image: an epoch takes one core about %s s\n", "decoding", 1e3 * each,
               with_commas(&room, each * (double)info->samples + 0.5));
    }
}

static void print_data(const struct info *info)
{
    struct number_text room;
    struct shown_text shown_room;
    struct bytes_text each_text, all_text;
    const double each = info->looked_at ? (double)info->bytes / (double)info->looked_at : 0;
    printf("%-12s %s\n%-12s %s\n", "data", shown(&shown_room, info->data), "format", info->set->kind);
    printf("%-12s %s\n", "samples", with_commas(&room, (double)info->samples));
    if (stoker_dataset_class_count(info->set))
        printf("%-12s %u\n", "classes", stoker_dataset_class_count(info->set));
    print_fields(info);
    printf("%-12s %s per sample, about %s in total\n", "size", with_unit(&each_text, each),
           with_unit(&all_text, each * (double)info->samples));
    if (info->images)
        print_images(info);
    if (info->sounds) {
        printf("%-12s %llu", "sounds", (unsigned long long)info->least_rate);
        if (info->most_rate > info->least_rate)
            printf(" to %llu", (unsigned long long)info->most_rate);
        printf(" Hz, %.1f s on average, about %.2f hours in total\n",
               info->sound_seconds / (double)info->sounds, info_hours(info));
    }
    if (stoker_dataset_note(info->set))
        printf("%-12s %s\n", "note", shown(&shown_room, stoker_dataset_note(info->set)));
    if (info->looked_at < info->samples)
        printf("%-12s from %llu samples, spread over the whole set\n", "estimated",
               (unsigned long long)info->looked_at);
    if (info->bad)
        printf("%-12s %llu of the samples examined; the first: %s\n", "bad",
               (unsigned long long)info->bad, shown(&shown_room, info->first_bad.message));
}

static void write_images(struct json *json, const struct info *info)
{
    json_open(json, "images", '{');
    json_count(json, "examined", info->images);
    json_open(json, "types", '{');
    for (size_t i = 0; i < sizeof info->types / sizeof *info->types; i++)
        if (info->types[i])
            json_count(json, info_types[i], info->types[i]);
    json_close(json, '}');
    json_count(json, "min_width", info->least_width);
    json_count(json, "max_width", info->most_width);
    json_count(json, "min_height", info->least_height);
    json_count(json, "max_height", info->most_height);
    json_number(json, "mean_pixels", (double)info->pixels / (double)info->images);
    json_open(json, "longer_side", '[');
    for (uint32_t i = 0; i < INFO_SIZES; i++) {
        json_open(json, NULL, '{');
        if (info_size_limit(i))
            json_count(json, "up_to", info_size_limit(i));
        else
            json_null(json, "up_to");
        json_count(json, "images", info->sizes[i]);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_number(json, "decode_seconds",
                info->decoded ? info->decode_seconds / (double)info->decoded : NAN);
    json_close(json, '}');
}

static void write_sounds(struct json *json, const struct info *info)
{
    json_open(json, "sounds", '{');
    json_count(json, "examined", info->sounds);
    json_count(json, "min_rate", info->least_rate);
    json_count(json, "max_rate", info->most_rate);
    json_number(json, "mean_seconds", info->sound_seconds / (double)info->sounds);
    json_number(json, "total_hours", info_hours(info));
    json_close(json, '}');
}

static void write_fields(struct json *json, const struct info *info)
{
    json_open(json, "fields", '[');
    for (uint32_t i = 0; i < info->field_count; i++) {
        const struct st_field *field = &info->fields[i];
        json_open(json, NULL, '{');
        json_string(json, "name", field->name);
        json_string(json, "kind", st_field_kind_name(field->kind));
        json_open(json, "shape", '[');
        for (int32_t k = 0; k < field->ndim; k++)
            json_number(json, NULL, field->shape[k] < 0 ? NAN : (double)field->shape[k]);
        json_close(json, ']');
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void write_data(const struct info *info)
{
    struct json json = {.to = stdout};
    const double each = info->looked_at ? (double)info->bytes / (double)info->looked_at : NAN;
    json_open(&json, NULL, '{');
    json_string(&json, "data", info->data);
    json_string(&json, "format", info->set->kind);
    json_count(&json, "samples", info->samples);
    json_count(&json, "classes", stoker_dataset_class_count(info->set));
    write_fields(&json, info);
    json_count(&json, "examined", info->looked_at);
    json_number(&json, "mean_bytes", each);
    json_number(&json, "total_bytes", each * (double)info->samples);
    if (info->images)
        write_images(&json, info);
    else
        json_null(&json, "images");
    if (info->sounds)
        write_sounds(&json, info);
    else
        json_null(&json, "sounds");
    json_string(&json, "note", stoker_dataset_note(info->set));
    json_count(&json, "bad", info->bad);
    json_string(&json, "first_bad", info->bad ? info->first_bad.message : NULL);
    json_close(&json, '}');
}

struct info_options {
    const char *data, *fields, *html;
    bool json;
};

static int print_info(const struct info_options *opt)
{
    struct info info = {.data = opt->data};
    struct stoker_error err = {0};
    struct st_location place;
    int rc = pack_data_open(&info.set, &place, opt->data, opt->fields, &err);
    if (!rc)
        rc = info_gather(&info, opt->html != NULL, &err);
    if (!rc)
        (opt->json ? write_data : print_data)(&info);
    if (!rc && opt->html)
        rc = info_write_html(&info, opt->html, &err);
    info_free(&info);
    st_location_free(&place);
    return rc ? fail(EXIT_FAILED, "%s", err.message) : EXIT_OK;
}

static int info_run(int argc, char **argv)
{
    struct info_options opt = {0};
    struct arguments args = ARGUMENTS(&cmd_info, argc, argv);
    while (next_argument(&args)) {
        if (option_is(&args, "--html"))
            opt.html = args.value;
        else if (option_is(&args, "--fields"))
            opt.fields = args.value;
        else if (option_is(&args, "--json"))
            opt.json = true;
        else if (opt.data)
            refuse_argument(&args);
        else
            opt.data = args.word;
    }
    if (args.failed)
        return EXIT_USAGE;
    if (!opt.data && (opt.html || opt.fields))
        return fail(EXIT_USAGE,
                    "info: %s needs a dataset. Example: stoker info path/to/train --html page.html",
                    opt.html ? "--html" : "--fields");
    return opt.data ? print_info(&opt) : print_build(opt.json);
}

static const struct cli_option options[] = {
    {"--fields", "LIST", "the fields to read, such as \"jpg,cls\" (default: chosen by the dataset)",
     "a list of field names, such as \"jpg,cls\""},
    {"--html", "FILE", "also write the result as a page, with a few thumbnails", "the name of a file",
     .completes = COMPLETES_FILES},
    {"--json", NULL, "print the result as JSON"},
    {NULL},
};

const struct command cmd_info = {
    .name = "info",
    .summary = "show what this build supports on this machine; with DATA, what a dataset contains",
    .synopsis = "[DATA] [OPTIONS]",
    .about = "Without DATA: the codecs and libraries of this build, the kernels chosen for this CPU,\n"
             "how files are read, how many CPUs this process may use, and the ops that a pipeline\n"
             "can use.\n"
             "\n"
             "With DATA (any dataset that Stoker opens, or a folder that 'stoker pack' wrote): its\n"
             "format, number of samples and fields, and, from up to 1,000 samples, their sizes,\n"
             "resolutions or lengths, and what it costs to decode them.",
    .options = options,
    .arguments = COMPLETES_FILES,
    .run = info_run,
};
