/* build.c - the libraries and codecs of this build
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/machine/machine.h"

#include <stdio.h>
#include <string.h>

void dr_check_build(struct dr_checks *checks)
{
    static const char *const kinds[] = {"codec", "audio", "library", "kernels", "reader"};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        char here[400] = "", absent[200] = "";
        struct stoker_feature feature = {.size = sizeof feature};
        for (uint32_t i = 0; stoker_feature_at(i, &feature); i++) {
            char *list = feature.present ? here : absent;
            const size_t room = feature.present ? sizeof here : sizeof absent;
            if (!strcmp(feature.kind, kinds[k]))
                snprintf(list + strlen(list), room - strlen(list), "%s%s", *list ? ", " : "",
                         feature.name);
        }
        const bool choice = !strcmp(kinds[k], "kernels") || !strcmp(kinds[k], "reader");
        char remedy[256] = "";
        if (*absent && !choice)
            snprintf(remedy, sizeof remedy,
                     "missing: %.120s; build with these libraries ('stoker info' shows details)",
                     absent);
        if (*here || *absent)
            dr_check_add(checks, *remedy ? DR_IMPROVE : DR_GOOD, kinds[k], remedy, "%s",
                         *here ? here : "none");
    }
}
