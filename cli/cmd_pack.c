/* cmd_pack.c - `stoker pack`: rewrites a dataset in another format, or for faster reading
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include "base/text.h"
#include "cli/json.h"
#include "cli/pack/pack.h"

#include "st_config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE_MOST = 65500 }; /* of a JPEG file */
#define SHARD_SIZE ((uint64_t)1 << 30)

/* "64M", "1G": binary multiples, as in split(1). */
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

static bool parse_format(struct arguments *args, struct pack_options *opt)
{
    for (size_t i = 0; pack_writers[i]; i++)
        if (!strcmp(pack_writers[i]->name, args->value)) {
            opt->writer = pack_writers[i];
            return true;
        }
    if (!strcmp(args->value, "lmdb") || !strcmp(args->value, "hdf5")) {
        args->failed = true;
        fail(EXIT_USAGE, "pack: this build cannot write --format %s: it was built without %s",
             args->value, args->value[0] == 'l' ? "liblmdb" : "libhdf5");
        return true; /* the message is printed */
    }
    return false;
}

static bool parse_word(const char *text, const char *yes, const char *no, bool *out)
{
    if (strcmp(text, yes) && !(no && !strcmp(text, no)))
        return false;
    *out = !strcmp(text, yes);
    return true;
}

static void parse_compress(struct arguments *args, struct pack_options *opt)
{
    if (!accept_value(args, parse_word(args->value, "zstd", NULL, &opt->compress)) || ST_HAVE_ZSTD)
        return;
    args->failed = true;
    fail(EXIT_USAGE, "pack: this build cannot compress: it was built without libzstd");
}

/* An option that takes a value; false: it is none of these. */
static bool take_value(struct pack_options *opt, struct arguments *args)
{
    const char *value = args->value;
    if (option_is(args, "--format"))
        accept_value(args, parse_format(args, opt));
    else if (option_is(args, "--fields"))
        opt->fields = value;
    else if (option_is(args, "--resize"))
        accept_value(args, parse_resize(value, opt));
    else if (option_is(args, "--max-size"))
        accept_value(args, parse_count(value, 1, SIDE_MOST, &opt->max_size));
    else if (option_is(args, "--quality"))
        accept_value(args, parse_count(value, 1, 100, &opt->quality));
    else if (option_is(args, "--shard-size"))
        accept_value(args, parse_size(value, &opt->shard_size));
    else if (option_is(args, "--workers"))
        accept_value(args, parse_count(value, 1, 1024, &opt->workers));
    else if (option_is(args, "--shuffle"))
        opt->shuffle = accept_value(args, parse_count(value, 0, UINT64_MAX, &opt->seed));
    else if (option_is(args, "--compress"))
        parse_compress(args, opt);
    else if (option_is(args, "--on-error"))
        accept_value(args, parse_word(value, "skip", "raise", &opt->skip_bad));
    else
        return false;
    return true;
}

static int parse(struct pack_options *opt, bool *json, int argc, char **argv)
{
    struct arguments args = ARGUMENTS(&cmd_pack, argc, argv);
    while (next_argument(&args)) {
        if (take_value(opt, &args))
            continue;
        if (option_is(&args, "--crop-ready"))
            opt->crop_ready = true;
        else if (option_is(&args, "--quiet"))
            opt->quiet = true;
        else if (option_is(&args, "--json"))
            *json = true;
        else if (opt->folder)
            refuse_argument(&args);
        else
            *(opt->source ? &opt->folder : &opt->source) = args.word;
    }
    if (args.failed)
        return EXIT_USAGE;
    if (!opt->folder)
        return fail(EXIT_USAGE, "pack: %s Example: stoker pack path/to/train packed",
                    opt->source ? "which folder to write?"
                                : "which dataset, and which folder to write?");
    if (opt->writer->pixels && (opt->quality || opt->crop_ready || opt->compress))
        return fail(EXIT_USAGE, "pack: %s does not apply to --format %s, which stores pixels",
                    opt->quality      ? "--quality"
                    : opt->crop_ready ? "--crop-ready"
                                      : "--compress",
                    opt->writer->name);
    if (opt->compress && opt->writer != &pack_writer_tar)
        return fail(EXIT_USAGE, "pack: --compress applies to --format tar only, not to %s",
                    opt->writer->name);
    return EXIT_OK;
}

static void print_summary(const struct pack_options *opt, const struct pack_result *r)
{
    struct number_text samples, bad;
    struct bytes_text in, out, rate;
    struct shown_text room;
    const char *folder = shown(&room, opt->folder);
    if (r->nothing_to_do) {
        printf("%s: already complete, %s sample%s in %llu file%s; nothing to do\n", folder,
               with_commas(&samples, (double)r->samples), st_s(r->samples),
               (unsigned long long)r->shards, st_s(r->shards));
        return;
    }
    printf("packed       %s sample%s into %llu file%s of %s in %s\n",
           with_commas(&samples, (double)r->samples), st_s(r->samples), (unsigned long long)r->shards,
           st_s(r->shards), with_unit(&out, (double)r->bytes_out), folder);
    if (r->resumed)
        printf("resumed      %s %s packed before\n", with_commas(&samples, (double)r->resumed),
               r->resumed == 1 ? "was" : "were");
    if (r->seconds > 0 && r->bytes_in)
        printf("read         %s at %s/s, %.0f samples/s, %.1f s\n", with_unit(&in, (double)r->bytes_in),
               with_unit(&rate, (double)r->bytes_in / r->seconds), (double)r->done / r->seconds,
               r->seconds);
    if (opt->crop_ready)
        printf("crop-ready   %s JPEG file%s, at %.3f of the size; %s left unchanged\n",
               with_commas(&samples, (double)r->ready), st_s(r->ready),
               r->ready_in ? (double)r->ready_out / (double)r->ready_in : 1,
               with_commas(&bad, (double)r->kept));
    if (r->bad)
        printf("bad samples  %s left out: see %s/%s\n", with_commas(&bad, (double)r->bad), folder,
               PACK_LEDGER);
}

