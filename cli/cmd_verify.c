/* cmd_verify.c - `stoker verify`: checks that every sample of a dataset can be read
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include "base/text.h"
#include "cli/json.h"
#include "cli/pack/check.h"
#include "codec/jpeg/baseline.h"
#include "source/known/known.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct verify {
    const char *data, *fields;
    bool deep, quiet, as_json;
    struct json json; /* open from the first finding to the summary */
    uint64_t workers;
    struct stoker_dataset *set;
    struct st_known *known; /* NULL: nothing is decoded, so nothing is learned */
    struct st_field kinds[ST_FIELDS_MAX];
    uint32_t kind_count;
    struct pack_sample *ring;
    struct st_work *work;
    uint64_t bytes, bad;
    struct pack_progress progress;
};

static int parse(struct verify *v, int argc, char **argv)
{
    struct arguments args = ARGUMENTS(&cmd_verify, argc, argv);
    while (next_argument(&args)) {
        if (option_is(&args, "--deep"))
            v->deep = true;
        else if (option_is(&args, "--quiet"))
            v->quiet = true;
        else if (option_is(&args, "--json"))
            v->as_json = true;
        else if (option_is(&args, "--fields"))
            v->fields = args.value;
        else if (option_is(&args, "--workers"))
            accept_value(&args, parse_count(args.value, 1, 1024, &v->workers));
        else if (v->data)
            refuse_argument(&args);
        else
            v->data = args.word;
    }
    if (args.failed)
        return EXIT_USAGE;
    return v->data ? EXIT_OK
                   : fail(EXIT_USAGE, "verify: which dataset? Example: stoker verify path/to/packed");
}

static void report(void *context, const char *what, const char *why)
{
    struct verify *v = context;
    v->bad++;
    pack_progress_end(&v->progress);
    struct shown_text name, reason;
    if (v->as_json) {
        json_open(&v->json, NULL, '{');
        json_string(&v->json, "what", what);
        json_string(&v->json, "why", why);
        json_close(&v->json, '}');
    } else if (mentions(why, what)) {
        printf("bad  %s\n", shown(&reason, why));
    } else {
        printf("bad  %s: %s\n", shown(&name, what), shown(&reason, why));
    }
}

/* ---- samples ----------------------------------------------------------------------------------- */

/* The number of JPEGs that our own decoder has decoded: all of it, without any irregularity. */
static uint64_t count_regular(const struct st_work *work)
{
    uint64_t count = 0;
    for (uint32_t k = 0; st_codecs[k]; k++)
        if (st_codecs[k]->path_name && !strcmp(st_codecs[k]->name, "JPEG"))
            count += atomic_load(&work->decoder.files[k][ST_JPEG_OURS]);
    return count;
}

/* Reads the header of an image, and all of its pixels with --deep or if it may be truncated. *regular: a
 * JPEG that is known to decode. */
static int look_at_image(const struct verify *v, const struct st_piece *piece, struct st_work *work,
                         bool *regular, struct stoker_error *err)
{
    struct st_image image;
    struct st_view view;
    *regular = false;
    if (piece->ndim)
        return STOKER_OK; /* raw pixels: nothing to decode */
    st_arena_reset(&work->arena);
    const uint64_t before = count_regular(work);
    int rc = st_image_open(&image, work, piece->bytes, false, err);
    if (!rc && (v->deep || !pack_image_ends(piece->bytes)))
        rc = st_image_pixels(&image, false, false, &view, err);
    *regular = !rc && count_regular(work) > before;
    return rc;
}

static void look(void *context, uint32_t worker, uint64_t ticket)
{
    struct verify *v = context;
    struct pack_sample *s = &v->ring[ticket % PACK_RING];
    struct st_piece pieces[ST_FIELDS_MAX];
    s->status = pack_read(v->set, ticket, &s->raw, &s->scratch, pieces, &s->bytes_in, &s->error);
    bool first = true, regular;
    for (uint32_t i = 0; i < v->kind_count && !s->status; i++) {
        struct pack_sound sound;
        if (v->kinds[i].kind == ST_FIELD_IMAGE) {
            s->status = look_at_image(v, &pieces[i], &v->work[worker], &regular, &s->error);
            if (first && v->known && regular) /* loaders decode the first image only */
                st_known_learn(v->known, ticket, st_known_sum(pieces[i].bytes));
            first = false;
        }
        if (v->kinds[i].kind == ST_FIELD_AUDIO)
            s->status = pack_sound_look(&sound, pieces[i].bytes, v->deep, &s->error);
    }
}

static int note(void *context, uint64_t ticket)
{
    struct verify *v = context;
    const struct pack_sample *s = &v->ring[ticket % PACK_RING];
    char name[2048];
    if (s->status) {
        st_dataset_name(v->set, ticket, name, sizeof name);
        report(v, name, s->error.message);
    } else {
        v->bytes += s->bytes_in;
    }
    pack_progress_show(&v->progress, ticket + 1, v->bytes);
    return STOKER_OK;
}

static int look_at_all(struct verify *v, struct stoker_error *err)
{
    const struct pack_line line = {.work = look,
                                   .done = note,
                                   .context = v,
                                   .last = st_dataset_count(v->set),
                                   .workers = (uint32_t)v->workers};
    v->kind_count = pack_fields(v->set, v->kinds);
    v->known = v->deep ? st_known_of(v->set, NULL) : NULL;
    v->ring = st_calloc(PACK_RING, sizeof *v->ring);
    v->work = st_calloc(v->workers, sizeof *v->work);
    if (!v->ring || !v->work)
        return st_fail(err, STOKER_ENOMEM, "out of memory");
    for (uint64_t i = 0; i < v->workers; i++)
        v->work[i] = pack_work();
    pack_progress_begin(&v->progress, "verifying", 0, line.last, v->quiet);
    const int rc = pack_line_run(&line, err);
    pack_progress_end(&v->progress);
    for (uint64_t i = 0; i < PACK_RING; i++)
        pack_sample_free(&v->ring[i]);
    for (uint64_t i = 0; i < v->workers; i++)
        pack_work_free(&v->work[i]);
    return rc;
}

