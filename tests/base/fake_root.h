/* fake_root.h - a folder that stands for "/": files of /proc and /sys as a test wants them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_BASE_FAKE_ROOT_H
#define ST_TESTS_BASE_FAKE_ROOT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char root[] = "/tmp/stoker-root-XXXXXX"; /* mkdtemp comes first */

static inline void put(const char *path, const char *text)
{
    char name[512];
    snprintf(name, sizeof name, "%s%s", root, path);
    for (char *p = name + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        mkdir(name, 0755);
        *p = '/';
    }
    FILE *f = fopen(name, "w");
    if (!f || fputs(text, f) < 0 || fclose(f))
        perror(name);
}

static inline int remove_root(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command) != 0;
}

#endif
