/* xml.c - reads XML as annotations use it: elements and text
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/annotated/xml.h"
#include "source/text/names.h"
#include "source/text/utf8.h"

#include <stdarg.h>
#include <stdio.h>

static unsigned long long line_of(const struct st_xml *xml, const char *at)
{
    unsigned long long line = 1;
    for (const char *c = xml->begin; c < at; c++)
        line += *c == '\n';
    return line;
}

bool st_xml_fail(struct st_xml *xml, const char *at, const char *format, ...)
{
    char sentence[300];
    va_list args;
    va_start(args, format);
    if (vsnprintf(sentence, sizeof sentence, format, args) < 0)
        sentence[0] = '\0';
    va_end(args);
    if (!xml->rc)
        xml->rc = st_fail(xml->err, STOKER_ECORRUPT, "%.500s, line %llu: %s", xml->path,
                          line_of(xml, at), sentence);
    return false;
}

void st_xml_begin(struct st_xml *out, struct st_bytes bytes, const char *path, struct stoker_error *err)
{
    const char *begin = bytes.size ? (const char *)bytes.data : "";
    *out = (struct st_xml){
        .text = {.at = begin, .end = begin + bytes.size}, .path = path, .begin = begin, .err = err};
    (void)st_text_take_word(&out->text, "\xef\xbb\xbf"); /* a byte order mark */
}

/* ---- markup --------------------------------------------------------------------------------------- */

/* Moves behind `end`, which must come. */
static bool skip_to(struct st_xml *xml, const char *end, const char *what)
{
    const char *found = memmem(xml->text.at, (size_t)(xml->text.end - xml->text.at), end, strlen(end));
    if (!found)
        return st_xml_fail(xml, xml->text.at, "%s does not end", what);
    xml->text.at = found + strlen(end);
    return true;
}

/* The encoding that the declaration names must be UTF-8 or a part of it. */
static bool check_declaration(struct st_xml *xml, const char *from)
{
    static const char word[] = "encoding";
    const char *end = xml->text.at, *at = memmem(from, (size_t)(end - from), word, sizeof word - 1);
    if (!at)
        return true;
    at += sizeof word - 1;
    while (at < end && *at != '"' && *at != '\'')
        at++;
    const char *close = at < end ? memchr(at + 1, *at, (size_t)(end - at - 1)) : NULL;
    const size_t size = close ? (size_t)(close - at - 1) : 0;
    return (close &&
            (st_name_equals_lower(at + 1, size, "utf-8") || st_name_equals_lower(at + 1, size, "utf8") ||
             st_name_equals_lower(at + 1, size, "us-ascii") ||
             st_name_equals_lower(at + 1, size, "ascii"))) ||
           st_xml_fail(xml, from, "the encoding %.*s is not supported; save the file as UTF-8",
                       (int)(size < 40 ? size : 40), close ? at + 1 : "");
}

/* Skips what is neither an element nor text, if it comes next: *skipped. */
static bool skip_other(struct st_xml *xml, bool *skipped)
{
    const char *from = xml->text.at;
    *skipped = true;
    if (st_text_take_word(&xml->text, "<!--"))
        return skip_to(xml, "-->", "a comment");
    if (st_text_take_word(&xml->text, "<?"))
        return skip_to(xml, "?>", "a processing instruction") &&
               (xml->text.at - from < 5 || memcmp(from, "<?xml", 5) || check_declaration(xml, from));
    if (st_text_take_word(&xml->text, "<!"))
        return st_xml_fail(xml, from, "document types and CDATA sections are not supported");
    *skipped = false;
    return true;
}

static bool is_name_end(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || c == '/' || c == '>' || c == '<';
}

static bool take_name(struct st_xml *xml, struct st_bytes *out)
{
    const char *from = xml->text.at;
    while (xml->text.at < xml->text.end && !is_name_end(*xml->text.at))
        xml->text.at++;
    *out = (struct st_bytes){(const uint8_t *)from, (size_t)(xml->text.at - from)};
    return out->size || st_xml_fail(xml, from, "an element without a name");
}

/* The rest of a tag: attributes, whose values may contain '>'. */
static bool take_attributes(struct st_xml *xml)
{
    struct st_text *text = &xml->text;
    const char *from = text->at;
    for (; text->at < text->end && *text->at != '>'; text->at++) {
        const char c = *text->at;
        if (c == '<')
            return st_xml_fail(xml, text->at, "a '<' within a tag");
        if (c != '"' && c != '\'')
            continue;
        text->at = memchr(text->at + 1, c, (size_t)(text->end - text->at - 1));
        if (!text->at) {
            text->at = from;
            return st_xml_fail(xml, from, "the value of an attribute does not end");
        }
    }
    if (text->at == text->end)
        return st_xml_fail(xml, from, "the file ends within a tag");
    xml->closes = text->at > from && text->at[-1] == '/';
    text->at++;
    return true;
}

static bool open_element(struct st_xml *xml)
{
    const char *from = xml->text.at;
    struct st_bytes name;
    if (!st_text_take_word(&xml->text, "<"))
        return st_xml_fail(xml, from, "text where there should be none");
    if (xml->depth == ST_XML_DEPTH)
        return st_xml_fail(xml, from, "elements are nested more than %d deep", ST_XML_DEPTH);
    if (!take_name(xml, &name) || !take_attributes(xml))
        return false;
    xml->open[xml->depth++] = name;
    return true;
}

