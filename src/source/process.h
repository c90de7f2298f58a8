/* process.h - process-wide locks that are never held across a fork
 *
 * HDF5 has one state per process; LMDB requires that a process opens a database only once; and a cache
 * shared by threads must not stay locked in a forked child by a thread that does not exist there. So
 * these locks belong to the process, not to a dataset. All of them are taken around every fork: in the
 * child they are free, and the data they guard are consistent.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_PROCESS_H
#define ST_SOURCE_PROCESS_H

#include <pthread.h>

enum st_process_lock {
    ST_LOCK_LIBRARIES, /* HDF5 calls, opening and closing LMDB: may be held for long */
    ST_LOCK_CACHES,    /* only while a cache's tables are accessed */
    ST_PROCESS_LOCKS
};

void st_process_lock(enum st_process_lock lock);
void st_process_unlock(enum st_process_lock lock);
/* The mutex, for use with a condition variable. */
pthread_mutex_t *st_process_mutex(enum st_process_lock lock);
/* The number of forks between the first process that took a lock and this one. */
unsigned st_process_forks(void);

#endif
