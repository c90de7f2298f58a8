/* fuzz_aws.c - files of settings as in ~/.aws, and URLs of S3 and of tables
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/remote/s3.h"
#include "source/remote/url.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_as_settings(struct st_s3 *s3, const uint8_t *data, size_t size)
{
    FILE *file = fmemopen((void *)(uintptr_t)data, size, "r");
    if (!file)
        return;
    st_s3_read_settings(s3, file, "default");
    rewind(file);
    st_s3_read_settings(s3, file, "other");
    fclose(file);
}

/* Every text of the structure ends within its room. */
static void check(const struct st_s3 *s3)
{
    if (strnlen(s3->key, sizeof s3->key) == sizeof s3->key ||
        strnlen(s3->secret, sizeof s3->secret) == sizeof s3->secret ||
        strnlen(s3->token, sizeof s3->token) == sizeof s3->token ||
        strnlen(s3->region, sizeof s3->region) == sizeof s3->region ||
        strnlen(s3->endpoint, sizeof s3->endpoint) == sizeof s3->endpoint)
        abort();
}

static void read_as_url(const struct st_s3 *s3, const char *text)
{
    char public_name[PATH_MAX], joined[100];
    const char *line = strchr(text, '\n');
    st_url_public(text, public_name);
    char *folder = st_url_folder(text);
    if (folder && st_url_join(joined, sizeof joined, folder, line ? line + 1 : "a") &&
        strlen(joined) >= sizeof joined)
        abort();
    free(folder);
    struct st_http_target target = {0};
    if (!strncmp(text, "s3://", 5))
        st_s3_aim(s3, text, &target, NULL);
    free(target.url);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct st_s3 *s3 = calloc(1, sizeof *s3);
    char *text = calloc(size + 1, 1);
    if (s3 && text && size) {
        memcpy(text, data, size);
        read_as_settings(s3, data, size);
        check(s3);
        if (strstr(text, "://"))
            read_as_url(s3, text);
    }
    free(s3);
    free(text);
    return 0;
}
