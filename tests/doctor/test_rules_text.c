/* test_rules_text.c - what the rules say: texts, numbers and advice, with each number unknown in turn; the
 * screen
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rule_cases.h"
#include "rule_checks.h"

#include "doctor/report/numbers.h"

static bool says_nan(const char *text)
{
    for (const char *at = text; (at = strstr(at, "nan")); at++)
        if (at == text || strchr(" (=,", at[-1]))
            return true;
    return strstr(text, "inf ") || strstr(text, "-inf") || strstr(text, "inf%");
}

/* Each number in turn is unknown, without and with what makes a cause: no crash, and none of it in a
 * text. */
static void test_each_unknown(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    bool good = true;
    for (size_t i = 0; i < CASE_COUNT; i++)
        for (size_t k = 0; dr_fact_numbers[k].name || dr_limit_numbers[0].name; k++) {
            if (dr_fact_numbers[k].name && (i * 37 + k) % 100 >= share_of(100))
                continue;
            healthy(&f);
            cases[i].fires(&f);
            f.batch_count = 0; /* without the simulator: it takes too long, and cannot be had either */
            if (dr_fact_numbers[k].name)
                memcpy((char *)&f + dr_fact_numbers[k].offset, &(double){NAN}, sizeof(double));
            else
                for (const struct dr_number *n = dr_limit_numbers; n->name; n++)
                    memcpy((char *)&f.limits + n->offset, &(double){NAN}, sizeof(double));
            dr_judge(v, &f);
            bool sound = is_sound(v) && !says_nan(v->sentence) && !says_nan(v->limiter);
            for (uint32_t j = 0; j < v->findings; j++)
                sound = sound && !says_nan(v->finding[j].sentence) && !says_nan(v->finding[j].advice);
            if (!sound) {
                note("%s without %s", cases[i].code,
                     dr_fact_numbers[k].name ? dr_fact_numbers[k].name : "limits");
                note_findings(v);
            }
            good = good && sound;
            if (!dr_fact_numbers[k].name)
                break;
        }
    ok(good, "each number may be unknown");
}

static void test_numbers(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    healthy(&f);
    fires_ST203(&f);
    dr_judge(v, &f);
    const struct dr_finding *x = &v->finding[0];
    ok(x->plan.workers >= 4 && x->plan.workers <= 7, "2 workers of 0.4 s for a step of 0.1 s: %u",
       x->plan.workers);
    ok(x->gain.mid > 1.8 && x->gain.mid <= 2.0001, "gain %.2f of at most 2", x->gain.mid);
    ok(strstr(x->advice, "num_workers=") != NULL, "the advice says so: %s", x->advice);
    ok(!strncmp(x->next, "computation", 11), "and the next limit: %s", x->next);
    ok(fabs(v->ceiling - 2) < 1e-9, "ceiling %.2f", v->ceiling);
    ok(strstr(v->sentence, "50 %") != NULL, "sentence: %s", v->sentence);
    f.loader.native = f.loader.stoker = true;
    dr_judge(v, &f);
    ok(v->findings && strstr(v->finding[0].advice_stoker, "auto"), "for Stoker's loader: %s",
       v->finding[0].advice_stoker);
    healthy(&f);
    run_of(&f, 0, 0.01, 0.97, 0.0015);
    f.limits.cpus = f.limits.cpus_machine = 2, f.cpus_busy_others = 0, f.loader.batch_bytes = 2e5,
    f.pin = 0;
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST202") && v->finding[0].plan.workers == 2 && v->finding[0].gain.mid > 1.4,
       "steps that compute on the CPU for 1.5 ms leave both CPUs to batches of 10 ms: %u workers, %.2f",
       v->finding[0].plan.workers, v->finding[0].gain.mid);
    run_of(&f, 0, 0.01, 0.97, 0.009);
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST202") && v->finding[0].plan.workers == 1,
       "those of 9 ms need one: %u workers", v->finding[0].plan.workers);
    healthy(&f);
    fires_ST214(&f);
    dr_judge(v, &f);
    ok(fabs(v->finding[0].gain.mid - 1.25) < 1e-9 && v->kind == DR_DATA_BOUND,
       "4 s of 20 s for starting workers: %.2f", v->finding[0].gain.mid);
    healthy(&f);
    run_of(&f, 4, 1, 0.97, 0.1);
    f.memory_available_least = 100e6, f.shm_size = 500e6, f.shm_needed = 400e6;
    dr_judge(v, &f);
    ok(!has(v, "ST203") || v->finding[0].plan.workers * (v->finding[0].plan.prefetch + 1) <= 14,
       "no more batches in flight than there is memory for");
}

static void test_texts(void)
{
    struct dr_facts f;
    char room[64];
    healthy(&f);
    size_t count = 0;
    bool unique = true, full = true, known = true, ordered = true;
    for (; dr_rules[count]; count++) {
        const struct dr_rule *r = dr_rules[count];
        for (size_t i = 0; i < count; i++)
            unique = unique && strcmp(dr_rules[i]->code, r->code) && strcmp(dr_rules[i]->name, r->name);
        ordered = ordered && (!count || strcmp(dr_rules[count - 1]->code, r->code) < 0);
        full = full && r->title[0] && r->symptoms[0] && r->why[0] && r->fix_torch[0] &&
               r->fix_stoker[0] && r->how_to_check[0];
        const char *lacking = dr_lacks(r, &f, room, sizeof room);
        if (lacking)
            note("%s needs %s", r->code, lacking);
        known = known && !lacking;
        if (dr_rule_find(r->code) != r || dr_rule_find(r->name) != r)
            unique = false;
    }
    ok(count == 47 && unique && ordered, "%zu rules, each code and name once, in order", count);
    ok(full, "every text is there");
    ok(known, "what rules need is what a full run has");
    ok(!dr_rule_find("ST999") && dr_rule_find("st206") == dr_rule_find("thread-storm"),
       "found by code or name");
}

