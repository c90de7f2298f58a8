/* facts_operators.c - what each function costs per sample, added up over all makers of batches
 *
 * The text of a maker is that of run.h; it comes from a file, and may hold anything.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/model/parts.h"

#include "base/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sums {
    struct dr_operator *operators;
    uint32_t count;
    double samples, seconds;
};

/* A number that is not negative; moves behind it. */
static bool take_number(const char **at, double *out)
{
    char *end;
    *out = strtod(*at, &end);
    if (end == *at || !(*out >= 0) || !isfinite(*out))
        return false;
    *at = end;
    return true;
}

static struct dr_operator *find(struct sums *sums, enum dr_stage stage, const char *name, size_t length)
{
    for (uint32_t k = 0; k < sums->count; k++) {
        struct dr_operator *known = &sums->operators[k];
        if (known->stage == stage && strlen(known->name) == length &&
            !memcmp(known->name, name, length))
            return known;
    }
    if (sums->count == DR_OPERATORS_MOST)
        return NULL;
    struct dr_operator *added = &sums->operators[sums->count++];
    *added = (struct dr_operator){.stage = stage};
    snprintf(added->name, sizeof added->name, "%.*s", (int)length, name);
    return added;
}

/* "STAGE CALLS NS NAME", up to a bar or the end. */
static void add_one(struct sums *sums, const char *at)
{
    double stage, calls, ns;
    if (!take_number(&at, &stage) || !take_number(&at, &calls) || !take_number(&at, &ns) || *at != ' ')
        return;
    size_t length = strcspn(++at, "|");
    if (!length || stage >= DR_STAGE_PUT)
        return;
    if (length >= sizeof sums->operators->name)
        length = sizeof sums->operators->name - 1;
    struct dr_operator *to = find(sums, (enum dr_stage)stage, at, length);
    if (to)
        to->calls += calls, to->seconds += ns / 1e9;
}

static void add(struct sums *sums, const char *text)
{
    double samples, ns;
    if (!take_number(&text, &samples) || !take_number(&text, &ns))
        return;
    sums->samples += samples;
    sums->seconds += ns / 1e9;
    while ((text = strchr(text, '|')))
        add_one(sums, ++text);
}

static int costliest_first(const void *a, const void *b)
{
    const struct dr_operator *one = a, *other = b;
    return (one->seconds < other->seconds) - (one->seconds > other->seconds);
}

int dr_facts_operators(struct dr_part *part)
{
    struct dr_facts *facts = part->facts;
    struct sums sums = {.operators = dr_blocks_new(part->blocks, DR_OPERATORS_MOST,
                                                   sizeof *sums.operators)};
    char key[64];
    if (!sums.operators)
        return st_fail(part->err, STOKER_ENOMEM, "out of memory for operators");
    snprintf(key, sizeof key, "loader.%u.operators", part->intervals.loader);
    for (uint32_t k = 0; k < part->run->processes; k++) {
        const struct dr_process *process = &part->run->process[k];
        const char *text = dr_is_maker(part, process) ? dr_said(process, key) : NULL;
        if (text)
            add(&sums, text);
    }
    if (!(sums.samples > 0) || !(sums.seconds > 0) || !isfinite(sums.samples + sums.seconds))
        return STOKER_OK;
    qsort(sums.operators, sums.count, sizeof *sums.operators, costliest_first);
    for (uint32_t k = 0; k < sums.count; k++) {
        sums.operators[k].share = sums.operators[k].seconds / sums.seconds;
        sums.operators[k].calls /= sums.samples;
        sums.operators[k].seconds /= sums.samples;
    }
    facts->operators = sums.operators;
    facts->operator_count = sums.count;
    facts->sample_seconds = sums.seconds / sums.samples;
    return STOKER_OK;
}
