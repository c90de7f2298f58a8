/* answer.c - what a server answers, checked as it comes in
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/remote/answer.h"

#include "base/mem.h"

#include <string.h>
#include <strings.h>

static bool take_number(const char **at, uint64_t *out)
{
    uint64_t value = 0;
    const char *p = *at;
    for (; *p >= '0' && *p <= '9'; p++)
        if (!st_mul(value, 10, &value) || !st_add(value, (uint64_t)(*p - '0'), &value))
            return false;
    const bool some = p > *at;
    *at = p;
    *out = value;
    return some;
}

static bool take_sign(const char **at, char sign)
{
    const bool there = **at == sign;
    *at += there;
    return there;
}

/* "bytes 0-99/1234", or of an answer 416 "bytes * /1234" without the blank. */
static void read_content_range(struct st_answer *a, const char *text)
{
    a->has_range = a->has_total = false;
    if (strncasecmp(text, "bytes", 5))
        return;
    text += 5 + strspn(text + 5, " =");
    if (!take_sign(&text, '*'))
        a->has_range = take_number(&text, &a->first) && take_sign(&text, '-') &&
                       take_number(&text, &a->last) && a->first <= a->last;
    a->has_total = take_sign(&text, '/') && take_number(&text, &a->total);
}

static void take_text(char *out, size_t room, const char *text)
{
    const size_t size = strcspn(text, "\r\n");
    if (size < room) {
        memcpy(out, text, size);
        out[size] = '\0';
    }
}

void st_answer_header(struct st_answer *a, const char *data, size_t size)
{
    char line[512];
    const size_t length = size < sizeof line ? size : sizeof line - 1;
    memcpy(line, data, length);
    line[length] = '\0';
    const char *colon = strchr(line, ':');
    const char *value = colon ? colon + 1 + strspn(colon + 1, " \t") : "";
    if (!strncmp(line, "HTTP/", 5)) { /* a redirection's headers do not count */
        a->has_range = a->has_total = a->checked = false;
        a->tag[0] = a->modified[0] = a->region[0] = '\0';
    } else if (!strncasecmp(line, "content-range:", 14)) {
        read_content_range(a, value);
    } else if (!strncasecmp(line, "etag:", 5)) {
        take_text(a->tag, sizeof a->tag, value);
    } else if (!strncasecmp(line, "last-modified:", 14)) {
        take_text(a->modified, sizeof a->modified, value);
    } else if (!strncasecmp(line, "x-amz-bucket-region:", 20)) {
        take_text(a->region, sizeof a->region, value);
    }
}

const char *st_answer_tag(const struct st_answer *a) { return a->tag[0] ? a->tag : a->modified; }

/* What the first request learned; when it is tried again, its rest must be of the same object. */
static void learn(struct st_answer *a)
{
    a->own.size = a->total;
    strcpy(a->own.tag, st_answer_tag(a));
    a->known = &a->own;
    if (a->total < a->wanted)
        a->wanted = a->total; /* shorter than what was asked for to see how long it is */
}

/* Whether the headers of a 206 promise what was asked for. */
static bool check_headers(struct st_answer *a)
{
    if (!a->has_range || a->first != a->from + a->got || a->last - a->first >= a->wanted - a->got ||
        (a->has_total && a->last >= a->total))
        a->wrong = "answers with another range than was asked for";
    else if (!a->known && a->has_total)
        learn(a);
    else if (a->known &&
             ((a->has_total && a->total != a->known->size) || strcmp(st_answer_tag(a), a->known->tag)))
        a->changed = true;
    return !a->wrong && !a->changed;
}

bool st_answer_is_part(const struct st_answer *a, long status)
{
    return status == 206 || (status == 200 && a->has_range);
}

bool st_answer_body(struct st_answer *a, long status, const void *data, size_t size)
{
    if (status == 200 && !a->has_range)
        a->wrong = "sends the whole object where a part was asked for: it knows no ranges";
    else if (!st_answer_is_part(a, status))
        return true; /* an error's text; how much of it may come is limited by time */
    else if (!a->checked && !check_headers(a))
        return false;
    else if (size > a->wanted - a->got)
        a->wrong = "sends more bytes than it was asked for";
    if (a->wrong)
        return false;
    a->checked = true;
    memcpy(a->into + a->got, data, size);
    a->got += size;
    return true;
}