/* ---- sums -------------------------------------------------------------------------------------- */

static int check_sums(struct verify *v, const struct st_location *place, struct pack_findings *findings,
                      struct stoker_error *err)
{
    int rc = pack_check_folder(v->data, st_dataset_count(v->set), findings, err);
    for (uint64_t i = 0; i < place->paths.count && !rc && !strcmp(v->set->kind, "tar"); i++)
        rc = pack_check_tar(place->paths.items[i], findings, err);
    return rc;
}

static void begin_json(struct verify *v)
{
    v->json = (struct json){.to = stdout};
    json_open(&v->json, NULL, '{');
    json_string(&v->json, "data", v->data);
    json_open(&v->json, "bad", '[');
}

/* `error` ended the check early; or NULL. */
static void end_json(struct verify *v, const struct pack_findings *findings, const char *error)
{
    json_close(&v->json, ']');
    json_count(&v->json, "samples", st_dataset_count(v->set));
    json_count(&v->json, "bytes", v->bytes);
    json_bool(&v->json, "deep", v->deep);
    json_count(&v->json, "files_checked", findings->files);
    json_count(&v->json, "members_checked", findings->sums);
    json_count(&v->json, "bad_count", v->bad);
    json_string(&v->json, "error", error);
    json_close(&v->json, '}');
}

/* Whether the samples have images or sounds, which only --deep decodes. */
static bool has_media(const struct verify *v)
{
    for (uint32_t i = 0; i < v->kind_count; i++)
        if (v->kinds[i].kind == ST_FIELD_IMAGE || v->kinds[i].kind == ST_FIELD_AUDIO)
            return true;
    return false;
}

static void print_summary(const struct verify *v, const struct pack_findings *findings)
{
    struct number_text samples, sums;
    struct bytes_text size;
    struct shown_text name;
    const uint64_t count = st_dataset_count(v->set);
    printf("%s: %s sample%s, %s; %s\n", shown(&name, v->data), with_commas(&samples, (double)count),
           st_s(count), with_unit(&size, (double)v->bytes),
           v->deep ? "all decoded" : "all headers read");
    if (findings->files || findings->sums)
        printf("checksums: %llu file%s, %s member%s\n", (unsigned long long)findings->files,
               st_s(findings->files), with_commas(&sums, (double)findings->sums), st_s(findings->sums));
    if (v->bad)
        printf("%llu bad\n", (unsigned long long)v->bad);
    else
        puts(v->deep || !has_media(v) ? "all good" : "all good as far as was checked");
    if (!v->deep && has_media(v))
        puts("not decoded: damage inside images and sounds is only found with --deep");
}

static int verify_run(int argc, char **argv)
{
    struct verify v = {.workers = stoker_cpu_count()};
    struct pack_findings findings = {.bad = report, .context = &v};
    struct stoker_error err = {0};
    struct st_location place;
    const int usage = parse(&v, argc, argv);
    if (usage != EXIT_OK)
        return usage;
    int rc = pack_data_open(&v.set, &place, v.data, v.fields, &err);
    const bool opened = !rc;
    if (opened && v.as_json)
        begin_json(&v);
    if (opened && !st_dataset_count(v.set))
        report(&v, v.data, "contains no samples");
    if (!rc)
        rc = check_sums(&v, &place, &findings, &err);
    if (!rc)
        rc = look_at_all(&v, &err);
    if (opened && v.as_json)
        end_json(&v, &findings, rc ? err.message : NULL);
    else if (!rc && !v.quiet)
        print_summary(&v, &findings);
    free(v.ring);
    free(v.work);
    st_location_free(&place);
    stoker_dataset_close(v.set);
    if (rc)
        return fail(EXIT_FAILED, "%s", err.message);
    return v.bad ? EXIT_FOUND : EXIT_OK;
}

static const struct cli_option options[] = {
    {"--deep", NULL, "decode every image and every sound completely"},
    {"--fields", "LIST", "the fields to read, such as \"jpg,cls\" (default: chosen by the dataset)",
     "a list of field names, such as \"jpg,cls\""},
    {"--workers", "N", "number of threads (default: the CPUs this process may use)",
     "a whole number from 1 to 1024"},
    {"--quiet", NULL, "print only the bad samples"},
    {"--json", NULL, "print the result as JSON"},
    {NULL},
};

const struct command cmd_verify = {
    .name = "verify",
    .summary = "check that every sample of a dataset can be read, and name those that cannot",
    .synopsis = "DATA [OPTIONS]",
    .about =
        "Reads every sample, compares every checksum that the dataset has, reads the header of\n"
        "every image and sound, checks that no image is truncated, and names each bad sample. Damage\n"
        "inside an image or a sound is only found with --deep. DATA is any dataset that Stoker\n"
        "opens, or a folder that 'stoker pack' wrote; such a folder is also compared with its\n"
        "manifest. With --deep, the JPEGs of tar and TFRecord files that are intact are noted beside\n"
        "the first file (*.stoker-known), so that the JPEG hardware of a GPU may decode them from the\n"
        "first epoch on.",
    .options = options,
    .notes = "Exit codes: 0 no bad samples, 1 DATA cannot be opened or read, 2 usage error, 3 bad\n"
             "samples or files.",
    .arguments = COMPLETES_FILES,
    .run = verify_run,
};
