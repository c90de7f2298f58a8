/* curl.c - range requests with libcurl
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/remote/answer.h"
#include "source/remote/http.h"
#include "source/remote/loop.h"
#include "source/remote/waiter.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/mem.h"
#include "base/text.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum {
    TRIES = 10,
    REDIRECTIONS = 5,
    CONNECT_MS = 10000,
    SLOW_BYTES = 1000, /* a connection below this rate per second for SLOW_S seconds is dropped */
    SLOW_S = 10,
    RECEIVED_AT_ONCE = 128 << 10,
    PAUSE_MS = 50,
    PAUSE_MAX_MS = 5000,
    /* Enough for more than 5,000 requests per second to a server 30 ms away. */
    CONNECTIONS = 256,
};

struct st_http {
    _Atomic(struct st_loop *) loop;
    uint32_t budget_ms;
};

/* One request and its response. */
struct request {
    struct st_loop_job job; /* must be first */
    struct st_http_call *call;
    struct st_answer answer;
    struct curl_slist *headers;
    long status;
    uint32_t tries;
    bool fresh; /* the next try uses a new connection */
    uint64_t until_ns;
    uint64_t before; /* bytes received before this try */
    uint32_t parts_reported;
    struct stoker_error why;
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
    struct st_http_call *call = request->call;
    long status = 0;
    curl_easy_getinfo(request->job.curl, CURLINFO_RESPONSE_CODE, &status);
    const bool wanted = st_answer_body(&request->answer, status, data, size * one);
    for (; call->part && request->parts_reported < request->answer.part; request->parts_reported++)
        call->part(call, request->parts_reported);
    return wanted ? size * one : 0;
}

/* Sets the options that are the same for all requests. */
static bool prepare(CURL *curl)
{
    const char *authorities = st_authorities();
    const bool good = !curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https") &&
                      !curl_easy_setopt(curl, CURLOPT_MAXREDIRS, (long)REDIRECTIONS) &&
                      !curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header) &&
                      !curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body) &&
                      !curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) &&
                      !curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, (long)RECEIVED_AT_ONCE) &&
                      !curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L) &&
                      /* several requests per connection, if the server supports it */
                      !curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS) &&
                      !curl_easy_setopt(curl, CURLOPT_PIPEWAIT, 1L) &&
                      !curl_easy_setopt(curl, CURLOPT_USERAGENT, "stoker") &&
                      !curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS) &&
                      !curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES) &&
                      !curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)SLOW_S);
    return good && (!authorities || !curl_easy_setopt(curl, CURLOPT_CAINFO, authorities));
}

/* Connections are descriptors too: use at most a quarter of the limit. */
static uint32_t connections_allowed(uint32_t wanted)
{
    struct rlimit files;
    const uint64_t quarter = getrlimit(RLIMIT_NOFILE, &files) ? 64 : files.rlim_cur / 4;
    const uint64_t most = wanted ? wanted : CONNECTIONS;
    return (uint32_t)(most < quarter ? most : quarter < 1 ? 1 : quarter);
}

int st_http_open(struct st_http **out, uint32_t budget_ms, uint32_t connections,
                 struct stoker_error *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT))
        return st_fail(err, STOKER_EUNSUPPORTED, "cannot initialize libcurl");
    struct st_http *http = st_calloc(1, sizeof *http);
    struct st_loop *loop = http ? st_loop_new(prepare, connections_allowed(connections)) : NULL;
    if (!loop) {
        free(http);
        curl_global_cleanup();
        return st_fail(err, STOKER_ENOMEM, "out of memory or descriptors for connections");
    }
    http->budget_ms = budget_ms;
    atomic_init(&http->loop, loop);
    *out = http;
    return 0;
}

void st_http_close(struct st_http *http)
{
    if (!http)
        return;
    if (st_loop_close(atomic_load(&http->loop)))
        curl_global_cleanup();
    free(http);
}

/* ---- one try ----------------------------------------------------------------------------------- */

enum verdict { DONE, AGAIN, NEVER };

/* Headers that libcurl, or some versions of it, would not sign otherwise. */
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

