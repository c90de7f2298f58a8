/* cursor.h - a cursor for parsing text
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TEXT_CURSOR_H
#define ST_SOURCE_TEXT_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct st_text {
    const char *at, *end;
    bool deep; /* a value was nested too deeply (table/json.h) */
};

static inline void st_text_skip_blanks(struct st_text *text)
{
    while (text->at < text->end &&
           (*text->at == ' ' || *text->at == '\t' || *text->at == '\n' || *text->at == '\r'))
        text->at++;
}

/* Consumes `c` if it is the next non-blank character. */
static inline bool st_text_take(struct st_text *text, char c)
{
    st_text_skip_blanks(text);
    if (text->at == text->end || *text->at != c)
        return false;
    text->at++;
    return true;
}

/* Consumes `word` if it comes next; blanks are not skipped. */
static inline bool st_text_take_word(struct st_text *text, const char *word)
{
    const size_t size = strlen(word);
    if ((size_t)(text->end - text->at) < size || memcmp(text->at, word, size))
        return false;
    text->at += size;
    return true;
}

#endif
