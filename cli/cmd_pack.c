/* cmd_pack.c - `stoker pack`: writes a data set anew, in another format or ready to be read faster
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include "cli/pack/pack.h"

#include "st_config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE_MOST = 65500 }; /* of a JPEG file */
#define SHARD_SIZE ((uint64_t)1 << 30)

/* "64M", "1G": binary multiples, as everywhere where files are cut. */
static bool parse_size(const char *text, uint64_t *out)
{
    static const char units[] = "KMGT";
    char digits[32];
    if (!text || strlen(text) >= sizeof digits)
        return false;
    strcpy(digits, text);
    const size_t size = strlen(digits);
    const char *unit = size ? strchr(units, digits[size - 1]) : NULL;
    int shift = 0;
    if (unit && *unit) {
        shift = 10 * (int)(unit - units + 1);
        digits[size - 1] = '\0';
    }
    if (!parse_count(digits, 1, (uint64_t)1 << 22, out) &&
        (shift || !parse_count(digits, 1, UINT64_MAX, out)))
        return false;
    *out <<= shift;
    return *out >= 4096;
}

static bool parse_resize(const char *text, struct pack_options *opt)
{
    char width[16];
    const char *x = text ? strchr(text, 'x') : NULL;
    if (!x)
        return parse_count(text, 1, SIDE_MOST, &opt->resize_width);
    const size_t size = (size_t)(x - text);
    if (size >= sizeof width)
        return false;
    memcpy(width, text, size);
    width[size] = '\0';
    return parse_count(width, 1, SIDE_MOST, &opt->resize_width) &&
           parse_count(x + 1, 1, SIDE_MOST, &opt->resize_height);
}

static bool parse_format(const char *text, struct pack_options *opt)
{
    for (size_t i = 0; text && pack_writers[i]; i++)
        if (!strcmp(pack_writers[i]->name, text)) {
            opt->writer = pack_writers[i];
            return true;
        }
    return false;
}

static bool parse_word(const char *text, const char *yes, const char *no, bool *out)
{
    if (!text || (strcmp(text, yes) && !(no && !strcmp(text, no))))
        return false;
    *out = !strcmp(text, yes);
    return true;
}

/* One option with its value. */
static bool take_option(struct pack_options *opt, int argc, char **argv, int *at, bool *known)
{
    const char *option = argv[*at];
    *known = true;
    if (option_is(option, "--format"))
        return parse_format(option_value(argc, argv, at), opt);
    if (option_is(option, "--fields"))
        return (opt->fields = option_value(argc, argv, at)) != NULL;
    if (option_is(option, "--resize"))
        return parse_resize(option_value(argc, argv, at), opt);
    if (option_is(option, "--max-size"))
        return parse_count(option_value(argc, argv, at), 1, SIDE_MOST, &opt->max_size);
    if (option_is(option, "--quality"))
        return parse_count(option_value(argc, argv, at), 1, 100, &opt->quality);
    if (option_is(option, "--shard-size"))
        return parse_size(option_value(argc, argv, at), &opt->shard_size);
    if (option_is(option, "--workers"))
        return parse_count(option_value(argc, argv, at), 1, 1024, &opt->workers);
    if (option_is(option, "--shuffle"))
        return opt->shuffle = true, parse_count(option_value(argc, argv, at), 0, UINT64_MAX, &opt->seed);
    if (option_is(option, "--compress"))
        return parse_word(option_value(argc, argv, at), "zstd", NULL, &opt->compress) && ST_HAVE_ZSTD;
    if (option_is(option, "--on-error"))
        return parse_word(option_value(argc, argv, at), "skip", "raise", &opt->skip_bad);
    if (!strcmp(option, "--crop-ready"))
        return opt->crop_ready = true;
    if (!strcmp(option, "--quiet"))
        return opt->quiet = true;
    return *known = false;
}

static int parse(struct pack_options *opt, int argc, char **argv)
{
    static const char *const names[] = {"--format",   "--fields",     "--resize",     "--max-size",
                                        "--quality",  "--shard-size", "--workers",    "--shuffle",
                                        "--compress", "--on-error",   "--crop-ready", "--quiet",
                                        NULL};
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i];
        bool known;
        if (option[0] != '-') {
            if (opt->folder)
                return fail(PACK_USAGE, "pack takes SRC and DST: '%s' is one too many", option);
            *(opt->source ? &opt->folder : &opt->source) = option;
            continue;
        }
        const bool good = take_option(opt, argc, argv, &i, &known);
        if (!known) {
            const char *near = nearest_name(option, names);
            return fail(PACK_USAGE, "pack has no option '%s'.%s%s%s", option,
                        near ? " Did you mean '" : "", near ? near : "", near ? "'?" : "");
        }
        if (!good)
            return fail(PACK_USAGE,
                        "'%s' wants another value, or this build cannot do that: see 'stoker help pack'",
                        option);
    }
    if (!opt->folder)
        return fail(PACK_USAGE,
                    "which data set, and where to? Example: stoker pack path/to/train packed");
    if (opt->writer->pixels && (opt->quality || opt->crop_ready || opt->compress))
        return fail(PACK_USAGE,
                    "--format %s holds pixels: --quality, --crop-ready and --compress do not apply",
                    opt->writer->name);
    if (opt->compress && opt->writer != &pack_writer_tar)
        return fail(PACK_USAGE, "--compress is for --format tar");
    return PACK_OK;
}

