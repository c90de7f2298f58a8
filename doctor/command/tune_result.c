/* tune_result.c - the recommendation of `stoker tune`, and the changed DataLoader call
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/mem.h"
#include "cli/cli.h"
#include "doctor/command/tune.h"
#include "doctor/report/json.h"
#include "doctor/report/report.h"
#include "doctor/run/script.h"
#include "doctor/tune/patch.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SETTINGS_MOST = 8 };

/* The changed call in the text of the program. */
struct change {
    struct dr_setting settings[SETTINGS_MOST];
    uint32_t count;
    char *text; /* of the file; NULL: it could not be read */
    size_t size;
    struct dr_patch patch; /* .call is NULL where the call cannot be changed */
    struct stoker_error why_not;
    struct dr_patch import; /* the same for its import, if Stoker's loader is faster */
    bool applied;
};

static uint32_t settings_of(const struct tune *t, struct dr_setting *out)
{
    uint32_t count = 0;
    const struct dr_plan *plan = &t->then;
    const struct dr_settings *loader = &t->facts.loader;
    snprintf(out[count].value, sizeof out[count].value, "%u", plan->workers);
    out[count++].name = "num_workers";
    if (plan->workers && plan->prefetch != 2) {
        snprintf(out[count].value, sizeof out[count].value, "%u", plan->prefetch);
        out[count++].name = "prefetch_factor";
    }
    if (plan->workers && plan->persistent) {
        snprintf(out[count].value, sizeof out[count].value, "True");
        out[count++].name = "persistent_workers";
    }
    if (t->facts.has_gpu && !loader->pin_memory) {
        snprintf(out[count].value, sizeof out[count].value, "True");
        out[count++].name = "pin_memory";
    }
    return count;
}

static void print_lines(const char *mark, const char *text, size_t size)
{
    while (size) {
        const char *end = memchr(text, '\n', size);
        const size_t length = end ? (size_t)(end - text) : size;
        struct shown_text room;
        char line[2048];
        snprintf(line, sizeof line, "%.*s", (int)(length < 2000 ? length : 2000), text);
        printf("%s %s\n", mark, shown(&room, line));
        text += length + (end != NULL);
        size -= length + (end != NULL);
    }
}

static void find_change(struct change *c, const struct tune *t)
{
    const struct dr_settings *loader = &t->facts.loader;
    struct stoker_error none;
    *c = (struct change){0};
    c->count = settings_of(t, c->settings);
    c->text = loader->line > 0 ? dr_patch_read(loader->file, &c->size) : NULL;
    if (c->text && t->stoker && dr_patch_import(&c->import, c->text, c->size, &none))
        c->import.call = NULL;
    if (c->text && t->better &&
        dr_patch_call(&c->patch, c->text, c->size, loader->line, c->settings, c->count, &c->why_not))
        c->patch.call = NULL;
}

static double speed_up(const struct tune *t, int side)
{
    return t->side[side].rounds && t->side[TUNE_NOW].rounds
               ? t->side[side].median / t->side[TUNE_NOW].median
               : NAN;
}

/* The faster one of the changes that can be written; NULL: none can. */
static const struct dr_patch *best_patch(const struct change *c, const struct tune *t)
{
    const bool import = c->import.call && (!c->patch.call || speed_up(t, TUNE_STOKER) >
                                                                 speed_up(t, TUNE_BEST));
    return import ? &c->import : c->patch.call ? &c->patch : NULL;
}

/* On request, writes the change into the program. */
static int apply(struct change *c, const struct tune *t)
{
    struct stoker_error err;
    const struct dr_patch *patch = best_patch(c, t);
    if (!t->apply)
        return EXIT_OK;
    if (!patch)
        return fail(EXIT_FAILED, "tune: nothing was changed");
    if (dr_patch_write(t->facts.loader.file, c->text, c->size, patch, &err))
        return fail(EXIT_FAILED, "%s", err.message);
    c->applied = true;
    return EXIT_OK;
}

/* ---- text ----------------------------------------------------------------------------------------- */

static uint32_t line_of(const struct change *c, const struct dr_patch *patch)
{
    uint32_t line = 1;
    for (size_t k = 0; k < patch->begin; k++)
        line += c->text[k] == '\n';
    return line;
}

static void print_patch(const struct change *c, const struct tune *t, const struct dr_patch *patch)
{
    struct shown_text room;
    printf("--- %s:%u\n", shown(&room, t->facts.loader.file), line_of(c, patch));
    print_lines("-", c->text + patch->begin, patch->end - patch->begin);
    print_lines("+", patch->call, strlen(patch->call));
}

