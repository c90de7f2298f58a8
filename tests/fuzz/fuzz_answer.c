/* fuzz_answer.c - what a server answers, over several tries: its headers, and bodies of any length
 *
 * The first line says what was asked for, "FROM WANTED" with " known" behind it where the object's size
 * and tag are known already. Then come the headers of one answer after another, which begin with
 * "HTTP/1.1 206", and between them lines "=1000" for so many bytes of a body.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/remote/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WANTED_MAX = 4096, BODY_MAX = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void answer(struct st_answer *a, char *text, const uint8_t *body)
{
    char *rest = NULL;
    long status = 0;
    bool open = true;
    for (char *line = strtok_r(text, "\n", &rest); line && open; line = strtok_r(NULL, "\n", &rest)) {
        if (line[0] == '=') {
            const unsigned long size = strtoul(line + 1, NULL, 10);
            open = st_answer_body(a, status, body, size < BODY_MAX ? size : BODY_MAX);
            continue;
        }
        if (!strncmp(line, "HTTP/", 5))
            status = strtol(line + strcspn(line, " "), NULL, 10);
        char *exact = malloc(strlen(line) + 1); /* not terminated, as libcurl's are not */
        if (!exact)
            abort();
        memcpy(exact, line, strlen(line));
        st_answer_header(a, exact, strlen(line));
        free(exact);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t body[BODY_MAX];
    struct st_http_version known = {.size = 10000, .tag = "\"tag\""};
    char *text = calloc(size + 1, 1), *end;
    if (!text)
        return 0;
    memcpy(text, data, size);
    struct st_answer a = {.from = strtoull(text, &end, 10)};
    const uint64_t wanted = a.wanted = strtoull(end, &end, 10) % WANTED_MAX + 1;
    if (!strncmp(end, " known", 6))
        a.known = &known;
    else
        a.from = 0;
    uint8_t *into = malloc(wanted); /* of the exact size: a sanitizer sees every overrun */
    const uint64_t third = wanted / 3;
    const struct st_http_part parts[] = {{into, third}, {NULL, third}, {into + third, wanted - 2 * third}};
    const struct st_http_part whole = {into, wanted};
    a.parts = third && wanted % 2 ? parts : &whole;
    if (into)
        answer(&a, end, body);
    if (a.got > a.wanted || a.wanted > wanted)
        abort(); /* more than was asked for */
    volatile size_t sum = strlen(st_answer_tag(&a)) + strlen(a.region) + strlen(a.modified);
    (void)sum;
    free(into);
    free(text);
    return 0;
}
