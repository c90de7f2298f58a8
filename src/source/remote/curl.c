/* curl.c - ranged requests by libcurl
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/remote/answer.h"
#include "source/remote/connections.h"
#include "source/remote/http.h"

#include "base/clock.h"
#include "base/mem.h"

#include <curl/curl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    TRIES = 10,
    REDIRECTIONS = 5,
    CONNECT_MS = 10000,
    SLOW_BYTES = 1000, /* less than this a second, for SLOW_S seconds: the connection is given up */
    SLOW_S = 10,
    RECEIVED_AT_ONCE = 128 << 10,
    PAUSE_MS = 50,
    PAUSE_MAX_MS = 5000,
};

struct st_http {
    _Atomic(struct st_connections *) connections;
    uint32_t budget_ms;
};

/* One request, with what comes in. */
struct request {
    CURL *curl;
    struct st_answer answer;
    long status;
};

static size_t on_header(char *data, size_t one, size_t size, void *context)
{
    struct request *request = context;
    st_answer_header(&request->answer, data, size * one);
    return size * one;
}

static size_t on_body(char *data, size_t one, size_t size, void *context)
{
    struct request *request = context;
    long status = 0;
    curl_easy_getinfo(request->curl, CURLINFO_RESPONSE_CODE, &status);
    return st_answer_body(&request->answer, status, data, size * one) ? size * one : 0;
}

/* What is the same for all requests. */
static bool prepare(CURL *curl)
{
    const char *authorities = getenv("SSL_CERT_FILE");
    const bool good = !curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https") &&
                      !curl_easy_setopt(curl, CURLOPT_MAXREDIRS, (long)REDIRECTIONS) &&
                      !curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header) &&
                      !curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body) &&
                      !curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) &&
                      !curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, (long)RECEIVED_AT_ONCE) &&
                      !curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L) &&
                      /* one request at a time on each: HTTP/2 would only cost more */
                      !curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1) &&
                      !curl_easy_setopt(curl, CURLOPT_USERAGENT, "stoker") &&
                      !curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS) &&
                      !curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES) &&
                      !curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)SLOW_S);
    return good &&
           (!authorities || !*authorities || !curl_easy_setopt(curl, CURLOPT_CAINFO, authorities));
}

int st_http_open(struct st_http **out, uint32_t budget_ms, struct stoker_error *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT))
        return st_fail(err, STOKER_EUNSUPPORTED, "libcurl cannot be started here");
    struct st_http *http = st_calloc(1, sizeof *http);
    struct st_connections *connections = http ? st_connections_new(prepare) : NULL;
    if (!connections) {
        free(http);
        curl_global_cleanup();
        return st_fail(err, STOKER_ENOMEM, "out of memory for connections");
    }
    http->budget_ms = budget_ms;
    atomic_init(&http->connections, connections);
    *out = http;
    return 0;
}

void st_http_close(struct st_http *http)
{
    if (!http)
        return;
    if (st_connections_close(atomic_load(&http->connections)))
        curl_global_cleanup();
    free(http);
}

/* ---- requests ---------------------------------------------------------------------------------- */

enum verdict { DONE, AGAIN, NEVER };

static bool set_up(struct request *request, const struct st_http_target *target,
                   struct curl_slist *headers, long time_ms)
{
    CURL *curl = request->curl;
    const struct st_answer *a = &request->answer;
    char range[48];
    const bool safe = !strncmp(target->url, "https:", 6);
    snprintf(range, sizeof range, "%llu-%llu", (unsigned long long)(a->from + a->got),
             (unsigned long long)(a->from + a->wanted - 1));
    return !curl_easy_setopt(curl, CURLOPT_URL, target->url) &&
           !curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, safe ? "https" : "http,https") &&
           !curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, target->s3 ? 0L : 1L) &&
           !curl_easy_setopt(curl, CURLOPT_RANGE, range) &&
           !curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers) &&
           !curl_easy_setopt(curl, CURLOPT_HEADERDATA, request) &&
           !curl_easy_setopt(curl, CURLOPT_WRITEDATA, request) &&
           !curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, time_ms) &&
           !curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, target->sign) && /* NULL: not signed */
           !curl_easy_setopt(curl, CURLOPT_HTTPAUTH,
                             target->sign ? CURLAUTH_AWS_SIGV4 : CURLAUTH_BASIC) &&
           !curl_easy_setopt(curl, CURLOPT_USERPWD, target->login);
}

