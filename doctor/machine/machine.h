/* machine.h - the checks of `stoker doctor`
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_MACHINE_H
#define ST_DOCTOR_MACHINE_H

#include "doctor/run/run.h"

enum dr_grade { DR_GOOD, DR_IMPROVE, DR_BROKEN, DR_NOT_HERE, DR_GRADES };
extern const char *const dr_grade_names[DR_GRADES]; /* "good", "improve", "broken", "n/a" */

struct dr_check {
    enum dr_grade grade;
    char topic[16], text[512], remedy[256]; /* remedy: "" if there is nothing to do */
};

enum { DR_CHECKS_MOST = 64 };
struct dr_checks {
    struct dr_check check[DR_CHECKS_MOST];
    uint32_t count;
};

void dr_check_add(struct dr_checks *checks, enum dr_grade grade, const char *topic, const char *remedy,
                  const char *format, ...) __attribute__((format(printf, 5, 6)));

void dr_check_machine(struct dr_checks *checks); /* CPUs, memory, limits, kernel, environment */
/* Reads `data` for a moment, cold and warm; NULL: only checks the disk of the working directory. */
void dr_check_storage(struct dr_checks *checks, const char *data);
void dr_check_gpu(struct dr_checks *checks);
void dr_check_build(struct dr_checks *checks); /* libraries and codecs */

#endif
