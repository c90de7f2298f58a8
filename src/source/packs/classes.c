/* classes.c - class names as stored in packs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/packs/classes.h"
#include "source/shards/unpack.h"
#include "source/table/json.h"

#include <stdio.h>
#include <string.h>

static bool put(struct st_buffer *text, const char *bytes, size_t size)
{
    if (!st_buffer_keep(text, text->size + size))
        return false;
    memcpy(text->data + text->size, bytes, size);
    text->size += size;
    return true;
}

static bool put_quoted(struct st_buffer *text, const char *name)
{
    bool good = put(text, "\"", 1);
    for (; *name && good; name++) {
        char escaped[8];
        const unsigned char c = (unsigned char)*name;
        if (c < 32)
            good = put(text, escaped, (size_t)snprintf(escaped, sizeof escaped, "\\u%04x", c));
        else
            good =
                (c != '"' && c != '\\') ? put(text, name, 1) : put(text, "\\", 1) && put(text, name, 1);
    }
    return good && put(text, "\"", 1);
}

static bool put_hex(struct st_buffer *text, const char *name)
{
    bool good = put(text, "\"", 1);
    for (; *name && good; name++) {
        char digits[3];
        snprintf(digits, sizeof digits, "%02x", (unsigned char)*name);
        good = put(text, digits, 2);
    }
    return good && put(text, "\"", 1);
}

bool st_class_write(struct st_buffer *text, const char *name)
{
    static const char plain[] = ST_CLASS_LINE "\": ", hex[] = ST_CLASS_LINE "_hex\": ";
    const uint64_t began = text->size;
    uint64_t at;
    bool deep;
    if (!put(text, plain, sizeof plain - 1) || !put_quoted(text, name) || !put(text, "}", 1))
        return false;
    if (st_json_is_whole((struct st_bytes){text->data + began, text->size - began}, &at, &deep))
        return true;
    text->size = began;
    return put(text, hex, sizeof hex - 1) && put_hex(text, name) && put(text, "}", 1);
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes hex digits in place; false if they are invalid or encode a NUL byte. */
static bool from_hex(char *text)
{
    char *to = text;
    for (; text[0] && text[1]; text += 2) {
        const int high = digit_of(text[0]), low = digit_of(text[1]);
        if (high < 0 || low < 0 || high + low == 0)
            return false;
        *to++ = (char)(high << 4 | low);
    }
    const bool good = !*text;
    *to = '\0';
    return good;
}

int st_class_read(struct st_cells *classes, const char *line, size_t size, struct stoker_error *err)
{
    struct st_lines lines;
    struct st_cells record = {0};
    st_lines_begin(&lines, line, size);
    int rc = st_json_record(&lines, &record, err);
    if (!rc) {
        char *name = record.count >= 2 ? record.text + record.at[1] : NULL;
        const bool hex = name && !strcmp(st_cells_word(&record, 0), "class_hex");
        if (!name || strlen(name) != st_cells_size(&record, ST_JSON_VALUE) || (hex && !from_hex(name)))
            rc = st_fail(err, STOKER_ECORRUPT, "the class %.*s is invalid",
                         (int)(size < 200 ? size : 200), line);
        else if (classes->count == UINT32_MAX || !st_cells_add(classes, name, strlen(name)))
            rc = st_fail(err, STOKER_ENOMEM, "out of memory for the classes");
    }
    st_cells_free(&record);
    return rc == STOKER_END ? st_fail(err, STOKER_ECORRUPT, "a class without a name") : rc;
}