static enum verdict judge_status(const struct st_http_target *target, const struct st_answer *a,
                                 long status, struct stoker_error *err)
{
    const char *name = target->name;
    if (target->s3 && a->region[0] && strcmp(a->region, target->region) &&
        (status == 301 || status == 307 || status == 400 || status == 403)) {
        st_fail(err, STOKER_EIO, "%s: the bucket is in %s, not in %s (%ld): set AWS_REGION=%s", name,
                a->region, target->region, status, a->region);
        return NEVER;
    }
    switch (status) {
    case 401:
    case 403:
        st_fail(err, STOKER_EIO, "%s: the server refuses (%ld): %s", name, status,
                !target->s3    ? "the URL needs a permission that it does not carry, or has expired"
                : target->sign ? "check the AWS credentials, the region and the bucket's permissions"
                               : "no AWS credentials were found, and the bucket is not public");
        return NEVER;
    case 404:
    case 410:
        st_fail(err, STOKER_EIO, "%s: the server has no such object (%ld)", name, status);
        return NEVER;
    case 416:
        st_fail(err, STOKER_EIO, "%s: the object is shorter than it was when it was opened (416)", name);
        return NEVER;
    case 301:
    case 302:
    case 307:
    case 308:
        st_fail(err, STOKER_EIO,
                "%s: the server sends elsewhere (%ld): is the bucket in another AWS_REGION?", name,
                status);
        return NEVER;
    default:
        st_fail(err, STOKER_EIO, "%s: the server answers with status %ld", name, status);
        return status >= 500 || status == 408 || status == 429 ? AGAIN : NEVER;
    }
}

static enum verdict judge_failure(const struct st_http_target *target, CURLcode code,
                                  struct stoker_error *err)
{
    st_fail(err, STOKER_EIO, "%s: %s", target->name, curl_easy_strerror(code));
    switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_TOO_MANY_REDIRECTS:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_LOGIN_DENIED:
    case CURLE_OUT_OF_MEMORY:
        return NEVER;
    default:
        return AGAIN;
    }
}

static enum verdict judge(const struct st_http_target *target, struct st_answer *a, CURLcode code,
                          long status, struct stoker_error *err)
{
    if (a->changed) {
        st_fail(err, STOKER_EIO, "%s: the object was changed on the server while it was open",
                target->name);
        return NEVER;
    }
    if (a->wrong) {
        st_fail(err, STOKER_EIO, "%s: the server %s", target->name, a->wrong);
        return NEVER;
    }
    if (code)
        return judge_failure(target, code, err);
    if (status == 200 && !a->known && a->length == 0 && !a->has_range) {
        a->has_total = true; /* empty, and so without ranges */
        a->total = 0;
        return DONE;
    }
    if (!st_answer_is_part(a, status))
        return judge_status(target, a, status, err);
    if (a->got == a->wanted)
        return DONE;
    st_fail(err, STOKER_EIO, "%s: the server sent %llu of %llu bytes", target->name,
            (unsigned long long)a->got, (unsigned long long)a->wanted);
    return AGAIN;
}

/* Waits longer each time, by a length that differs from thread to thread, and no longer than there is
 * time. */
static void pause_before(uint32_t again, long server_s, uint64_t until_ns)
{
    const uint64_t now = st_now_ns();
    if (now >= until_ns)
        return;
    uint64_t ms = (uint64_t)PAUSE_MS << (again < 8 ? again : 8);
    if (ms > PAUSE_MAX_MS)
        ms = PAUSE_MAX_MS;
    uint64_t hash = now ^ (uint64_t)(uintptr_t)&ms;
    hash = (hash ^ (hash >> 29)) * 0xbf58476d1ce4e5b9u;
    ms = ms / 2 + (hash >> 33) % (ms / 2 + 1);
    if (server_s > 0 && (uint64_t)server_s * 1000 > ms)
        ms = (uint64_t)server_s * 1000;
    uint64_t ns = ms * 1000000;
    if (ns > until_ns - now)
        ns = until_ns - now;
    const struct timespec wait = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    nanosleep(&wait, NULL);
}

