/* words.c - names used in reports, and formatted numbers
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/words.h"

#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

const char *dr_kind_name(enum dr_verdict_kind kind)
{
    return kind == DR_DATA_BOUND      ? "data-bound"
           : kind == DR_COMPUTE_BOUND ? "compute-bound"
                                      : "cannot tell";
}

const char *dr_role_name(enum dr_role role)
{
    return role == DR_TRAINER ? "trainer" : role == DR_WORKER ? "worker" : "other";
}

const char *dr_verdict_code(const struct dr_verdict *verdict)
{
    if (verdict->findings)
        return verdict->finding[0].rule->code;
    return verdict->kind == DR_COMPUTE_BOUND ? "ST201" : "ST901";
}

const char *dr_said_by(const struct dr_process *process, const char *key)
{
    return process ? dr_said(process, key) : NULL;
}

double dr_steps_ready(const struct dr_facts *facts, uint64_t begin, uint64_t end)
{
    double sum = 0, known = 0;
    for (uint64_t i = begin; i < end; i++)
        if (facts->steps[i].ready != DR_UNKNOWN) {
            sum += facts->steps[i].ready;
            known++;
        }
    return known > 0 ? sum / known : NAN;
}

/* Values that the formats do not cover: "n/a", or the bare number if it is absurdly large. NULL:
 * neither. */
static const char *odd_text(struct dr_text *room, double value)
{
    if (isfinite(value) && fabs(value) < 1e15)
        return NULL;
    snprintf(room->text, sizeof room->text, isfinite(value) ? "%.3g" : "n/a", value);
    return room->text;
}

const char *dr_seconds_text(struct dr_text *room, double seconds)
{
    const double size = fabs(seconds);
    if (odd_text(room, seconds))
        return room->text;
    if (size == 0)
        snprintf(room->text, sizeof room->text, "0 s");
    else if (size < 1e-3)
        snprintf(room->text, sizeof room->text, "%.0f us", 1e6 * seconds);
    else if (size < 1)
        snprintf(room->text, sizeof room->text, size < 0.01 ? "%.1f ms" : "%.0f ms", 1e3 * seconds);
    else if (size < 120)
        snprintf(room->text, sizeof room->text, size < 10 ? "%.2f s" : "%.1f s", seconds);
    else
        snprintf(room->text, sizeof room->text, size < 7200 ? "%.1f min" : "%.1f h",
                 size < 7200 ? seconds / 60 : seconds / 3600);
    return room->text;
}

const char *dr_share_text(struct dr_text *room, double share)
{
    if (odd_text(room, share))
        return room->text;
    snprintf(room->text, sizeof room->text, share > 0 && share < 0.0995 ? "%.1f %%" : "%.0f %%",
             100 * share);
    return room->text;
}

const char *dr_plain_text(struct dr_text *room, double value)
{
    struct number_text number;
    if (odd_text(room, value))
        return room->text;
    if (fabs(value) >= 100 || value == floor(value))
        snprintf(room->text, sizeof room->text, "%s", with_commas(&number, value));
    else
        snprintf(room->text, sizeof room->text, fabs(value) >= 10 ? "%.1f" : "%.2f", value);
    return room->text;
}

const char *dr_unit_text(struct dr_text *room, double value, const char *unit)
{
    struct bytes_text bytes;
    if (odd_text(room, value))
        return room->text;
    if (!strcmp(unit, "share"))
        return dr_share_text(room, value);
    if (!strcmp(unit, "s"))
        return dr_seconds_text(room, value);
    if (!strncmp(unit, "bytes", 5)) {
        snprintf(room->text, sizeof room->text, "%s%s%s", value < 0 ? "-" : "",
                 with_unit(&bytes, fabs(value)), unit + 5);
        return room->text;
    }
    struct dr_text number;
    dr_plain_text(&number, value);
    snprintf(room->text, sizeof room->text, "%.24s%s%s", number.text,
             *unit && *unit != '/' && strncmp(unit, "1/", 2) ? " " : "",
             !strncmp(unit, "1/", 2) ? unit + 1
             : !strcmp(unit, "cpus") ? "CPUs"
                                     : unit);
    return room->text;
}
