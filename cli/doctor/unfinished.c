/* unfinished.c - weak stand-ins for parts that are being written; goes away with the last of them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/err.h"
#include "cli/doctor/report.h"

#include <string.h>

#define WEAK __attribute__((weak))
WEAK int dr_run_open(struct dr_run **out, const char *directory, struct stoker_error *err)
{
    *out = NULL;
    return st_fail(err, STOKER_EUNSUPPORTED, "%s: not written yet", directory);
}
WEAK void dr_run_close(struct dr_run *run) { (void)run; }
WEAK int dr_facts_of(struct dr_facts *out, const struct dr_run *run, int rank, struct stoker_error *err)
{
    (void)run, (void)rank;
    memset(out, 0, sizeof *out);
    return st_fail(err, STOKER_EUNSUPPORTED, "not written yet");
}
WEAK void dr_facts_free(struct dr_facts *facts) { (void)facts; }
WEAK bool dr_trace_of(struct dr_trace *trace, struct dr_plan *now, const struct dr_facts *facts)
{
    (void)trace, (void)now, (void)facts;
    return false;
}
WEAK void dr_judge(struct dr_verdict *out, const struct dr_facts *facts)
{
    (void)facts;
    memset(out, 0, sizeof *out);
    out->kind = DR_CANNOT_TELL;
}
WEAK void dr_print_verdict(FILE *to, const struct dr_style *style, const struct dr_verdict *verdict,
                           const struct dr_facts *facts)
{
    (void)to, (void)style, (void)verdict, (void)facts;
}
WEAK int dr_write_json(FILE *to, const struct dr_verdict *verdict, const struct dr_facts *facts)
{
    (void)to, (void)verdict, (void)facts;
    return 0;
}
WEAK int dr_write_html(FILE *to, const struct dr_verdict *verdict, const struct dr_facts *facts)
{
    (void)to, (void)verdict, (void)facts;
    return 0;
}
WEAK int dr_write_trace(FILE *to, const struct dr_facts *facts)
{
    (void)to, (void)facts;
    return 0;
}
WEAK void dr_simulate(struct dr_outcome *out, const struct dr_trace *trace, const struct dr_plan *plan)
{
    (void)trace, (void)plan;
    memset(out, 0, sizeof *out);
}
WEAK struct dr_range dr_gain(const struct dr_trace *trace, const struct dr_plan *now, const struct dr_plan *then,
                             double ceiling)
{
    (void)trace, (void)now, (void)then, (void)ceiling;
    return (struct dr_range){1, 1, 1};
}
WEAK const char *const dr_stage_names[DR_STAGES] = {"read"};
