/* none.c - for builds without libcurl: rejects URLs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/remote/http.h"

static int refuse(struct stoker_error *err)
{
    return st_fail(
        err, STOKER_EUNSUPPORTED,
        "datasets by URL are not supported: this build has no libcurl; build with -Dcurl=enabled");
}

int st_http_open(struct st_http **out, uint32_t budget_ms, uint32_t connections,
                 struct stoker_error *err)
{
    (void)out, (void)budget_ms, (void)connections;
    return refuse(err);
}

void st_http_close(struct st_http *http) { (void)http; }

int st_http_start(struct st_http *http, struct st_http_call *call, struct stoker_error *err)
{
    (void)http, (void)call;
    return refuse(err);
}

int st_http_wait(struct st_http *http, struct st_http_call *call, struct stoker_error *err)
{
    return st_http_start(http, call, err);
}
