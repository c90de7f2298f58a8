/* cmd_verify.c - `stoker verify`: whether every sample of a data set can be read
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include "cli/pack/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct verify {
    const char *data, *fields;
    bool deep, quiet;
    uint64_t workers;
    struct stoker_dataset *set;
    struct st_field kinds[ST_FIELDS_MAX];
    uint32_t kind_count;
    struct pack_sample *ring;
    struct st_work *work;
    uint64_t bytes, bad;
    struct pack_progress progress;
};

static int parse(struct verify *v, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i];
        if (option[0] != '-' && !v->data)
            v->data = option;
        else if (!strcmp(option, "--deep"))
            v->deep = true;
        else if (!strcmp(option, "--quiet"))
            v->quiet = true;
        else if (option_is(option, "--fields")) {
            if (!(v->fields = option_value(argc, argv, &i)))
                return fail(PACK_USAGE, "'--fields' wants a list of fields");
        } else if (option_is(option, "--workers")) {
            if (!parse_count(option_value(argc, argv, &i), 1, 1024, &v->workers))
                return fail(PACK_USAGE, "'--workers' wants a number");
        } else
            return fail(PACK_USAGE,
                        "verify does not know what to do with '%s': see 'stoker help verify'", option);
    }
    return v->data ? PACK_OK : fail(PACK_USAGE, "which data set? Example: stoker verify path/to/packed");
}

static void report(void *context, const char *what, const char *why)
{
    struct verify *v = context;
    v->bad++;
    pack_progress_end(&v->progress);
    struct shown_text name, reason;
    if (strstr(why, what))
        printf("bad  %s\n", shown(&reason, why));
    else
        printf("bad  %s: %s\n", shown(&name, what), shown(&reason, why));
}

/* ---- samples ----------------------------------------------------------------------------------- */

/* An image's header, or all of it. */
static int look_at_image(const struct verify *v, const struct st_piece *piece, struct st_work *work,
                         struct stoker_error *err)
{
    struct st_image image;
    struct st_view view;
    if (piece->ndim)
        return STOKER_OK; /* pixels as they are */
    st_arena_reset(&work->arena);
    const int rc = st_image_open(&image, work, piece->bytes, false, err);
    return rc || !v->deep ? rc : st_image_pixels(&image, false, false, &view, err);
}

static void look(void *context, uint32_t worker, uint64_t ticket)
{
    struct verify *v = context;
    struct pack_sample *s = &v->ring[ticket % PACK_RING];
    struct st_piece pieces[ST_FIELDS_MAX];
    s->status = pack_read(v->set, ticket, &s->raw, &s->scratch, pieces, &s->bytes_in, &s->error);
    for (uint32_t i = 0; i < v->kind_count && !s->status; i++) {
        struct pack_sound sound;
        if (v->kinds[i].kind == ST_FIELD_IMAGE)
            s->status = look_at_image(v, &pieces[i], &v->work[worker], &s->error);
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

static void print_summary(const struct verify *v, const struct pack_findings *findings)
{
    struct number_text samples, sums;
    struct bytes_text size;
    printf("%s: %s samples, %s; %s\n", v->data, with_commas(&samples, (double)st_dataset_count(v->set)),
           with_unit(&size, (double)v->bytes), v->deep ? "all decoded" : "all headers read");
    if (findings->files || findings->sums)
        printf("checksums: %llu %s, %s members\n", (unsigned long long)findings->files,
               findings->files == 1 ? "file" : "files", with_commas(&sums, (double)findings->sums));
    if (v->bad)
        printf("%llu bad\n", (unsigned long long)v->bad);
    else
        puts("all good");
}

static int verify_run(int argc, char **argv)
{
    struct verify v = {.workers = stoker_cpu_count()};
    struct pack_findings findings = {.bad = report, .context = &v};
    struct stoker_error err = {0};
    struct st_location place;
    const int usage = parse(&v, argc, argv);
    if (usage != PACK_OK)
        return usage;
    int rc = pack_data_open(&v.set, &place, v.data, v.fields, &err);
    if (!rc && !st_dataset_count(v.set))
        report(&v, v.data, "there is no sample in it");
    if (!rc)
        rc = check_sums(&v, &place, &findings, &err);
    if (!rc)
        rc = look_at_all(&v, &err);
    if (!rc && !v.quiet)
        print_summary(&v, &findings);
    free(v.ring);
    free(v.work);
    st_location_free(&place);
    stoker_dataset_close(v.set);
    if (rc)
        return fail(PACK_FAILED, "%s", err.message);
    return v.bad ? PACK_SOME_BAD : PACK_OK;
}

const struct command cmd_verify = {
    .name = "verify",
    .summary = "whether every sample of a data set can be read; names those that cannot",
    .usage =
        "usage: stoker verify DATA [OPTIONS]\n"
        "\n"
        "DATA is any data set that Stoker opens, or a folder that 'stoker pack' wrote. Reads every\n"
        "sample, compares every checksum there is, reads the header of every image and sound, and "
        "names\n"
        "each bad sample. Exit codes: 0 all good, 1 some are bad, 2 usage, 3 DATA cannot be opened.\n"
        "\n"
        "  --deep         decode every image and every sound\n"
        "  --fields LIST  which fields, such as \"jpg,cls\" (default: the data set's own choice)\n"
        "  --workers N    threads (default: the CPUs this process may use)\n"
        "  --quiet        nothing but the bad samples\n",
    .run = verify_run,
};