/* Bytes received so far are kept: the next try requests the rest. */
static bool begin_try(struct st_loop_job *job)
{
    struct request *request = (struct request *)job;
    const struct st_http_target *target = request->call->target;
    const struct st_answer *a = &request->answer;
    CURL *curl = job->curl;
    char range[48];
    const bool safe = !strncmp(target->url, "https:", 6);
    const uint64_t now = st_now_ns();
    const long left_ms = now < request->until_ns ? (long)((request->until_ns - now) / 1000000) + 1 : 1;
    request->before = a->got;
    request->status = 0;
    snprintf(range, sizeof range, "%llu-%llu", (unsigned long long)(a->from + a->got),
             (unsigned long long)(a->from + a->wanted - 1));
    return add_headers(&request->headers, target) && !curl_easy_setopt(curl, CURLOPT_URL, target->url) &&
           !curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, safe ? "https" : "http,https") &&
           !curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, target->s3 ? 0L : 1L) &&
           !curl_easy_setopt(curl, CURLOPT_RANGE, range) &&
           !curl_easy_setopt(curl, CURLOPT_HTTPHEADER, request->headers) &&
           !curl_easy_setopt(curl, CURLOPT_HEADERDATA, request) &&
           !curl_easy_setopt(curl, CURLOPT_WRITEDATA, request) &&
           !curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, left_ms) &&
           !curl_easy_setopt(curl, CURLOPT_FRESH_CONNECT, request->fresh ? 1L : 0L) &&
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
        st_fail(err, STOKER_EIO, "%s: the bucket is in region %s, not %s (%ld): set AWS_REGION=%s", name,
                a->region, target->region, status, a->region);
        return NEVER;
    }
    switch (status) {
    case 401:
    case 403:
        st_fail(err, STOKER_EIO, "%s: access denied by the server (%ld): %s", name, status,
                !target->s3    ? "the URL lacks credentials, or has expired"
                : target->sign ? "check the AWS credentials, the region and the bucket's permissions"
                               : "no AWS credentials were found and the bucket is not public");
        return NEVER;
    case 404:
    case 410:
        st_fail(err, STOKER_ENOTFOUND, "%s: the server has no such object (%ld)", name, status);
        return NEVER;
    case 416:
        st_fail(err, STOKER_EIO, "%s: the object is shorter than when it was opened (416)", name);
        return NEVER;
    case 301:
    case 302:
    case 307:
    case 308:
        st_fail(err, STOKER_EIO,
                "%s: the server redirects (%ld): is the bucket in another AWS_REGION?", name,
                status);
        return NEVER;
    default:
        if (status == 400 && target->s3 && !target->sign)
            st_fail(
                err, STOKER_EIO,
                "%s: the server rejects unsigned requests (400%s%s), and no AWS credentials were found; "
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile in ~/.aws, and "
                "AWS_REGION",
                name, a->reason[0] ? ", " : "", a->reason);
        else
            st_fail(err, STOKER_EIO, "%s: the server returned status %ld%s%s", name, status,
                    a->reason[0] ? ", " : "", a->reason);
        return status >= 500 || status == 408 || status == 429 ? AGAIN : NEVER;
    }
}

static enum verdict judge_failure(const struct st_http_target *target, CURLcode code, long status,
                                  struct stoker_error *err)
{
    if (code == CURLE_UNSUPPORTED_PROTOCOL &&
        !status) { /* the URL's protocol is supported, so the response is meant */
        st_fail(
            err, STOKER_EIO,
            "%s: invalid response: the server sends more bytes than its Content-Length states, or does "
            "not speak HTTP",
            target->name);
        return AGAIN;
    }
    const bool untrusted = code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE;
    st_fail(err, code == CURLE_OUT_OF_MEMORY ? STOKER_ENOMEM : STOKER_EIO, "%s: %s%s", target->name,
            curl_easy_strerror(code),
            untrusted
                ? " (trusted certificates come from the system's ca-certificates package, or from the "
                  "file that SSL_CERT_FILE names)"
                : "");
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
        st_fail(err, STOKER_EIO, "%s: the object changed on the server while it was open",
                target->name);
        return NEVER;
    }
    if (a->wrong) {
        st_fail(err, STOKER_EIO, "%s: the server %s", target->name, a->wrong);
        return NEVER;
    }
    const bool part = st_answer_is_part(a, status) || a->whole;
    if (part && a->checked && a->got == a->wanted)
        return DONE; /* even if the connection failed afterwards */
    if (code)
        return judge_failure(target, code, status, err);
    if (status == 200 && !a->known && a->has_length && a->length == 0 && !a->has_range) {
        a->has_total = true; /* an empty object has no ranges */
        a->total = 0;
        return DONE;
    }
    if (!part)
        return judge_status(target, a, status, err);
    st_fail(err, STOKER_EIO, "%s: the server sent %llu of %llu byte%s", target->name,
            (unsigned long long)a->got, (unsigned long long)a->wanted, st_s(a->wanted));
    return AGAIN;
}

/* How long to wait before the next try: exponential backoff with jitter. */
static uint64_t pause_ns(const struct request *request, long server_s)
{
    uint64_t ms = (uint64_t)PAUSE_MS << (request->tries < 8 ? request->tries : 8);
    if (ms > PAUSE_MAX_MS)
        ms = PAUSE_MAX_MS;
    uint64_t hash = st_now_ns() ^ (uint64_t)(uintptr_t)request;
    hash = (hash ^ (hash >> 29)) * 0xbf58476d1ce4e5b9u;
    ms = ms / 2 + (hash >> 33) % (ms / 2 + 1);
    if (server_s > 0 && (uint64_t)server_s * 1000 > ms)
        ms = (uint64_t)server_s * 1000;
    return ms * 1000000;
}

/* ---- a request with its retries ---------------------------------------------------------------- */

static void finish(struct request *request, int code, const struct stoker_error *err)
{
    struct st_http_call *call = request->call;
    free(request);
    call->done(call, code, err);
}