/* What libcurl does not sign, or not in all its versions, unless it is told. */
static bool add_headers(struct curl_slist **headers, const struct st_http_target *target)
{
    static const char empty_body[] =
        "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    struct curl_slist *more;
    if (target->sign) {
        if (!(more = curl_slist_append(*headers, empty_body)))
            return false;
        *headers = more;
    }
    if (target->token) {
        if (!(more = curl_slist_append(*headers, target->token)))
            return false;
        *headers = more;
    }
    return true;
}

/* One request. What has come so far stays: the next asks for the rest. */
static enum verdict ask_once(struct st_connections *connections, const struct st_http_target *target,
                             struct request *request, uint64_t until_ns, long *server_s,
                             struct stoker_error *err)
{
    struct curl_slist *headers = NULL;
    CURL *curl = request->curl = st_connection_take(connections);
    const bool complete = add_headers(&headers, target);
    const uint64_t now = st_now_ns(); /* waiting for a connection took its time */
    const long left_ms = now < until_ns ? (long)((until_ns - now) / 1000000) + 1 : 1;
    if (!curl || !complete || !set_up(request, target, headers, left_ms)) {
        st_fail(err, STOKER_ENOMEM, "%s: libcurl cannot make a request", target->name);
        if (curl)
            st_connection_put(connections, curl);
        curl_slist_free_all(headers);
        return NEVER;
    }
    const CURLcode code = curl_easy_perform(curl);
    curl_off_t after = 0, length = -1;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &request->status);
    curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &after);
    curl_easy_getinfo(curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    request->answer.length = length;
    *server_s = after < 3600 ? (long)after : 3600;
    st_connection_put(connections, curl);
    curl_slist_free_all(headers);
    return judge(target, &request->answer, code, request->status, err);
}

static int ask(struct st_http *http, const struct st_http_target *target, struct request *request,
               struct stoker_error *err)
{
    struct stoker_error why = {0}, reason = {0};
    struct st_connections *connections = st_connections_of(&http->connections);
    if (!connections)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory for connections", target->name);
    const uint64_t until = st_now_ns() + (uint64_t)http->budget_ms * 1000000;
    enum verdict verdict = AGAIN;
    uint32_t tries = 0;
    for (; verdict == AGAIN && tries < TRIES && st_now_ns() < until; tries++) {
        long server_s = 0;
        const uint64_t before = request->answer.got;
        verdict = ask_once(connections, target, request, until, &server_s, &reason);
        /* A try that our own end of time cuts short says less than the one before it. */
        if (verdict != AGAIN || !why.code || st_now_ns() < until)
            why = reason;
        if (verdict == AGAIN && request->answer.got > before)
            tries = 0; /* it gets on */
        if (verdict == AGAIN && tries + 1 < TRIES && st_now_ns() < until)
            pause_before(tries, server_s, until);
    }
    if (verdict == DONE)
        return 0;
    if (verdict == NEVER)
        return st_fail(err, why.code, "%s", why.message);
    return st_fail(err, STOKER_EIO, "%.800s; gave up after %s", why.message,
                   tries < TRIES ? "all the time there was for it" : "trying again and again");
}

int st_http_read(struct st_http *http, const struct st_http_target *target,
                 const struct st_http_version *version, uint64_t offset, void *into, uint64_t size,
                 struct stoker_error *err)
{
    struct request request = {
        .answer = {.known = version, .from = offset, .wanted = size, .into = into}};
    return size ? ask(http, target, &request, err) : 0;
}

int st_http_first(struct st_http *http, const struct st_http_target *target, void *into, uint64_t room,
                  uint64_t *got, struct st_http_version *out, struct stoker_error *err)
{
    struct request request = {.answer = {.wanted = room, .into = into}};
    const struct st_answer *a = &request.answer;
    int rc = ask(http, target, &request, err);
    const bool empty = rc && request.status == 416 && !a->known && (!a->has_total || a->total == 0);
    if (rc && !empty) /* where there is no first byte, none can be asked for */
        return rc;
    if (!a->known && !a->has_total && !empty)
        return st_fail(err, STOKER_EUNSUPPORTED, "%s: the server does not say how large the object is",
                       target->name);
    *got = a->got;
    *out = (struct st_http_version){.size = a->known ? a->known->size : empty ? 0 : a->total};
    snprintf(out->tag, sizeof out->tag, "%s", st_answer_tag(a));
    const time_t modified = a->modified[0] ? curl_getdate(a->modified, NULL) : -1;
    out->modified_ns = modified > 0 ? (int64_t)modified * 1000000000 : 0;
    return 0;
}
