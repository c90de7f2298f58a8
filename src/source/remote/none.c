/* none.c - a build without libcurl: URLs are refused by name
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/remote/http.h"

static int refuse(struct stoker_error *err)
{
    return st_fail(err, STOKER_EUNSUPPORTED,
                   "data sets by URL: this build has no libcurl; build it with -Dcurl=enabled");
}

int st_http_open(struct st_http **out, uint32_t budget_ms, struct stoker_error *err)
{
    (void)out, (void)budget_ms;
    return refuse(err);
}

void st_http_close(struct st_http *http) { (void)http; }

int st_http_first(struct st_http *http, const struct st_http_target *target, void *into, uint64_t room,
                  uint64_t *got, struct st_http_version *out, struct stoker_error *err)
{
    (void)http, (void)target, (void)into, (void)room, (void)got, (void)out;
    return refuse(err);
}

int st_http_read(struct st_http *http, const struct st_http_target *target,
                 const struct st_http_version *version, uint64_t offset, void *into, uint64_t size,
                 struct stoker_error *err)
{
    (void)http, (void)target, (void)version, (void)offset, (void)into, (void)size;
    return refuse(err);
}
