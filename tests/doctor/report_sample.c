/* report_sample.c - writes the reports of a sample run: report_sample KIND FOLDER
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "report_sample.h"

#include "doctor/tune/tune.h"

static FILE *begin(const char *folder, const char *name)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    if (!file) {
        perror(path);
        exit(1);
    }
    return file;
}

int main(int argc, char **argv)
{
    static struct sample s;
    int kind = 0;
    while (argc == 3 && kind < SAMPLE_KINDS && strcmp(sample_names[kind], argv[1]))
        kind++;
    if (argc != 3 || kind == SAMPLE_KINDS)
        return 2;
    sample_open(&s, (enum sample_kind)kind);
    static const struct dr_scale_point points[] = {{1, 10}, {2, 18}, {4, 30}};
    struct dr_scale scale;
    const struct dr_tuned tuned = {
        .point = points,
        .points = kind == SAMPLE_UNKNOWN ? 0 : 3,
        .scale = dr_scale_fit(&scale, points, 3) ? &scale : NULL,
        .workers = 6,
        .before = 0.1,
        .floor = kind == SAMPLE_UNKNOWN ? NAN : 0.025,
        .side = {{"now", 10, 0.02, NAN}, {"num_workers=6", 34, 0.01, 3.3}, {sample_hostile, 39, 0.04, NAN}},
        .advice = kind == SAMPLE_HOSTILE ? sample_hostile : "3.40x with these settings",
    };
    FILE *json = begin(argv[2], "run.json"), *html = begin(argv[2], "report.html"),
         *tune = begin(argv[2], "tune.html"), *trace = begin(argv[2], "trace.json");
    int failed = dr_write_json(json, &s.verdict, &s.facts);
    failed |= dr_write_html(html, &s.verdict, &s.facts);
    failed |= dr_write_tune_html(tune, &s.verdict, &s.facts, &tuned);
    failed |= dr_write_trace(trace, &s.facts);
    failed |= fclose(json) | fclose(html) | fclose(tune) | fclose(trace);
    sample_close(&s);
    return failed != 0;
}
