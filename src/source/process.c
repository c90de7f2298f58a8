/* process.c - process-wide locks that are never held across a fork
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/process.h"

#include <stdatomic.h>

static pthread_mutex_t locks[ST_PROCESS_LOCKS] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_uint forks;

static void take_all(void)
{
    for (int i = 0; i < ST_PROCESS_LOCKS; i++)
        pthread_mutex_lock(&locks[i]);
}

static void release_all(void)
{
    for (int i = ST_PROCESS_LOCKS - 1; i >= 0; i--)
        pthread_mutex_unlock(&locks[i]);
}

static void begin_child(void)
{
    atomic_fetch_add(&forks, 1);
    release_all();
}

static void guard_forks(void) { pthread_atfork(take_all, release_all, begin_child); }

void st_process_lock(enum st_process_lock lock)
{
    pthread_once(&once, guard_forks);
    pthread_mutex_lock(&locks[lock]);
}

void st_process_unlock(enum st_process_lock lock) { pthread_mutex_unlock(&locks[lock]); }

pthread_mutex_t *st_process_mutex(enum st_process_lock lock) { return &locks[lock]; }

unsigned st_process_forks(void) { return atomic_load(&forks); }