static bool close_element(struct st_xml *xml)
{
    const char *from = xml->text.at;
    const struct st_bytes open = xml->open[xml->depth - 1];
    struct st_bytes name;
    xml->text.at += 2;
    if (!take_name(xml, &name))
        return false;
    if (name.size != open.size || memcmp(name.data, open.data, open.size))
        return st_xml_fail(xml, from, "</%.*s> where </%.*s> should be",
                           (int)(name.size < 60 ? name.size : 60), (const char *)name.data,
                           (int)(open.size < 60 ? open.size : 60), (const char *)open.data);
    xml->depth--;
    return st_text_take(&xml->text, '>') || st_xml_fail(xml, from, "a closing tag without '>'");
}

/* ---- elements ------------------------------------------------------------------------------------- */

static bool at_close(const struct st_xml *xml)
{
    return xml->text.end - xml->text.at >= 2 && xml->text.at[0] == '<' && xml->text.at[1] == '/';
}

static bool fail_within(struct st_xml *xml)
{
    const struct st_bytes open = xml->open[xml->depth - 1];
    return st_xml_fail(xml, xml->text.end, "the file ends within <%.*s>",
                       (int)(open.size < 60 ? open.size : 60), (const char *)open.data);
}

bool st_xml_child(struct st_xml *xml, struct st_bytes *name)
{
    bool skipped = true;
    if (xml->rc)
        return false;
    if (xml->closes) {
        xml->closes = false;
        xml->depth--;
        return false;
    }
    while (skipped) {
        st_text_skip_blanks(&xml->text);
        if (!skip_other(xml, &skipped))
            return false;
    }
    if (xml->text.at == xml->text.end)
        return xml->depth ? fail_within(xml) : false;
    if (at_close(xml) && xml->depth) {
        close_element(xml);
        return false;
    }
    if (!open_element(xml))
        return false;
    *name = xml->open[xml->depth - 1];
    return true;
}

bool st_xml_skip(struct st_xml *xml)
{
    const uint32_t outside = xml->depth - 1;
    struct st_text *text = &xml->text;
    while (!xml->rc && xml->depth > outside) {
        bool skipped;
        if (xml->closes) {
            xml->closes = false;
            xml->depth--;
            continue;
        }
        const char *markup = memchr(text->at, '<', (size_t)(text->end - text->at));
        if (!markup)
            return fail_within(xml);
        text->at = markup;
        if (!skip_other(xml, &skipped) || skipped)
            continue;
        (void)(at_close(xml) ? close_element(xml) : open_element(xml));
    }
    return !xml->rc;
}

/* ---- text ----------------------------------------------------------------------------------------- */

/* &#65; or &#x41; from behind the '#' to the ';', which is there. */
static bool take_number(struct st_text *text, uint32_t *out)
{
    const bool hex = *text->at == 'x';
    const char *from = text->at += hex;
    *out = 0;
    for (; *text->at != ';'; text->at++) {
        const char c = *text->at;
        const int digit = c >= '0' && c <= '9'          ? c - '0'
                          : hex && c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : hex && c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                        : -1;
        if (digit < 0 || *out > 0x10ffff)
            return false;
        *out = *out * (hex ? 16 : 10) + (uint32_t)digit;
    }
    return text->at++ > from && *out > 0 && *out <= 0x10ffff && (*out < 0xd800 || *out >= 0xe000);
}

/* One of XML's own entities, or a character by its number; none is longer written out. */
static bool take_entity(struct st_text *text, char **to)
{
    static const char *const names[] = {"lt;", "gt;", "amp;", "quot;", "apos;"};
    static const char meanings[] = "<>&\"'";
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (st_text_take_word(text, names[k])) {
            *(*to)++ = meanings[k];
            return true;
        }
    uint32_t point;
    if (!memchr(text->at, ';', (size_t)(text->end - text->at)) || !st_text_take_word(text, "#") ||
        !take_number(text, &point))
        return false;
    *to = (char *)st_put_utf8((uint8_t *)*to, point);
    return true;
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/* Text up to the next '<' without the white space around it. */
static bool take_text(struct st_xml *xml, const char *what, struct st_buffer *out)
{
    st_text_skip_blanks(&xml->text);
    const char *from = xml->text.at, *end = memchr(from, '<', (size_t)(xml->text.end - from));
    if (!end)
        return st_xml_fail(xml, from, "the file ends within <%s>", what);
    xml->text.at = end;
    while (end > from && is_blank(end[-1]))
        end--;
    if (!st_buffer_reserve(out, (uint64_t)(end - from) + 1)) {
        xml->rc = st_fail(xml->err, STOKER_ENOMEM, "%.500s: out of memory", xml->path);
        return false;
    }
    char *to = (char *)out->data;
    for (struct st_text text = {.at = from, .end = end}; text.at < text.end;) {
        const char c = *text.at++;
        if (c == '\0' || (c == '&' && !take_entity(&text, &to)))
            return st_xml_fail(xml, from, "<%s> contains %s", what,
                               c ? "an unknown entity" : "a NUL character");
        if (c != '&')
            *to++ = c;
    }
    *to = '\0';
    out->size = (uint64_t)(to - (char *)out->data);
    return true;
}

bool st_xml_text(struct st_xml *xml, const char *what, struct st_buffer *out)
{
    struct st_bytes name;
    const uint32_t outside = xml->depth - 1;
    if (!st_buffer_reserve(out, 1)) {
        xml->rc = st_fail(xml->err, STOKER_ENOMEM, "%.500s: out of memory", xml->path);
        return false;
    }
    out->size = 0;
    out->data[0] = '\0';
    if (!xml->closes && !take_text(xml, what, out))
        return false;
    if (st_xml_child(xml, &name))
        return st_xml_fail(xml, (const char *)name.data, "<%s> contains an element", what);
    return !xml->rc && xml->depth == outside;
}
