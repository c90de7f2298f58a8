/* leaks.h - leaks in libraries of others, which a test under LeakSanitizer is not to answer for
 *
 * libsndfile (1.2.0 does) keeps some memory when the header of an Ogg file is damaged. Where the library it
 * asks for that memory was built without frame pointers, as on x86-64, the trace ends there and never
 * reaches libsndfile itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_LEAKS_H
#define ST_TESTS_LEAKS_H

const char *__lsan_default_suppressions(void) __attribute__((visibility("default")));
const char *__lsan_default_suppressions(void) { return "leak:libsndfile\nleak:libvorbis\n"; }

#endif
