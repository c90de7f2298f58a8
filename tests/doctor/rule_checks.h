/* rule_checks.h - what the tests of the rules ask of a verdict, and how they print it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_DOCTOR_RULE_CHECKS_H
#define TESTS_DOCTOR_RULE_CHECKS_H

#include "tap.h"

#include "doctor/report/report.h"
#include "doctor/rule/judge.h"

#include <stdlib.h>
#include <string.h>

static inline void note_findings(const struct dr_verdict *v)
{
    for (uint32_t i = 0; i < v->findings; i++)
        note("%s order %d weight %.2f gain %.2f (%.2f to %.2f): %s", v->finding[i].rule->code,
             v->finding[i].order, v->finding[i].weight, v->finding[i].gain.mid, v->finding[i].gain.low,
             v->finding[i].gain.high, v->finding[i].sentence);
}

/* Gains within the ceiling, no empty text, no number that is none. */
static inline bool is_sound(const struct dr_verdict *v)
{
    bool good = v->sentence[0] && !strstr(v->sentence, "nan");
    for (uint32_t i = 0; i < v->findings; i++) {
        const struct dr_finding *x = &v->finding[i];
        good = good && x->sentence[0] && x->advice[0] && x->basis[0] && !strstr(x->sentence, "nan") &&
               !strstr(x->advice, "nan") && !strstr(x->advice, "inf ");
        if (dr_known(x->gain.mid))
            good = good && x->gain.low <= x->gain.mid && x->gain.mid <= x->gain.high;
        if (dr_known(x->gain.mid) && x->order < DR_ORDER_OWN && x->order != DR_ORDER_RANK)
            good = good && !(x->gain.high > v->ceiling * 1.0001);
        for (uint32_t j = 0; j < i; j++)
            good = good && v->finding[j].rule != x->rule;
    }
    for (uint32_t i = 0; i < v->findings; i++) /* nothing promises more than there is */
        good = good && !(v->finding[i].gain.high > v->most * 1.0001);
    good = good && !(v->all.high > v->most * 1.0001) && !(v->ceiling > v->most * 1.0001);
    return good && (!dr_known(v->all.mid) || (v->all.low <= v->all.mid && v->all.mid <= v->all.high));
}

static char screen[65536];
static inline void print(const struct dr_verdict *v, const struct dr_facts *f, uint32_t width, bool color,
                  bool ascii)
{
    FILE *to = fmemopen(screen, sizeof screen, "w");
    if (!to)
        abort();
    const struct dr_style style = {.width = width, .color = color, .ascii = ascii};
    dr_print_verdict(to, &style, v, f);
    fclose(to);
}

/* As the first report of a folder is printed. */
static inline void print_first(const struct dr_verdict *v, const struct dr_facts *f)
{
    FILE *to = fmemopen(screen, sizeof screen, "w");
    if (!to)
        abort();
    const struct dr_style style = {.width = 100, .ascii = true, .first = true};
    dr_print_verdict(to, &style, v, f);
    fclose(to);
}

static inline uint32_t widest(void)
{
    uint32_t most = 0, now = 0;
    for (const char *at = screen; *at; at++) {
        now = *at == '\n' ? 0 : now + (((unsigned char)*at & 0xc0) != 0x80);
        most = now > most ? now : most;
    }
    return most;
}

#endif