static void stop_request(struct st_loop_job *job)
{
    struct request *request = (struct request *)job;
    struct stoker_error err;
    st_fail(&err, STOKER_ECANCELED, "%s: reading was cancelled", request->call->target->name);
    curl_slist_free_all(request->headers);
    finish(request, STOKER_ECANCELED, &err);
}

static int give_up(const struct request *request, struct stoker_error *err)
{
    if (request->tries < TRIES)
        return st_fail(err, STOKER_ETRANSIENT,
                       "%.800s; gave up after the time limit (timeout, in C remote_ms)",
                       request->why.message);
    return st_fail(err, STOKER_ETRANSIENT, "%.800s; gave up after %d tries without progress",
                   request->why.message, TRIES);
}

/* What the first request found out about the object. */
static int learn_version(const struct request *request, int rc, struct stoker_error *err)
{
    struct st_http_call *call = request->call;
    const struct st_answer *a = &request->answer;
    const bool empty = rc && request->status == 416 && !a->known && (!a->has_total || a->total == 0);
    call->whole = rc && a->whole && a->has_total && a->total > a->wanted ? a->total : 0;
    if (rc && !empty) /* an empty object has no first byte to request */
        return rc;
    if (!a->known && !a->has_total && !empty)
        return st_fail(err, STOKER_EUNSUPPORTED, "%s: the server does not report the object's size",
                       call->target->name);
    call->got = a->got;
    call->learned = (struct st_http_version){.size = a->known ? a->known->size : empty ? 0 : a->total};
    snprintf(call->learned.tag, sizeof call->learned.tag, "%s", st_answer_tag(a));
    const time_t modified = a->modified[0] ? curl_getdate(a->modified, NULL) : -1;
    call->learned.modified_ns = modified > 0 ? (int64_t)modified * 1000000000 : 0;
    return 0;
}

/* Ends one try; returns when the next one begins, or 0 if the request has ended. */
static uint64_t end_try(struct st_loop_job *job, CURLcode code)
{
    struct request *request = (struct request *)job;
    struct st_answer *a = &request->answer;
    struct stoker_error reason = {0};
    curl_off_t after = 0;
    if (job->curl) {
        curl_easy_getinfo(job->curl, CURLINFO_RESPONSE_CODE, &request->status);
        curl_easy_getinfo(job->curl, CURLINFO_RETRY_AFTER, &after);
    }
    curl_slist_free_all(request->headers);
    request->headers = NULL;
    const enum verdict verdict = judge(request->call->target, a, code, request->status, &reason);
    const uint64_t now = st_now_ns();
    /* The error of a try that our own time limit cut short is less informative than the previous one. */
    if (verdict != AGAIN || !request->why.code || now < request->until_ns)
        request->why = reason;
    request->tries = /* starts over as long as there is progress */
        verdict == AGAIN && a->got > request->before ? 0 : request->tries + 1;
    request->fresh = verdict == AGAIN;
    if (verdict == AGAIN && a->whole) { /* which restarts at the first byte each time */
        a->known = NULL;
        a->got = a->part_got = a->part = 0;
    }
    const uint64_t next = now + pause_ns(request, after < 3600 ? (long)after : 3600);
    if (verdict == AGAIN && request->tries < TRIES && next < request->until_ns)
        return next;
    struct stoker_error err = request->why;
    int rc = verdict == DONE ? 0 : verdict == NEVER ? err.code : give_up(request, &err);
    if (!request->call->version)
        rc = learn_version(request, rc, &err);
    finish(request, rc, &err);
    return 0;
}

int st_http_start(struct st_http *http, struct st_http_call *call, struct stoker_error *err)
{
    struct st_loop *loop = st_loop_of(&http->loop);
    struct request *request = st_calloc(1, sizeof *request);
    if (!loop || !request) {
        free(request);
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory for a request", call->target->name);
    }
    *request = (struct request){
        .job = {.cancel = call->cancel,
                .interrupted = call->interrupted,
                .begin = begin_try,
                .end = end_try,
                .stop = stop_request},
        .call = call,
        .answer = {.known = call->version, .from = call->offset, .parts = call->parts},
        .until_ns = st_now_ns() + (uint64_t)http->budget_ms * 1000000};
    for (uint32_t i = 0; i < call->part_count; i++)
        request->answer.wanted += call->parts[i].size;
    const int failed = st_loop_add(loop, &request->job);
    if (failed)
        free(request);
    return failed
               ? st_fail_errno(err, failed, "%s: cannot start a thread for requests", call->target->name)
               : 0;
}

static void wake_waiter(struct st_http_call *call, int code, const struct stoker_error *err)
{
    st_waiter_wake(call->waiter, code, err);
}

int st_http_wait(struct st_http *http, struct st_http_call *call, struct stoker_error *err)
{
    struct st_waiter waiter;
    if (st_was_interrupted())
        return st_fail(err, STOKER_ECANCELED, "%s: interrupted", call->target->name);
    st_waiter_init(&waiter, err);
    call->done = wake_waiter;
    call->waiter = &waiter;
    call->interrupted = &waiter.interrupted;
    int rc = st_http_start(http, call, err);
    if (!rc)
        rc = st_waiter_wait(&waiter);
    st_waiter_free(&waiter);
    return rc;
}
