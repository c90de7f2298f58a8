/* s3.c - S3 endpoints and credentials, from the environment and ~/.aws
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/remote/s3.h"
#include "source/remote/url.h"

#include "base/mem.h"

#include <limits.h>
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

/* ---- settings files ---------------------------------------------------------------------------- */

static char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t size = strlen(text);
    while (size && strchr(" \t\r\n", text[size - 1]))
        text[--size] = '\0';
    return text;
}

/* "[default]" and "[name]" or, in the config file, "[profile name]". */
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

bool st_s3_read_settings(struct st_s3 *s3, FILE *file, const char *profile)
{
    char line[8192];
    bool ours = false, found = false;
    while (fgets(line, sizeof line, file)) {
        if (!strchr(line, '\n')) /* skip the rest of an overlong line */
            for (int c = 0; c != EOF && c != '\n';)
                c = fgetc(file);
        char *text = line + strspn(line, " \t"), *equals = strchr(text, '=');
        if (*text == '[') {
            ours = is_section(text, profile);
            found = found || ours;
        } else if (ours && text == line && *text != '#' && *text != ';' && equals) {
            *equals = '\0'; /* indented lines are nested settings and ignored */
            take_setting(s3, trim(text), trim(equals + 1));
        }
    }
    return found;
}

static bool read_home(struct st_s3 *s3, const char *variable, const char *name, const char *profile)
{
    char path[PATH_MAX];
    const char *file = getenv(variable), *home = getenv("HOME");
    const int size = file && *file ? snprintf(path, sizeof path, "%s", file)
                                   : snprintf(path, sizeof path, "%s/.aws/%s", home ? home : "", name);
    FILE *settings = size > 0 && size < (int)sizeof path ? fopen(path, "re") : NULL;
    const bool found = settings && st_s3_read_settings(s3, settings, profile);
    if (settings)
        fclose(settings);
    return found;
}

static void take_keys(struct st_s3 *out, const struct st_s3 *from)
{
    memcpy(out->key, from->key, sizeof out->key);
    memcpy(out->secret, from->secret, sizeof out->secret);
    memcpy(out->token, from->token, sizeof out->token);
}

static int take_profile(struct st_s3 *out, struct stoker_error *err)
{
    struct st_s3 keys = {0}, config = {0};
    const char *profile = from_environment("AWS_PROFILE", NULL), *name = profile ? profile : "default";
    const bool has_keys = read_home(&keys, "AWS_SHARED_CREDENTIALS_FILE", "credentials", name);
    const bool has_config = read_home(&config, "AWS_CONFIG_FILE", "config", name);
    if (!out->region[0])
        take(out->region, sizeof out->region, config.region[0] ? config.region : keys.region);
    if (!out->endpoint[0])
        take(out->endpoint, sizeof out->endpoint, config.endpoint[0] ? config.endpoint : keys.endpoint);
    if (out->key[0])
        return 0;
    take_keys(out, keys.key[0] ? &keys : &config);
    if (profile && !has_keys && !has_config)
        return st_fail(
            err, STOKER_EINVAL,
            "AWS_PROFILE=%.100s: there is no such profile in ~/.aws/credentials or ~/.aws/config",
            profile);
    if (out->key[0] && !out->secret[0])
        return st_fail(err, STOKER_EINVAL,
                       "the profile %.100s in ~/.aws has an aws_access_key_id but no "
                       "aws_secret_access_key",
                       name);
    return 0;
}

int st_s3_load(struct st_s3 *out, struct stoker_error *err)
{
    *out = (struct st_s3){0};
    take(out->region, sizeof out->region, from_environment("AWS_REGION", "AWS_DEFAULT_REGION"));
    take(out->endpoint, sizeof out->endpoint,
         from_environment("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"));
    /* Key, secret and token must come from the same place. */
    struct st_s3 own = {0};
    if (take(own.key, sizeof own.key, from_environment("AWS_ACCESS_KEY_ID", NULL)) &&
        take(own.secret, sizeof own.secret, from_environment("AWS_SECRET_ACCESS_KEY", NULL))) {
        take(own.token, sizeof own.token, from_environment("AWS_SESSION_TOKEN", NULL));
        take_keys(out, &own);
    }
    const int rc = take_profile(out, err);
    if (rc)
        return rc;
    if (!out->region[0])
        take(out->region, sizeof out->region, "us-east-1");
    snprintf(out->sign, sizeof out->sign, "aws:amz:%s:s3", out->region);
    snprintf(out->login, sizeof out->login, "%s:%s", out->key, out->secret);
    if (out->token[0])
        snprintf(out->token_header, sizeof out->token_header, "X-Amz-Security-Token: %s", out->token);
    return 0;
}

/* ---- URLs -------------------------------------------------------------------------------------- */

static bool is_bucket(const char *name, size_t size)
{
    return size >= 3 && size <= 63 &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-_ABCDEFGHIJKLMNOPQRSTUVWXYZ") >= size;
}

/* The wildcard of certificates for "*.s3..." matches no dots, and host names have no capitals or "_". */
static bool can_be_host(const char *bucket, size_t size)
{
    return strspn(bucket, "abcdefghijklmnopqrstuvwxyz0123456789-") >= size;
}

static char *url_of(const struct st_s3 *s3, const char *bucket, size_t size, const char *key)
{
    char *out = st_calloc(strlen(key) * 3 + size + sizeof s3->endpoint + sizeof s3->region + 64, 1);
    if (!out)
        return NULL;
    const int name = (int)size;
    const size_t tail = strlen(s3->endpoint);
    const char *end = strncmp(s3->region, "cn-", 3) ? "amazonaws.com" : "amazonaws.com.cn";
    int used;
    if (tail)
        used = sprintf(out, "%.*s/%.*s/", (int)(s3->endpoint[tail - 1] == '/' ? tail - 1 : tail),
                       s3->endpoint, name, bucket);
    else if (can_be_host(bucket, size))
        used = sprintf(out, "https://%.*s.s3.%s.%s/", name, bucket, s3->region, end);
    else
        used = sprintf(out, "https://s3.%s.%s/%.*s/", s3->region, end, name, bucket);
    st_url_escape(out + used, key, strlen(key));
    return out;
}

int st_s3_aim(const struct st_s3 *s3, const char *url, struct st_http_target *out,
              struct stoker_error *err)
{
    const char *bucket = url + strlen("s3://");
    const size_t size = strcspn(bucket, "/");
    char name[PATH_MAX];
    if (!is_bucket(bucket, size) || !bucket[size] || !bucket[size + 1])
        return st_fail(err, STOKER_EINVAL, "%.500s: expected s3://BUCKET/KEY", st_url_public(url, name));
    out->s3 = true;
    out->region = s3->region;
    out->url = url_of(s3, bucket, size, bucket + size + 1);
    if (!out->url)
        return st_fail(err, STOKER_ENOMEM, "out of memory for a URL");
    if (s3->key[0]) {
        out->sign = s3->sign;
        out->login = s3->login;
        out->token = s3->token_header[0] ? s3->token_header : NULL;
    }
    return 0;
}