/* How to use Stoker's loader: the changed import, the command that needs none, or what to import. */
static void print_import(const struct change *c, const struct tune *t)
{
    const double gain = speed_up(t, TUNE_STOKER);
    struct dr_script script;
    struct shown_text room;
    if (!c->import.call && dr_script_of(&script, t->command) && !script.with_stoker) {
        printf("%.2fx with Stoker's DataLoader: %s -m stoker %s%s\n", gain, script.launcher,
               script.is_module ? "-m " : "", shown(&room, script.name));
        return;
    }
    printf("%.2fx by changing the import: 'from stoker import DataLoader' instead of torch's\n", gain);
    if (c->import.call)
        print_patch(c, t, &c->import);
}

static void print_change(const struct change *c, const struct tune *t)
{
    struct shown_text room;
    if (!c->patch.call) {
        printf("change the DataLoader call%s%s to", t->at[0] ? " at " : "", shown(&room, t->at));
        for (uint32_t k = 0; k < c->count; k++)
            printf("%s %s=%s", k ? "," : "", c->settings[k].name, c->settings[k].value);
        printf("%s%s\n", c->text ? "\n  " : "", c->text ? shown(&room, c->why_not.message) : "");
        return;
    }
    print_patch(c, t, &c->patch);
}

static void print_recommendation(const struct tune *t, const struct change *c)
{
    if (t->why_not[0]) {
        printf("keep the loader as it is: %s\n", t->why_not);
        return;
    }
    if (t->stoker)
        print_import(c, t);
    if (t->better) {
        printf("%s%.2fx with these settings:\n", t->stoker ? "or with torch's, " : "",
               speed_up(t, TUNE_BEST));
        print_change(c, t);
    }
}

static void print_applied(const struct tune *t, const struct change *c)
{
    struct shown_text room;
    if (c->applied)
        printf("written to %s\n", shown(&room, t->facts.loader.file));
    else if (best_patch(c, t) && !t->apply)
        printf("'stoker tune --apply' with the same command writes %s change\n",
               c->patch.call && c->import.call ? "the faster" : "this");
}

/* ---- JSON ----------------------------------------------------------------------------------------- */

static void write_side(struct json *json, const char *key, const struct tune *t, int side)
{
    if (!t->side[side].rounds) {
        json_null(json, key);
        return;
    }
    json_open(json, key, '{');
    json_number(json, "batches_per_second", t->side[side].median);
    json_number(json, "spread", t->side[side].spread);
    json_number(json, "speed_up", speed_up(t, side));
    json_close(json, '}');
}

static void write_change(struct json *json, const struct tune *t, const struct change *c)
{
    if (!t->better) {
        json_null(json, "change");
        return;
    }
    json_open(json, "change", '{');
    json_string(json, "file", t->facts.loader.line > 0 ? t->facts.loader.file : NULL);
    json_number(json, "line", t->facts.loader.line > 0 ? t->facts.loader.line : NAN);
    json_open(json, "settings", '{');
    for (uint32_t k = 0; k < c->count; k++)
        json_string(json, c->settings[k].name, c->settings[k].value);
    json_close(json, '}');
    char *old = c->patch.call ? strndup(c->text + c->patch.begin, c->patch.end - c->patch.begin) : NULL;
    json_string(json, "old_call", old);
    json_string(json, "new_call", c->patch.call);
    free(old);
    json_string(json, "why_not", !c->patch.call && c->text ? c->why_not.message : NULL);
    json_bool(json, "applied", c->applied && best_patch(c, t) == &c->patch);
    json_close(json, '}');
}

static void write_import(struct json *json, const struct tune *t, const struct change *c)
{
    if (!c->import.call) {
        json_null(json, "import");
        return;
    }
    json_open(json, "import", '{');
    json_string(json, "file", t->facts.loader.file);
    json_number(json, "line", line_of(c, &c->import));
    char *old = strndup(c->text + c->import.begin, c->import.end - c->import.begin);
    json_string(json, "old", old);
    json_string(json, "new", c->import.call);
    free(old);
    json_bool(json, "applied", c->applied && best_patch(c, t) == &c->import);
    json_close(json, '}');
}

static void write_fit(struct json *json, const struct tune *t)
{
    if (!t->scaled) {
        json_null(json, "fit");
        return;
    }
    json_open(json, "fit", '{');
    json_number(json, "one_worker", t->scale.one);
    json_number(json, "contention", t->scale.contention);
    json_number(json, "crosstalk", t->scale.crosstalk);
    json_close(json, '}');
}

