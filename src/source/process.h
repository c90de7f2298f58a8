/* process.h - locks of the whole process, which no fork catches taken
 *
 * HDF5 has one state in a process; LMDB wants a database opened once in a process; and a cache that
 * threads share must not stay locked in a forked child by a thread that is not there. So these locks are
 * no data set's own. Both are taken around every fork: in the child they are free, and what they guard
 * is in order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_PROCESS_H
#define ST_SOURCE_PROCESS_H

#include <pthread.h>

enum st_process_lock {
    ST_LOCK_LIBRARIES, /* calls of HDF5, opening and closing of LMDB: may be held for long */
    ST_LOCK_CACHES,    /* only while a cache's tables are looked at */
    ST_PROCESS_LOCKS
};

void st_process_lock(enum st_process_lock lock);
void st_process_unlock(enum st_process_lock lock);
/* The lock itself, for waiting on a condition with it held. */
pthread_mutex_t *st_process_mutex(enum st_process_lock lock);
/* How many forks lie between this process and the first that took a lock. */
unsigned st_process_forks(void);

#endif