static void print_summary(const struct pack_options *opt, const struct pack_result *r)
{
    struct number_text samples, bad;
    struct bytes_text in, out, rate;
    if (r->nothing_to_do) {
        printf("%s: complete already, %s samples in %llu files; nothing to do\n", opt->folder,
               with_commas(&samples, (double)r->samples), (unsigned long long)r->shards);
        return;
    }
    printf("packed       %s samples into %llu %s of %s in %s\n",
           with_commas(&samples, (double)r->samples), (unsigned long long)r->shards,
           r->shards == 1 ? "file" : "files", with_unit(&out, (double)r->bytes_out), opt->folder);
    if (r->resumed)
        printf("resumed      %s were done before\n", with_commas(&samples, (double)r->resumed));
    if (r->seconds > 0 && r->bytes_in)
        printf("read         %s at %s/s, %.0f samples/s, %.1f s\n", with_unit(&in, (double)r->bytes_in),
               with_unit(&rate, (double)r->bytes_in / r->seconds), (double)r->done / r->seconds,
               r->seconds);
    if (opt->crop_ready)
        printf("crop-ready   %s JPEG files, %.3f of their size; %s kept as they were\n",
               with_commas(&samples, (double)r->ready),
               r->ready_in ? (double)r->ready_out / (double)r->ready_in : 1,
               with_commas(&bad, (double)r->kept));
    if (r->bad)
        printf("bad samples  %s left out: see %s/%s\n", with_commas(&bad, (double)r->bad), opt->folder,
               PACK_LEDGER);
}

static int pack_command(int argc, char **argv)
{
    struct pack_options opt = {
        .writer = &pack_writer_tar, .shard_size = SHARD_SIZE, .workers = stoker_cpu_count()};
    struct pack_result result;
    struct stoker_error err = {0};
    const int usage = parse(&opt, argc, argv);
    if (usage != PACK_OK)
        return usage;
    signal(SIGXFSZ, SIG_IGN); /* a limit on the size of files is an error like a full disk */
    const int rc = pack_run(&opt, &result, &err);
    if (rc != STOKER_OK)
        return fail(PACK_FAILED, "%s", err.message);
    if (!opt.quiet)
        print_summary(&opt, &result);
    return result.bad ? PACK_SOME_BAD : PACK_OK;
}

const struct command cmd_pack = {
    .name = "pack",
    .summary = "write a data set anew: tar shards, TFRecord, LMDB or arrays, resized or ready for crops",
    .usage =
        "usage: stoker pack SRC DST [OPTIONS]\n"
        "\n"
        "SRC is any data set that Stoker opens, a folder of sounds, or what pack wrote; DST is a "
        "folder\n"
        "outside of it that is new, empty, or an earlier run's with the same options: then what is\n"
        "finished is kept and the rest is done. Exit codes: 0 all packed, 1 done but bad samples were\n"
        "left out, 2 usage, 3 failed.\n"
        "\n"
        "  --format F        tar (default; as webdataset reads them), tfrecord, lmdb, hdf5 or npy\n"
        "  --fields LIST     which fields of SRC, such as \"jpg,cls\" (default: its own choice)\n"
        "  --resize N|WxH    the shorter side becomes N, or the image W x H\n"
        "  --max-size N      images with a longer side are made smaller\n"
        "  --quality Q       encode all images as JPEG of this quality (default: files stay as they\n"
        "                    are where they can; what is resized is written at 90)\n"
        "  --crop-ready      JPEG files so that a crop decodes only its own part: the same pixels\n"
        "  --shard-size N    bytes a file of tar and tfrecord, such as 256M (default 1G)\n"
        "  --shuffle SEED    in a random order, the same for the same seed\n"
        "  --compress zstd   text, JSON and arrays in tar files\n"
        "  --on-error HOW    raise (default: stop at the first bad sample) or skip (leave it out and\n"
        "                    write it into DST/bad_samples.jsonl)\n"
        "  --workers N       threads (default: the CPUs this process may use)\n"
        "  --quiet           no progress and no summary\n",
    .run = pack_command,
};