static void write_result(FILE *to, const struct tune *t, const struct change *c, const char *report)
{
    struct json json = {.to = to};
    json_open(&json, NULL, '{');
    json_string(&json, "directory", t->directory);
    json_string(&json, "report", report);
    json_number(&json, "step_seconds", t->before);
    json_number(&json, "step_seconds_without_loading", t->floor);
    json_open(&json, "loader_alone", '[');
    for (uint32_t k = 0; k < t->points; k++) {
        json_open(&json, NULL, '{');
        json_number(&json, "workers", t->point[k].workers);
        json_number(&json, "batches_per_second", t->point[k].rate);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    write_fit(&json, t);
    json_number(&json, "predicted_speed_up", t->predicted);
    write_side(&json, "before", t, TUNE_NOW);
    write_side(&json, "after", t, TUNE_BEST);
    write_side(&json, "stoker", t, TUNE_STOKER);
    json_string(&json, "recommendation", t->better ? "settings" : t->stoker ? "stoker" : "none");
    json_string(&json, "why_not", t->why_not[0] ? t->why_not : NULL);
    write_change(&json, t, c);
    write_import(&json, t, c);
    json_close(&json, '}');
}

/* ---- files ---------------------------------------------------------------------------------------- */

/* The results in words, for the page. */
static struct dr_tuned tuned_of(const struct tune *t, char *advice, size_t size)
{
    struct dr_tuned tuned = {.point = t->point,
                             .points = t->points,
                             .scale = t->scaled ? &t->scale : NULL,
                             .workers = isnan(t->predicted) ? 0 : t->then.workers,
                             .before = t->before,
                             .floor = t->floor,
                             .advice = advice};
    static const char *const names[DR_TUNED_SIDES] = {"as it is", "the best settings",
                                                      "Stoker's DataLoader, as many workers"};
    for (int k = 0; k < DR_TUNED_SIDES; k++) {
        const struct tune_side *side = &t->side[k];
        tuned.side[k] = (struct dr_tuned_side){names[k], side->rounds ? side->median : NAN, side->spread,
                                               k == TUNE_BEST ? t->predicted : NAN};
    }
    if (t->why_not[0])
        snprintf(advice, size, "Keep the loader as it is: %s.", t->why_not);
    else if (t->stoker && !t->better)
        snprintf(advice, size, "%.2fx by changing the import: from stoker import DataLoader.",
                 speed_up(t, TUNE_STOKER));
    else
        snprintf(advice, size, "%.2fx with num_workers=%u, prefetch_factor=%u, persistent_workers=%s.",
                 speed_up(t, TUNE_BEST), t->then.workers, t->then.prefetch,
                 t->then.persistent ? "True" : "False");
    return tuned;
}

static FILE *create(const struct tune *t, const char *name, char *path, size_t size)
{
    if (snprintf(path, size, "%s/%s", t->directory, name) >= (int)size) {
        fail(0, "%s: the name is too long", t->directory);
        return NULL;
    }
    FILE *file = fopen(path, "we");
    if (!file)
        fail(0, "cannot write %s: %s", path, strerror(errno));
    return file;
}

static bool finish(FILE *file, const char *path, bool fine)
{
    fine &= !ferror(file);
    fine &= fclose(file) == 0;
    if (!fine)
        fail(0, "cannot write %s: %s", path, strerror(errno));
    return fine;
}

/* False: the page could not be written, which does not spoil the result. */
static bool write_page(const struct tune *t, char *path, size_t size)
{
    char advice[512];
    const struct dr_tuned tuned = tuned_of(t, advice, sizeof advice);
    struct dr_verdict *verdict = st_calloc(1, sizeof *verdict);
    FILE *file = verdict ? create(t, "report.html", path, size) : NULL;
    bool fine = false;
    if (file) {
        dr_judge(verdict, &t->facts);
        fine = finish(file, path, !dr_write_tune_html(file, verdict, &t->facts, &tuned));
    }
    free(verdict);
    return fine;
}

static void write_files(const struct tune *t, const struct change *c, char *report, size_t size)
{
    char path[PATH_MAX];
    if (!write_page(t, report, size))
        report[0] = '\0';
    FILE *file = create(t, "tune.json", path, sizeof path);
    if (!file)
        return;
    write_result(file, t, c, report[0] ? report : NULL);
    finish(file, path, true);
}

int tune_result(struct tune *t)
{
    struct change change = {0};
    struct shown_text room;
    char report[PATH_MAX];
    int code = EXIT_OK;
    if (t->better || t->stoker)
        find_change(&change, t);
    if (!t->json)
        print_recommendation(t, &change);
    if (t->better || t->stoker)
        code = apply(&change, t);
    write_files(t, &change, report, sizeof report);
    if (t->json) {
        write_result(stdout, t, &change, report[0] ? report : NULL);
    } else {
        print_applied(t, &change);
        if (report[0])
            printf("report: %s\n", shown(&room, report));
    }
    free(change.patch.call);
    free(change.import.call);
    free(change.text);
    return code;
}
