/* report_sample.c - writes the reports of a sample run: report_sample KIND FOLDER
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "report_sample.h"

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
    FILE *json = begin(argv[2], "run.json"), *html = begin(argv[2], "report.html"),
         *trace = begin(argv[2], "trace.json");
    int failed = dr_write_json(json, &s.verdict, &s.facts);
    failed |= dr_write_html(html, &s.verdict, &s.facts);
    failed |= dr_write_trace(trace, &s.facts);
    failed |= fclose(json) | fclose(html) | fclose(trace);
    sample_close(&s);
    return failed != 0;
}