static void test_screen(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    healthy(&f);
    fires_ST206(&f);
    dr_judge(v, &f);
    if (getenv("STOKER_SHOW")) {
        print(v, &f, 100, false, false);
        fputs(screen, stderr);
    }
    print(v, &f, 100, true, false);
    ok(strstr(screen, "\033[31m") && strstr(screen, "\u2588") == NULL ? true
                                                                      : strchr(screen, '\033') != NULL,
       "in color where that is wanted");
    ok(!strstr(screen, "withholds"), "no steal");
    f.cpus_stolen = 2.5;
    print(v, &f, 100, false, false);
    ok(strstr(screen, "virtual machine withholds 2.50 CPUs") != NULL, "steal is named");
    ok(!strstr(screen, "watching"), "no word of the watch's cost where it is unknown");
    f.overhead_share = 0.012;
    print(v, &f, 100, false, false);
    ok(strstr(screen, "took at most 1.2 % of the time") != NULL, "or what it was");
    ok(!strstr(screen, "judged:") && !strstr(screen, "not recorded"), "all steps are judged");
    f.steps_seen = 1600, f.steps_lost = 30;
    f.watch_error = "error: argument out of range";
    print(v, &f, 100, false, false);
    ok(strstr(screen, "judged: 400 of 1,600 steps") && strstr(screen, "30 more steps were not recorded") &&
           strstr(screen, "ended early: error"),
       "or it is said how many");
    snprintf(v->finding[0].advice, sizeof v->finding[0].advice, "a\033[2Jb");
    print(v, &f, 80, false, true);
    ok(strchr(screen, '\033') == NULL, "text from data cannot move the cursor");
    memset(v, 0, sizeof v);
    v->kind = DR_CANNOT_TELL;
    print(v, NULL, 80, false, true);
    ok(strstr(screen, "cannot tell") != NULL, "also a verdict without any facts");
    unknown_facts(&f);
    dr_judge(v, &f);
    print(v, &f, 80, false, true);
    ok(strstr(screen, "COULD NOT SEE") && !strstr(screen, "nan"), "unknown numbers are not shown");
}

static void test_operators(void)
{
    static struct dr_operator operators[] = {
        {"RandomCrop", DR_STAGE_TRANSFORM, 1, 0.002, 0.5},
        {"a name that is \033 longer than its column", DR_STAGE_DECODE, 1.5, 0.001, 0.25},
        {"collate", DR_STAGE_COLLATE, 0.1, 1e-5, 0.0025}};
    static struct dr_run run;
    static struct dr_verdict v[1];
    struct dr_facts f;
    healthy(&f);
    f.run = &run;
    f.operators = operators, f.operator_count = 3, f.sample_seconds = 0.004;
    dr_judge(v, &f);
    print(v, &f, 100, false, true);
    ok(!strstr(screen, "RandomCrop"), "what samples cost does not matter if training never waits");
    run_of(&f, 4, 0.8, 0.97, 0.1);
    dr_judge(v, &f);
    print(v, &f, 100, false, true);
    const char *table = strstr(screen, " SAMPLES  4.0 ms each, in a worker:");
    ok(table && strstr(table, "RandomCrop                   augmentation          1      2,000    50 %"), "else a row each");
    ok(table && strstr(table, "all other code                                      1,000    25 %") == NULL &&
           strstr(table, "all other code") && !strstr(table, "collate  "),
       "small ones are other code");
    ok(!strchr(screen, '\033'), "their names cannot move the cursor");
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to || dr_write_json(to, v, &f) || fclose(to))
        abort();
    ok(strstr(text, "\"operators\"") && strstr(text, "\"seconds_per_sample\""), "all of them in JSON");
    free(text);
}

/* Without a GPU, the first report of a folder says why, and the others only that there is none. */
static void test_missing_gpu(void)
{
    static const struct dr_missing missing[] = {{"gpu.busy", "no driver", "install one"},
                                                {"gpu.sm_active", "no driver", "install one"},
                                                {"nfs.rtt", "no mount", ""}};
    static struct dr_run run = {.missing = missing, .missing_count = 3};
    static struct dr_verdict v[1];
    struct dr_facts f;
    healthy(&f);
    f.run = &run;
    dr_judge(v, &f);
    print(v, &f, 100, false, true);
    const char *gpu = strstr(screen, "a GPU: 'stoker doctor' says why");
    ok(gpu && !strstr(gpu + 1, "a GPU:") && !strstr(screen, "no driver"), "a line");
    ok(strstr(screen, "nfs.rtt: no mount") != NULL, "other signals keep their reason");
    print_first(v, &f);
    ok(strstr(screen, "gpu.busy, gpu.sm_active: no driver. Remedy: install one") &&
           !strstr(screen, "a GPU:"),
       "the first time with reason and remedy");
    snprintf(run.limits.gpu_name, sizeof run.limits.gpu_name, "NVIDIA A");
    print(v, &f, 100, false, true);
    ok(strstr(screen, "gpu.busy, gpu.sm_active: no driver") != NULL, "a GPU that lacks signals says which");
}

int main(void)
{
    test_texts();
    test_each_unknown();
    test_numbers();
    test_screen();
    test_missing_gpu();
    test_operators();
    return done_testing();
}
