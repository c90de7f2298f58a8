/* url.c - splits and joins URLs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/remote/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_s3(const char *url) { return !strncmp(url, "s3:", 3); }

/* The part after "scheme://". */
static const char *host_of(const char *url)
{
    const char *colon = strstr(url, "://");
    return colon ? colon + 3 : url;
}

/* The length of the URL without its query; in an S3 key '?' and '#' are ordinary characters. */
static size_t plain_size(const char *url) { return is_s3(url) ? strlen(url) : strcspn(url, "?#"); }

const char *st_url_public(const char *url, char out[PATH_MAX])
{
    const char *host = host_of(url), *end = url + plain_size(url);
    const char *at = end > host ? memrchr(host, '@', strcspn(host, "/?#")) : NULL;
    const char *rest = at ? at + 1 : host;
    snprintf(out, PATH_MAX, "%.*s%.*s", (int)(host - url), url, (int)(end > rest ? end - rest : 0),
             rest);
    return out;
}

char *st_url_folder(const char *url)
{
    const size_t size = plain_size(url);
    const char *slash = memrchr(url, '/', size);
    if (slash && slash >= host_of(url)) /* not one of "scheme://" */
        return strndup(url, (size_t)(slash - url) + 1);
    char *out = NULL;
    return asprintf(&out, "%.*s/", (int)size, url) < 0 ? NULL : out;
}

char *st_url_escape(char *out, const char *text, size_t size)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)text[i];
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                           (c && strchr("-._~/", c));
        if (plain) {
            *out++ = (char)c;
        } else {
            *out++ = '%';
            *out++ = digits[c >> 4];
            *out++ = digits[c & 15];
        }
    }
    *out = '\0';
    return out;
}

/* Removes the last component of [root, at), keeping the '/' before it. */
static char *step_up(char *root, char *at)
{
    if (at > root + 1)
        at--;
    while (at > root + 1 && at[-1] != '/')
        at--;
    return at;
}

bool st_url_join(char *out, size_t room, const char *folder, const char *path)
{
    const char *host = host_of(folder);
    const size_t root = (size_t)(host - folder) + strcspn(host, "/");
    const size_t front = path[0] == '/' ? root + 1 : strlen(folder);
    const bool escaped = !is_s3(folder); /* S3 keys are escaped when they are requested */
    if (front >= room)
        return false;
    memcpy(out, folder, front);
    char *at = out + front;
    for (path += path[0] == '/'; *path;) {
        const size_t size = strcspn(path, "/");
        const bool more = path[size] == '/';
        if ((size_t)(at - out) + (escaped ? 3 : 1) * size + 2 > room)
            return false;
        if (size == 2 && !memcmp(path, "..", 2)) {
            at = step_up(out + root, at);
        } else if (size != 1 || path[0] != '.') {
            at = escaped ? st_url_escape(at, path, size) : (char *)memcpy(at, path, size) + size;
            if (more)
                *at++ = '/';
        }
        path += size + more;
    }
    *at = '\0';
    return true;
}
