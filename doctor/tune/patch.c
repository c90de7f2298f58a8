/* patch.c - changes the arguments of a DataLoader call in the text of a Python program
 *
 * It is not a Python parser: it knows strings, comments and brackets, which is enough to find where an
 * argument begins and ends.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/tune/patch.h"

#include "base/err.h"
#include "base/mem.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ARGUMENTS_MOST = 64,
    NUM_WORKERS_PLACE = 5 /* dataset, batch_size, shuffle, sampler, batch_sampler come before */
};

struct text {
    const char *data;
    size_t size;
};

struct argument {
    size_t begin, end;  /* without the spaces around it */
    size_t name_size;   /* 0: by position */
    size_t value_begin; /* after "name=" */
};

struct call {
    size_t begin, open, close; /* its name; its brackets */
    struct argument argument[ARGUMENTS_MOST];
    uint32_t arguments;
    bool ends_with_comma;
};

static bool name_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 128;
}

/* The position after the string that begins at `at` (at its quote). */
static size_t skip_string(const struct text *t, size_t at)
{
    const char quote = t->data[at];
    const bool triple = at + 2 < t->size && t->data[at + 1] == quote && t->data[at + 2] == quote;
    for (at += triple ? 3 : 1; at < t->size; at++) {
        if (t->data[at] == '\\') {
            at++;
            continue;
        }
        if (t->data[at] != quote)
            continue;
        if (!triple)
            return at + 1;
        if (at + 2 < t->size && t->data[at + 1] == quote && t->data[at + 2] == quote)
            return at + 3;
    }
    return t->size;
}

/* The position after the string, the comment, or otherwise the byte at `at`. */
static size_t skip_token(const struct text *t, size_t at)
{
    if (t->data[at] == '"' || t->data[at] == '\'')
        return skip_string(t, at);
    if (t->data[at] == '#')
        while (at < t->size && t->data[at] != '\n')
            at++;
    else
        at++;
    return at;
}

static size_t line_start(const struct text *t, int line)
{
    size_t at = 0;
    while (--line > 0) {
        const char *end = memchr(t->data + at, '\n', t->size - at);
        if (!end)
            return t->size;
        at = (size_t)(end - t->data) + 1;
    }
    return at;
}

/* The first call in or after the line whose name ends in "Loader" (DataLoader, StatefulDataLoader, an
 * alias). */
static bool find_name(const struct text *t, int line, struct call *call)
{
    static const char wanted[] = "Loader";
    const size_t length = sizeof wanted - 1;
    for (size_t at = line_start(t, line), lines = 0; at < t->size && lines < 3;) {
        if (t->data[at] == '(') {
            size_t end = at;
            while (end > 0 && (t->data[end - 1] == ' ' || t->data[end - 1] == '\t'))
                end--;
            size_t begin = end;
            while (begin > 0 && (name_byte(t->data[begin - 1]) || t->data[begin - 1] == '.'))
                begin--;
            if (end - begin >= length && !memcmp(t->data + end - length, wanted, length)) {
                call->begin = begin;
                call->open = at;
                return true;
            }
        }
        lines += t->data[at] == '\n';
        at = skip_token(t, at);
    }
    return false;
}

/* Finishes the argument that ends before `end`; ignores spaces and comments. */
static bool add_argument(const struct text *t, struct call *call, size_t begin, size_t end)
{
    while (begin < end && (isspace((unsigned char)t->data[begin]) || t->data[begin] == '#'))
        begin = skip_token(t, begin);
    size_t last = begin;
    for (size_t at = begin; at < end; at = skip_token(t, at))
        if (t->data[at] != '#' && !isspace((unsigned char)t->data[at]))
            last = skip_token(t, at);
    if (begin >= end || last <= begin)
        return true;
    if (call->arguments == ARGUMENTS_MOST)
        return false;
    struct argument *argument = &call->argument[call->arguments++];
    *argument = (struct argument){.begin = begin, .end = last, .value_begin = begin};
    size_t at = begin;
    while (at < last && name_byte(t->data[at]))
        at++;
    const size_t name_size = at - begin;
    while (at < last && (t->data[at] == ' ' || t->data[at] == '\t'))
        at++;
    if (name_size && at + 1 < last && t->data[at] == '=' && t->data[at + 1] != '=') {
        argument->name_size = name_size;
        for (at++; at < last && (t->data[at] == ' ' || t->data[at] == '\t');)
            at++;
        argument->value_begin = at;
    }
    return true;
}

static bool find_arguments(const struct text *t, struct call *call)
{
    int depth = 0;
    size_t begin = call->open + 1;
    for (size_t at = call->open; at < t->size; at = skip_token(t, at)) {
        const char c = t->data[at];
        if (c == '(' || c == '[' || c == '{')
            depth++;
        const bool closes = c == ')' || c == ']' || c == '}';
        if (closes && --depth == 0) {
            const uint32_t before = call->arguments;
            call->close = at;
            if (!add_argument(t, call, begin, at))
                return false;
            call->ends_with_comma = before > 0 && call->arguments == before;
            return true;
        }
        if (c == ',' && depth == 1) {
            if (!add_argument(t, call, begin, at))
                return false;
            begin = at + 1;
        }
    }
    return false;
}

