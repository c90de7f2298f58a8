/* connections.h - connections that stay open
 *
 * A thread takes a handle with its connection, makes one request at a time, and puts it back; the one
 * put back last is taken first, so that few connections stay warm. A forked child makes its own: to use
 * or to close a connection of its parent would disturb what the parent reads from it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_REMOTE_CONNECTIONS_H
#define ST_SOURCE_REMOTE_CONNECTIONS_H

#include <curl/curl.h>
#include <stdbool.h>

struct st_connections;

/* Sets what is the same for all requests; false: out of memory. */
typedef bool st_connection_prepare(CURL *curl);

struct st_connections *st_connections_new(st_connection_prepare *prepare); /* NULL: out of memory */
/* True in the process that made them; in its child they are left as they are. */
bool st_connections_close(struct st_connections *connections);
/* This process's, which are put in the place of its parent's. NULL: out of memory. */
struct st_connections *st_connections_of(_Atomic(struct st_connections *) *place);

/* Waits while all are taken. Options of the request before may still be set. NULL: out of memory. */
CURL *st_connection_take(struct st_connections *connections);
void st_connection_put(struct st_connections *connections, CURL *curl);

#endif