static void write_summary(const struct pack_options *opt, const struct pack_result *r)
{
    struct json json = {.to = stdout};
    char ledger[PATH_MAX];
    snprintf(ledger, sizeof ledger, "%s/%s", opt->folder, PACK_LEDGER);
    json_open(&json, NULL, '{');
    json_string(&json, "folder", opt->folder);
    json_string(&json, "format", opt->writer->name);
    json_count(&json, "samples", r->samples);
    json_count(&json, "files", r->shards);
    json_count(&json, "bytes", r->bytes_out);
    json_count(&json, "bad", r->bad);
    json_string(&json, "bad_samples", r->bad ? ledger : NULL);
    json_count(&json, "resumed", r->resumed);
    json_count(&json, "packed_now", r->done);
    json_count(&json, "bytes_read", r->bytes_in);
    json_number(&json, "seconds", r->seconds);
    if (opt->crop_ready) {
        json_open(&json, "crop_ready", '{');
        json_count(&json, "files", r->ready);
        json_count(&json, "bytes_before", r->ready_in);
        json_count(&json, "bytes_after", r->ready_out);
        json_count(&json, "unchanged", r->kept);
        json_close(&json, '}');
    } else {
        json_null(&json, "crop_ready");
    }
    json_close(&json, '}');
}

static int pack_command(int argc, char **argv)
{
    struct pack_options opt = {
        .writer = &pack_writer_tar, .shard_size = SHARD_SIZE, .workers = stoker_cpu_count()};
    struct pack_result result;
    struct stoker_error err = {0};
    bool json = false;
    const int usage = parse(&opt, &json, argc, argv);
    if (usage != EXIT_OK)
        return usage;
    signal(SIGXFSZ, SIG_IGN); /* exceeding a file size limit is then an error like a full disk */
    const int rc = pack_run(&opt, &result, &err);
    if (rc != STOKER_OK)
        return fail(EXIT_FAILED, "%s", err.message);
    if (json)
        write_summary(&opt, &result);
    else if (!opt.quiet)
        print_summary(&opt, &result);
    return result.bad ? EXIT_FOUND : EXIT_OK;
}

static const struct cli_option options[] = {
    {"--format", "F", "tar (default; as webdataset reads it), tfrecord, lmdb, hdf5 or npy",
     "tar, tfrecord, lmdb, hdf5 or npy", "tar tfrecord lmdb hdf5 npy"},
    {"--fields", "LIST",
     "the fields of SRC to pack, such as \"jpg,cls\" (default: chosen by the dataset)",
     "a list of field names, such as \"jpg,cls\""},
    {"--resize", "N|WxH", "scale images so that the shorter side is N, or to W x H exactly",
     "N or WxH with sides from 1 to 65500, such as 256 or 320x240"},
    {"--max-size", "N", "shrink images whose longer side exceeds N", "a whole number from 1 to 65500"},
    {"--quality", "Q",
     "encode all images as JPEG of this quality (default: keep the files unless they\n"
     "are resized; those are written at 90)",
     "a whole number from 1 to 100"},
    {"--crop-ready", NULL, "rewrite JPEG files so that a crop decodes only its own part; same pixels"},
    {"--shard-size", "N", "bytes per file of tar and tfrecord, such as 256M (default 1G)",
     "a size of at least 4096 bytes, such as 256M (K, M, G and T are powers of 1024)"},
    {"--shuffle", "SEED", "pack in a random order; the same seed gives the same order",
     "a whole number from 0 to 18446744073709551615"},
    {"--compress", "zstd", "compress text, JSON and arrays in tar files", "zstd", "zstd"},
    {"--on-error", "HOW",
     "raise (default: stop at the first bad sample) or skip (leave it out, and list it\n"
     "in DST/bad_samples.jsonl)",
     "raise or skip", "raise skip"},
    {"--workers", "N", "number of threads (default: the CPUs this process may use)",
     "a whole number from 1 to 1024"},
    {"--quiet", NULL, "print neither progress nor summary"},
    {"--json", NULL, "print the summary as JSON"},
    {NULL},
};

const struct command cmd_pack = {
    .name = "pack",
    .summary =
        "rewrite a dataset as tar shards, TFRecord, LMDB or arrays; resize it, prepare it for crops",
    .synopsis = "SRC DST [OPTIONS]",
    .about = "SRC is any dataset that Stoker opens, a folder of sounds, or a folder that pack\n"
             "wrote. DST is a folder outside SRC: new, empty, or left by an earlier run with the\n"
             "same options. In that case the finished part is kept and the rest is packed.",
    .options = options,
    .notes = "Exit codes: 0 all samples are packed, 1 failed, 2 usage error, 3 packed, but bad\n"
             "samples were left out (--on-error skip).",
    .arguments = COMPLETES_FILES,
    .run = pack_command,
};
