/* remote_s3.c - where S3's buckets are, and who asks: from the environment and ~/.aws
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/remote_s3.h"

#include "base/mem.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first of these variables that is set and not empty. */
static const char *from_environment(const char *first, const char *second)
{
    const char *value = getenv(first);
    if ((!value || !*value) && second)
        value = getenv(second);
    return value && *value ? value : NULL;
}

static bool take(char *out, size_t room, const char *value)
{
    if (!value)
        return false;
    const size_t size = strlen(value);
    if (size >= room || strpbrk(value, "\r\n"))
        return false;
    memcpy(out, value, size + 1);
    return true;
}

/* ---- files of "[section]" and "name = value" --------------------------------------------------- */

static char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t size = strlen(text);
    while (size && strchr(" \t\r\n", text[size - 1]))
        text[--size] = '\0';
    return text;
}

/* "[default]" and "[name]", or as the config file writes it "[profile name]". */
static bool is_section(char *line, const char *profile)
{
    char *end = strchr(line, ']');
    if (!end)
        return false;
    *end = '\0';
    char *name = trim(line + 1);
    if (!strncmp(name, "profile ", 8))
        name = trim(name + 8);
    return !strcmp(name, profile);
}

static void take_setting(struct st_s3 *s3, const char *name, const char *value)
{
    const struct {
        const char *name;
        char *out;
        size_t room;
    } known[] = {{"aws_access_key_id", s3->key, sizeof s3->key},
                 {"aws_secret_access_key", s3->secret, sizeof s3->secret},
                 {"aws_session_token", s3->token, sizeof s3->token},
                 {"region", s3->region, sizeof s3->region},
                 {"endpoint_url", s3->endpoint, sizeof s3->endpoint}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i].name) && !known[i].out[0])
            take(known[i].out, known[i].room, value);
}

static bool read_settings(struct st_s3 *s3, const char *path, const char *profile)
{
    char line[8192];
    bool ours = false, found = false;
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        char *text = line + strspn(line, " \t"), *equals = strchr(text, '=');
        if (*text == '[') {
            ours = is_section(text, profile);
            found = found || ours;
        } else if (ours && text == line && *text != '#' && *text != ';' && equals) {
            *equals = '\0'; /* indented lines are settings of a setting */
            take_setting(s3, trim(text), trim(equals + 1));
        }
    }
    if (file)
        fclose(file);
    return found;
}

static bool read_home(struct st_s3 *s3, const char *variable, const char *name, const char *profile)
{
    char path[PATH_MAX];
    const char *file = getenv(variable), *home = getenv("HOME");
    const int size = file && *file ? snprintf(path, sizeof path, "%s", file)
                                   : snprintf(path, sizeof path, "%s/.aws/%s", home ? home : "", name);
    return size > 0 && size < (int)sizeof path && read_settings(s3, path, profile);
}

int st_s3_load(struct st_s3 *out, struct stoker_error *err)
{
    const char *profile = from_environment("AWS_PROFILE", NULL);
    *out = (struct st_s3){0};
    take(out->region, sizeof out->region, from_environment("AWS_REGION", "AWS_DEFAULT_REGION"));
    take(out->endpoint, sizeof out->endpoint,
         from_environment("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"));
    /* The key's three parts come from one place, never mixed. */
    const bool own =
        take(out->key, sizeof out->key, from_environment("AWS_ACCESS_KEY_ID", NULL)) &&
        take(out->secret, sizeof out->secret, from_environment("AWS_SECRET_ACCESS_KEY", NULL));
    struct st_s3 kept = *out;
    if (own)
        take(out->token, sizeof out->token, from_environment("AWS_SESSION_TOKEN", NULL));
    else
        kept.key[0] = kept.secret[0] = '\0';
    const char *section = profile ? profile : "default";
    const bool found = read_home(&kept, "AWS_SHARED_CREDENTIALS_FILE", "credentials", section) |
                       read_home(&kept, "AWS_CONFIG_FILE", "config", section);
    if (profile && !found && !own)
        return st_fail(
            err, STOKER_EINVAL,
            "AWS_PROFILE=%.100s: neither ~/.aws/credentials nor ~/.aws/config has such a profile",
            profile);
    if (own) {
        memcpy(out->region, kept.region, sizeof out->region);
        memcpy(out->endpoint, kept.endpoint, sizeof out->endpoint);
    } else {
        *out = kept;
    }
    if (!out->region[0])
        take(out->region, sizeof out->region, "us-east-1");
    snprintf(out->sign, sizeof out->sign, "aws:amz:%s:s3", out->region);
    snprintf(out->login, sizeof out->login, "%s:%s", out->key, out->secret);
    if (out->token[0])
        snprintf(out->token_header, sizeof out->token_header, "X-Amz-Security-Token: %s", out->token);
    return 0;
}

/* ---- URLs -------------------------------------------------------------------------------------- */

/* As a signature wants it: all but letters, digits, "-._~" and "/" by their numbers. */
static void put_escaped(char *out, const char *key)
{
    for (; *key; key++) {
        const unsigned char c = (unsigned char)*key;
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                           strchr("-._~/", c);
        out += plain ? sprintf(out, "%c", c) : sprintf(out, "%%%02X", c);
    }
    *out = '\0';
}

static bool is_bucket(const char *name, size_t size)
{
    return size >= 3 && size <= 63 &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-_ABCDEFGHIJKLMNOPQRSTUVWXYZ") >= size;
}

char *st_s3_url(const struct st_s3 *s3, const char *url, struct stoker_error *err)
{
    const char *bucket = url + strlen("s3://");
    const size_t size = strcspn(bucket, "/");
    if (!is_bucket(bucket, size) || !bucket[size] || !bucket[size + 1]) {
        st_fail(err, STOKER_EINVAL, "%.500s: expected s3://BUCKET/KEY", url);
        return NULL;
    }
    const char *key = bucket + size + 1;
    char *out = st_calloc(strlen(key) * 3 + size + sizeof s3->endpoint + sizeof s3->region + 64, 1);
    if (!out) {
        st_fail(err, STOKER_ENOMEM, "out of memory for a URL");
        return NULL;
    }
    const int name = (int)size;
    const size_t tail = strlen(s3->endpoint);
    int used;
    if (tail)
        used = sprintf(out, "%.*s/%.*s/", (int)(s3->endpoint[tail - 1] == '/' ? tail - 1 : tail),
                       s3->endpoint, name, bucket);
    else if (memchr(bucket, '.', size)) /* which no certificate would match in front of the host */
        used = sprintf(out, "https://s3.%s.amazonaws.com/%.*s/", s3->region, name, bucket);
    else
        used = sprintf(out, "https://%.*s.s3.%s.amazonaws.com/", name, bucket, s3->region);
    put_escaped(out + used, key);
    return out;
}
