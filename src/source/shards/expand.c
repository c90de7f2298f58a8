/* expand.c - expands a pattern into the files that it matches
 *
 * A pattern is a sequence of literal text and braces. Each choice of the first brace is combined with
 * every expansion of the rest, so the last brace varies fastest, as in a shell.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/shards/expand.h"
#include "source/text/names.h"
#include "source/remote/remote.h"

#include "base/mem.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = PATH_MAX, BRACES_MAX = 64 };

/* What is still to be expanded after the text chosen so far: a list of spans, innermost first. */
struct rest {
    const char *at, *end;
    const struct rest *then;
};

struct expansion {
    struct st_paths *out;
    struct stoker_error *err;
    const char *pattern;
    uint64_t size; /* of the text chosen so far */
    uint32_t depth;
    char text[TEXT_MAX];
};

static int expand_rest(struct expansion *e, const struct rest *rest);

int st_paths_add(struct st_paths *out, const char *path, size_t size, struct stoker_error *err)
{
    if (out->count >= ST_SHARDS_MAX)
        return st_fail(err, STOKER_ELIMIT, "the pattern matches more than %u files", ST_SHARDS_MAX);
    if (out->count == out->room) {
        const uint64_t room = out->room ? out->room * 2 : 16;
        char **items = st_grow(out->items, room, sizeof *items);
        if (!items)
            return st_fail(err, STOKER_ENOMEM, "out of memory for a list of files");
        out->items = items;
        out->room = room;
    }
    char *copy = st_calloc(size + 1, 1);
    if (!copy)
        return st_fail(err, STOKER_ENOMEM, "out of memory for a list of files");
    memcpy(copy, path, size);
    out->items[out->count++] = copy;
    return 0;
}

void st_paths_free(struct st_paths *paths)
{
    for (uint64_t i = 0; i < paths->count; i++)
        free(paths->items[i]);
    free(paths->items);
    *paths = (struct st_paths){0};
}

