/* connections.c - connections that stay open
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/remote/connections.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* With a server 10 ms away they make 3000 requests a second. */
enum { CONNECTIONS = 32 };

struct st_connections {
    pid_t owner;
    st_connection_prepare *prepare;
    pthread_mutex_t lock;
    pthread_cond_t returned;
    uint32_t made, idle_count;
    CURL *idle[CONNECTIONS];
};

struct st_connections *st_connections_new(st_connection_prepare *prepare)
{
    struct st_connections *own = st_calloc(1, sizeof *own);
    if (!own)
        return NULL;
    own->owner = getpid();
    own->prepare = prepare;
    pthread_mutex_init(&own->lock, NULL);
    pthread_cond_init(&own->returned, NULL);
    return own;
}

bool st_connections_close(struct st_connections *connections)
{
    if (connections->owner != getpid())
        return false;
    for (uint32_t i = 0; i < connections->idle_count; i++)
        curl_easy_cleanup(connections->idle[i]);
    pthread_cond_destroy(&connections->returned);
    pthread_mutex_destroy(&connections->lock);
    free(connections);
    return true;
}

struct st_connections *st_connections_of(_Atomic(struct st_connections *) *place)
{
    struct st_connections *there = atomic_load(place);
    if (there->owner == getpid())
        return there;
    struct st_connections *own = st_connections_new(there->prepare);
    if (!own || atomic_compare_exchange_strong(place, &there, own))
        return own;
    st_connections_close(own); /* another thread was faster */
    return there;
}

static CURL *make(const struct st_connections *connections)
{
    CURL *curl = curl_easy_init();
    if (!curl || connections->prepare(curl))
        return curl;
    curl_easy_cleanup(curl);
    return NULL;
}

CURL *st_connection_take(struct st_connections *connections)
{
    CURL *curl = NULL;
    pthread_mutex_lock(&connections->lock);
    while (!connections->idle_count && connections->made == CONNECTIONS)
        pthread_cond_wait(&connections->returned, &connections->lock);
    if (connections->idle_count)
        curl = connections->idle[--connections->idle_count];
    else
        connections->made++;
    pthread_mutex_unlock(&connections->lock);
    if (!curl && !(curl = make(connections))) {
        pthread_mutex_lock(&connections->lock);
        connections->made--;
        pthread_cond_signal(&connections->returned);
        pthread_mutex_unlock(&connections->lock);
    }
    return curl;
}

void st_connection_put(struct st_connections *connections, CURL *curl)
{
    pthread_mutex_lock(&connections->lock);
    connections->idle[connections->idle_count++] = curl;
    pthread_cond_signal(&connections->returned);
    pthread_mutex_unlock(&connections->lock);
}