static bool is_named(const struct text *t, const struct argument *argument, const char *name)
{
    return argument->name_size == strlen(name) &&
           !memcmp(t->data + argument->begin, name, argument->name_size);
}

/* The separator before another argument: a new line with the indentation of the last argument, if that
 * has its own line. */
static size_t separator(const struct text *t, const struct call *call, char *out, size_t room)
{
    const struct argument *last = call->arguments ? &call->argument[call->arguments - 1] : NULL;
    size_t begin = last ? last->begin : 0;
    while (begin > 0 && (t->data[begin - 1] == ' ' || t->data[begin - 1] == '\t'))
        begin--;
    const size_t indent = last ? last->begin - begin : 0;
    if (begin == 0 || t->data[begin - 1] != '\n' || indent + 2 > room) {
        memcpy(out, " ", 2);
        return 1;
    }
    out[0] = '\n';
    memcpy(out + 1, t->data + begin, indent);
    return indent + 1;
}

static int refuse(const struct text *t, const struct call *call, struct stoker_error *err)
{
    uint32_t by_position = 0;
    for (uint32_t k = 0; k < call->arguments; k++) {
        const struct argument *argument = &call->argument[k];
        if (argument->end - argument->begin > 2 && !memcmp(t->data + argument->begin, "**", 2))
            return st_fail(
                err, STOKER_EUNSUPPORTED,
                "the call takes its settings from %.*s: change them there",
                (int)(argument->end - argument->begin > 64 ? 64 : argument->end - argument->begin),
                t->data + argument->begin);
        by_position += !argument->name_size;
    }
    if (by_position > NUM_WORKERS_PLACE)
        return st_fail(
            err, STOKER_EUNSUPPORTED,
            "the call passes num_workers by position: write it as a keyword first (num_workers=...)");
    return 0;
}

/* ---- the new text ------------------------------------------------------------------------------ */

static void put(struct st_buffer *out, const char *bytes, size_t size)
{
    memcpy(out->data + out->size, bytes, size);
    out->size += size;
}

/* The existing arguments with new values, from the name of the call to the end of its last argument. */
static size_t put_changed(struct st_buffer *out, const struct text *t, const struct call *call,
                          const struct dr_setting *settings, uint32_t count, bool *done)
{
    size_t at = call->begin;
    for (uint32_t k = 0; k < call->arguments; k++)
        for (uint32_t s = 0; s < count; s++) {
            const struct argument *argument = &call->argument[k];
            if (!is_named(t, argument, settings[s].name))
                continue;
            put(out, t->data + at, argument->value_begin - at);
            put(out, settings[s].value, strlen(settings[s].value));
            at = argument->end;
            done[s] = true;
        }
    const size_t last = call->arguments ? call->argument[call->arguments - 1].end : call->open + 1;
    put(out, t->data + at, last - at);
    return last;
}

static void put_added(struct st_buffer *out, const struct text *t, const struct call *call,
                      const struct dr_setting *settings, uint32_t count, const bool *done)
{
    char between[128];
    const size_t size = separator(t, call, between, sizeof between);
    bool first = !call->arguments;
    for (uint32_t s = 0; s < count; s++) {
        if (done[s])
            continue;
        if (!first) {
            put(out, ",", 1);
            put(out, between, size);
        }
        first = false;
        put(out, settings[s].name, strlen(settings[s].name));
        put(out, "=", 1);
        put(out, settings[s].value, strlen(settings[s].value));
    }
}

int dr_patch_call(struct dr_patch *out, const char *text, size_t size, int line,
                  const struct dr_setting *settings, uint32_t count, struct stoker_error *err)
{
    const struct text t = {text, size};
    struct call call = {0};
    bool done[16] = {false};
    *out = (struct dr_patch){0};
    if (count > sizeof done / sizeof done[0])
        return st_fail(err, STOKER_EINVAL, "too many settings for a call");
    if (line < 1 || !find_name(&t, line, &call))
        return st_fail(err, STOKER_ENOTFOUND, "line %d contains no DataLoader call", line);
    if (!find_arguments(&t, &call))
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "the call in line %d has no closing bracket, or too many arguments", line);
    if (refuse(&t, &call, err))
        return err ? err->code : STOKER_EUNSUPPORTED;
    struct st_buffer made = {0};
    if (!st_buffer_reserve(&made, call.close - call.begin + count * 256 + 2))
        return st_fail(err, STOKER_ENOMEM, "out of memory");
    const size_t last = put_changed(&made, &t, &call, settings, count, done);
    put_added(&made, &t, &call, settings, count, done);
    put(&made, text + last, call.close + 1 - last);
    made.data[made.size] = '\0';
    *out = (struct dr_patch){call.begin, call.close + 1, (char *)made.data};
    return 0;
}