/* Appends the text to what is chosen, expands the rest, and removes the text again. */
static int choose(struct expansion *e, const char *text, size_t size, const struct rest *rest)
{
    if (size >= sizeof e->text - e->size)
        return st_fail(e->err, STOKER_ELIMIT, "%.300s: expands to a name of more than %d bytes",
                       e->pattern, TEXT_MAX);
    memcpy(e->text + e->size, text, size);
    e->size += size;
    const int rc = expand_rest(e, rest);
    e->size -= size;
    return rc;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

struct range {
    int64_t from, to, step;
    int width;
    bool letters;
};

/* Parses "-012" with at most 18 digits, and advances. */
static bool take_number(const char **at, const char *end, int64_t *out, const char **began)
{
    const char *p = *at;
    const bool minus = p < end && *p == '-';
    *began = p;
    p += minus;
    int64_t value = 0;
    const char *digits = p;
    for (; p < end && *p >= '0' && *p <= '9' && p - digits < 18; p++)
        value = value * 10 + (*p - '0');
    if (p == digits || (p < end && *p >= '0' && *p <= '9'))
        return false;
    *out = minus ? -value : value;
    *at = p;
    return true;
}

static bool take_dots(const char **at, const char *end)
{
    if (end - *at < 2 || (*at)[0] != '.' || (*at)[1] != '.')
        return false;
    *at += 2;
    return true;
}

static bool is_padded(const char *from, const char *to)
{
    const char *digits = from + (*from == '-');
    return to - digits > 1 && *digits == '0';
}

static bool take_step(const char **at, const char *end, int64_t *step)
{
    const char *began;
    *step = 1;
    if (*at == end)
        return true;
    if (!take_dots(at, end) || !take_number(at, end, step, &began) || *at != end)
        return false;
    *step = *step < 0 ? -*step : *step ? *step : 1;
    return true;
}

/* Letters are numbered A to Z, then a to z. */
static int64_t letter_number(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : -1;
}

static bool read_range(const char *at, const char *end, struct range *out)
{
    const char *p = at, *first, *first_end, *second;
    *out = (struct range){0};
    if (take_number(&p, end, &out->from, &first)) {
        first_end = p;
        if (!take_dots(&p, end) || !take_number(&p, end, &out->to, &second))
            return false;
        if (is_padded(first, first_end) || is_padded(second, p))
            out->width = (int)(first_end - first > p - second ? first_end - first : p - second);
        return take_step(&p, end, &out->step);
    }
    if (end - at < 4 || letter_number(at[0]) < 0 || letter_number(at[3]) < 0)
        return false;
    out->letters = true;
    out->from = letter_number(at[0]);
    out->to = letter_number(at[3]);
    p = at + 1;
    if (!take_dots(&p, end))
        return false;
    p++;
    return take_step(&p, end, &out->step);
}

static int choose_range(struct expansion *e, const struct range *r, const struct rest *rest)
{
    const bool up = r->from < r->to;
    int rc = 0;
    for (int64_t value = r->from; !rc && (up ? value <= r->to : value >= r->to);
         value += up ? r->step : -r->step) {
        char text[40];
        int size = 1;
        if (r->letters)
            text[0] = (char)(value < 26 ? 'A' + value : 'a' + value - 26);
        else
            size = snprintf(text, sizeof text, "%0*lld", r->width, (long long)value);
        rc = choose(e, text, (size_t)size, rest);
    }
    return rc;
}

/* ---- braces ---------------------------------------------------------------------------------- */

/* The first `wanted` outside inner braces; for '}' that is the one that closes the brace before `at`.
 * NULL: none. */
static const char *find(const char *at, const char *end, char wanted)
{
    int depth = 0;
    for (; at < end; at++) {
        if (*at == '\\')
            at++;
        else if (depth == 0 && *at == wanted)
            return at;
        else
            depth += *at == '{' ? 1 : *at == '}' ? -1 : 0;
    }
    return NULL;
}

static int choose_brace(struct expansion *e, const char *at, const char *end, const struct rest *rest)
{
    static const char closing[] = "\\}"; /* escaped: literal text */
    struct range range;
    if (read_range(at, end, &range))
        return choose_range(e, &range, rest);
    if (!find(at, end, ',')) { /* not a list: keep the braces and expand their content */
        const struct rest close = {closing, closing + 2, rest}, inner = {at, end, &close};
        return choose(e, "{", 1, &inner);
    }
    int rc = 0;
    for (const char *item = at; !rc && item;) {
        const char *comma = find(item, end, ',');
        const struct rest chosen = {item, comma ? comma : end, rest};
        rc = choose(e, "", 0, &chosen);
        item = comma ? comma + 1 : NULL;
    }
    return rc;
}

static int expand_brace(struct expansion *e, const struct rest *rest)
{
    const char *closing = find(rest->at + 1, rest->end, '}');
    if (!closing || *rest->at != '{')
        return st_fail(e->err, STOKER_EINVAL,
                       "%.300s: unmatched brace; write \\%c for a literal brace", e->pattern,
                       *rest->at);
    if (e->depth == BRACES_MAX)
        return st_fail(e->err, STOKER_ELIMIT, "%.300s: more than %d nested braces", e->pattern,
                       BRACES_MAX);
    const struct rest behind = {closing + 1, rest->end, rest->then};
    e->depth++;
    const int rc = choose_brace(e, rest->at + 1, closing, &behind);
    e->depth--;
    return rc;
}

/* Appends the text up to the next brace, then expands each choice of that brace. */
static int expand_rest(struct expansion *e, const struct rest *rest)
{
    const uint64_t before = e->size;
    struct rest now = *rest;
    while (now.at < now.end || now.then) {
        if (now.at == now.end) {
            now = *now.then;
            continue;
        }
        if (*now.at == '{' || *now.at == '}')
            break;
        if (*now.at == '\\' && now.at + 1 < now.end)
            now.at++;
        if (e->size == sizeof e->text)
            return st_fail(e->err, STOKER_ELIMIT, "%.300s: expands to a name of more than %d bytes",
                           e->pattern, TEXT_MAX);
        e->text[e->size++] = *now.at++;
    }
    const int rc =
        now.at < now.end ? expand_brace(e, &now) : st_paths_add(e->out, e->text, e->size, e->err);
    e->size = before;
    return rc;
}

int st_expand_braces(struct st_paths *out, const char *pattern, struct stoker_error *err)
{
    const struct rest all = {pattern, pattern + strlen(pattern), NULL};
    struct expansion e = {.out = out, .err = err, .pattern = pattern};
    return expand_rest(&e, &all);
}

/* ---- patterns of file names ------------------------------------------------------------------ */

static int by_name(const void *a, const void *b)
{
    const char *left = *(char *const *)a, *right = *(char *const *)b;
    return st_name_compare(left, strlen(left), right, strlen(right));
}

void st_paths_sort(struct st_paths *paths)
{
    if (paths->count)
        qsort(paths->items, paths->count, sizeof *paths->items, by_name);
}

static int add_matches(struct st_paths *out, const char *pattern, struct stoker_error *err)
{
    glob_t found = {0};
    const uint64_t before = out->count;
    int rc = glob(pattern, GLOB_NOSORT, NULL, &found);
    if (rc)
        rc = rc == GLOB_NOSPACE
                 ? st_fail(err, STOKER_ENOMEM, "%.300s: out of memory", pattern)
                 : st_fail(err, STOKER_ENOTFOUND, "%.700s: no file matches this pattern", pattern);
    for (size_t i = 0; i < found.gl_pathc && !rc; i++)
        rc = st_paths_add(out, found.gl_pathv[i], strlen(found.gl_pathv[i]), err);
    globfree(&found);
    if (!rc && out->count > before)
        qsort(out->items + before, out->count - before, sizeof *out->items, by_name);
    return rc;
}

static int expand_part(struct st_paths *out, const char *part, struct stoker_error *err)
{
    struct st_paths braces = {0};
    if (!st_remote_is_url(part) && !access(part, F_OK))
        return st_paths_add(out, part, strlen(part), err);
    int rc = st_expand_braces(&braces, part, err);
    for (uint64_t i = 0; i < braces.count && !rc; i++) {
        const char *path = braces.items[i];
        rc = !st_remote_is_url(path) && strpbrk(path, "*?[") && access(path, F_OK)
                 ? add_matches(out, path, err)
                 : st_paths_add(out, path, strlen(path), err);
    }
    st_paths_free(&braces);
    return rc;
}

/* The next "::" that is not inside a host address, as in http://[::1]/x.tar. */
static const char *end_of_part(const char *at)
{
    const char *host = st_remote_is_url(at) ? strstr(at, "://") : NULL;
    const char *closing = host ? memrchr(host + 3, ']', strcspn(host + 3, "/")) : NULL;
    return strstr(closing ? closing : at, "::");
}

int st_expand(struct st_paths *out, const char *pattern, struct stoker_error *err)
{
    char part[PATH_MAX];
    int rc = 0;
    for (const char *at = pattern; at && !rc;) {
        const char *end = end_of_part(at);
        const size_t size = end ? (size_t)(end - at) : strlen(at);
        if (size == 0 || size >= sizeof part)
            return st_fail(err, STOKER_EINVAL, "%.300s: %s", pattern,
                           size ? "contains a name that is too long" : "contains an empty name");
        memcpy(part, at, size);
        part[size] = '\0';
        rc = expand_part(out, part, err);
        at = end ? end + 2 : NULL;
    }
    return rc;
}
