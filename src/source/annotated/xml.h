/* xml.h - reads XML as annotations use it: elements and text
 *
 * Attributes, comments and processing instructions are skipped. A document type, which can define what
 * makes text of any size, is an error, as are CDATA sections and other encodings than UTF-8.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_ANNOTATED_XML_H
#define ST_SOURCE_ANNOTATED_XML_H

#include "base/err.h"
#include "base/mem.h"
#include "base/pixels.h"
#include "source/text/cursor.h"

enum { ST_XML_DEPTH = 64 };

struct st_xml {
    struct st_text text;
    const char *path;  /* for messages */
    const char *begin; /* lines are counted from here */
    struct stoker_error *err;
    int rc;
    uint32_t depth;
    struct st_bytes open[ST_XML_DEPTH]; /* the names of the elements that are open */
    bool closes;                        /* the element that was opened last has no contents: <a/> */
};

void st_xml_begin(struct st_xml *out, struct st_bytes bytes, const char *path, struct stoker_error *err);
/* Describes damage at the address `at` as "PATH, line N: SENTENCE"; always false. */
bool st_xml_fail(struct st_xml *xml, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Moves to the next element inside the one that is open, which is then open itself, and gives its name;
 * false: the element that was open is closed, or there is an error. At the beginning and the end of the
 * file, what contains the root counts as an open element. */
bool st_xml_child(struct st_xml *xml, struct st_bytes *name);
/* Closes the element that is open, with all it contains. */
bool st_xml_skip(struct st_xml *xml);
/* The same, and gives its text, which must not contain elements, with a NUL behind it; surrounding white
 * space is removed. `what` is its name for messages. The buffer is overwritten. */
bool st_xml_text(struct st_xml *xml, const char *what, struct st_buffer *out);

#endif
