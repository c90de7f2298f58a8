/* patch_import.c - has a Python program import Stoker's DataLoader instead of torch's
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/tune/patch.h"

#include "base/err.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char FROM[] = "from torch.utils.data import ", NAME[] = "DataLoader";

/* The number of quotes of either kind in threes: a line may begin inside such a text. */
static uint32_t threes_in(const char *line, size_t length)
{
    uint32_t count = 0;
    for (size_t k = 0; k + 3 <= length; k++)
        if (!memcmp(line + k, "\"\"\"", 3) || !memcmp(line + k, "'''", 3))
            count++, k += 2;
    return count;
}

/* Copies a list of names without DataLoader, which goes into `ours` as it is imported ("DataLoader as
 * Loader"). False: it is not among them. `others` and `ours` have room for `length` + 1 bytes. */
static bool take_out(const char *names, size_t length, char *others, char *ours)
{
    others[0] = ours[0] = '\0';
    for (size_t at = 0; at <= length;) {
        size_t end = at;
        while (end < length && names[end] != ',')
            end++;
        size_t first = at, last = end;
        while (first < last && strchr(" \t\r", names[first]))
            first++;
        while (last > first && strchr(" \t\r", names[last - 1]))
            last--;
        const size_t word = last - first, whole = sizeof NAME - 1;
        if (word >= whole && !memcmp(names + first, NAME, whole) &&
            (word == whole || names[first + whole] == ' '))
            sprintf(ours, "%.*s", (int)word, names + first);
        else if (word)
            sprintf(others + strlen(others), "%s%.*s", others[0] ? ", " : "", (int)word, names + first);
        at = end + 1;
    }
    return ours[0];
}

/* The new text of the line `line`, whose import begins after `indent` bytes; NULL: it imports something
 * else, or out of memory. */
static char *changed(const char *line, size_t indent, size_t length, bool *no_memory)
{
    const char *names = line + indent + sizeof FROM - 1;
    const size_t size = length - indent - (sizeof FROM - 1);
    char *others = malloc(2 * (size + 1)), *out = NULL;
    *no_memory = !others;
    if (others && take_out(names, size, others, others + size + 1)) {
        const char *ours = others + size + 1;
        const int got = others[0] ? asprintf(&out, "%s%s\n%.*sfrom stoker import %s", FROM, others,
                                             (int)indent, line, ours)
                                  : asprintf(&out, "from stoker import %s", ours);
        if (got < 0) {
            out = NULL;
            *no_memory = true;
        }
    }
    free(others);
    return out;
}

int dr_patch_import(struct dr_patch *out, const char *text, size_t size, struct stoker_error *err)
{
    bool inside = false, no_memory = false;
    *out = (struct dr_patch){0};
    for (size_t at = 0; at < size && !no_memory;) {
        const char *line = text + at, *end = memchr(line, '\n', size - at);
        const size_t length = end ? (size_t)(end - line) : size - at;
        const size_t kept = length && line[length - 1] == '\r' ? length - 1 : length;
        size_t indent = 0;
        while (indent < kept && (line[indent] == ' ' || line[indent] == '\t'))
            indent++;
        if (!inside && kept < 4096 && kept - indent > sizeof FROM - 1 &&
            !memcmp(line + indent, FROM, sizeof FROM - 1) && !memchr(line, '(', kept) &&
            !memchr(line, '\\', kept) && !memchr(line, '#', kept) && !memchr(line, ';', kept))
            out->call = changed(line, indent, kept, &no_memory);
        if (out->call) {
            out->begin = at + indent;
            out->end = at + kept;
            return STOKER_OK;
        }
        inside ^= threes_in(line, length) & 1;
        at += length + 1;
    }
    return no_memory ? st_fail(err, STOKER_ENOMEM, "out of memory")
                     : st_fail(err, STOKER_ENOTFOUND,
                               "no line 'from torch.utils.data import DataLoader' was found");
}
