/* answer.c - parses and checks a server's response as it arrives
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

static bool take_char(const char **at, char c)
{
    const bool there = **at == c;
    *at += there;
    return there;
}

/* "bytes 0-99/1234", or in a 416 response "bytes * /1234" without the blank. */
static void read_content_range(struct st_answer *a, const char *text)
{
    a->has_range = a->has_total = false;
    if (strncasecmp(text, "bytes", 5))
        return;
    text += 5 + strspn(text + 5, " =");
    if (!take_char(&text, '*'))
        a->has_range = take_number(&text, &a->first) && take_char(&text, '-') &&
                       take_number(&text, &a->last) && a->first <= a->last;
    a->has_total = take_char(&text, '/') && take_number(&text, &a->total);
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
    if (!strncmp(line, "HTTP/", 5)) { /* discard the headers of a redirection */
        a->has_range = a->has_total = a->has_length = a->checked = a->whole = false;
        a->tag[0] = a->modified[0] = a->region[0] = a->reason[0] = '\0';
    } else if (!strncasecmp(line, "content-range:", 14)) {
        read_content_range(a, value);
    } else if (!strncasecmp(line, "content-length:", 15)) {
        a->has_length = take_number(&value, &a->length);
    } else if (!strncasecmp(line, "etag:", 5)) {
        take_text(a->tag, sizeof a->tag, value);
    } else if (!strncasecmp(line, "last-modified:", 14)) {
        take_text(a->modified, sizeof a->modified, value);
    } else if (!strncasecmp(line, "x-amz-bucket-region:", 20)) {
        take_text(a->region, sizeof a->region, value);
    }
}

const char *st_answer_tag(const struct st_answer *a) { return a->tag[0] ? a->tag : a->modified; }

/* Records the version that the first request found; if that is retried, the rest must come from the same
 * version. */
static void learn(struct st_answer *a)
{
    a->own.size = a->total;
    strcpy(a->own.tag, st_answer_tag(a));
    a->known = &a->own;
    if (a->total < a->wanted)
        a->wanted = a->total; /* the object is shorter than the requested range */
}

/* Whether the headers of a 206 match the request. */
static bool check_headers(struct st_answer *a)
{
    if (!a->has_range || a->first != a->from + a->got || a->last - a->first >= a->wanted - a->got ||
        (a->has_total && a->last >= a->total))
        a->wrong = "responds with a different range than requested";
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

/* Extracts the error code from the beginning of "<Error><Code>NoSuchKey</Code>...". */
static void read_reason(struct st_answer *a, const char *data, size_t size)
{
    const char *code = memmem(data, size, "<Code>", 6);
    size_t length = 0;
    if (!code || a->reason[0])
        return;
    code += 6;
    while (code + length < data + size && ((code[length] | 32) >= 'a' && (code[length] | 32) <= 'z'))
        length++;
    if (length < sizeof a->reason) {
        memcpy(a->reason, code, length);
        a->reason[length] = '\0';
    }
}

/* The whole object where its first bytes were requested: accepted if it fits. */
static bool check_whole(struct st_answer *a)
{
    a->whole = true;
    if (a->known || a->from + a->got || !a->has_length) {
        a->wrong =
            "sends the whole object instead of the requested range: it does not support range requests";
    } else {
        a->has_total = true;
        a->total = a->length;
        if (a->length > a->wanted)
            a->wrong =
                "sends the whole object instead of its first bytes: it does not support range requests";
        else
            learn(a);
    }
    return !a->wrong;
}

/* Copies the bytes into the parts. */
static void put(struct st_answer *a, const uint8_t *data, size_t size)
{
    a->got += size;
    while (size) {
        const struct st_http_part *part = &a->parts[a->part];
        const uint64_t room = part->size - a->part_got, now = size < room ? size : room;
        if (part->into)
            memcpy(part->into + a->part_got, data, now);
        data += now;
        size -= now;
        a->part_got += now;
        if (a->part_got == part->size) {
            a->part++;
            a->part_got = 0;
        }
    }
}

bool st_answer_body(struct st_answer *a, long status, const void *data, size_t size)
{
    const bool whole = status == 200 && !a->has_range, part = st_answer_is_part(a, status);
    if (!whole && !part) {
        read_reason(a, data, size);
        return true; /* the text of an error; its length is limited by the timeout */
    }
    if (!a->checked && !(whole ? check_whole(a) : check_headers(a)))
        return false;
    if (size > a->wanted - a->got)
        a->wrong = "sends more bytes than requested";
    if (a->wrong)
        return false;
    a->checked = true;
    put(a, data, size);
    return true;
}
