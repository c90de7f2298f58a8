/* hold.c - keeps a snapshot of an LMDB database from being overwritten
 *
 * A process may open a database only once: closing one of two handles would release the locks of both.
 * So all users of a file share one handle, in a process-wide list. A forked child uses its parent's
 * handle and never closes it: the parent's reader slot preserves the snapshot for as long as the parent
 * holds it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/lmdb/hold.h"
#include "st_config.h"

#include <stddef.h>

#if ST_HAVE_LMDB
#include "base/mem.h"
#include "source/process.h"

#include <limits.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A database that this process has open. */
struct opened {
    struct opened *next;
    uint64_t device, inode; /* of the lock file */
    pid_t owner;
    uint32_t holders;
    MDB_env *env;
};

static struct opened *databases; /* guarded by ST_LOCK_LIBRARIES */

struct st_lmdb_hold {
    struct opened *database;
    MDB_txn *txn;
    pid_t owner;
};

static struct opened *find(const struct stat *info)
{
    for (struct opened *database = databases; database; database = database->next)
        if (database->device == info->st_dev && database->inode == info->st_ino &&
            database->owner == getpid())
            return database;
    return NULL;
}

static struct opened *open_database(const char *path, bool in_folder, const struct stat *info)
{
    struct opened *database = st_calloc(1, sizeof *database);
    const unsigned flags = MDB_RDONLY | MDB_NOTLS | MDB_NORDAHEAD | (in_folder ? 0 : MDB_NOSUBDIR);
    if (!database)
        return NULL;
    *database = (struct opened){databases, info->st_dev, info->st_ino, getpid(), 0, NULL};
    if (!mdb_env_create(&database->env)) {
        if (!mdb_env_open(database->env, path, flags, 0644)) {
            databases = database;
            return database;
        }
        mdb_env_close(database->env);
    }
    free(database);
    return NULL;
}

static void close_unused(struct opened *database)
{
    struct opened **at = &databases;
    if (database->holders)
        return;
    while (*at != database)
        at = &(*at)->next;
    *at = database->next;
    mdb_env_close(database->env);
    free(database);
}

/* Call with the lock held. If liblmdb fails, the file may still be readable: then nothing is held. */
static struct st_lmdb_hold *begin(const char *path, bool in_folder, const struct stat *info)
{
    struct opened *database = find(info);
    if (!database)
        database = open_database(path, in_folder, info);
    struct st_lmdb_hold *hold = database ? st_calloc(1, sizeof *hold) : NULL;
    if (hold && !mdb_txn_begin(database->env, NULL, MDB_RDONLY, &hold->txn)) {
        hold->database = database;
        hold->owner = getpid();
        database->holders++;
        return hold;
    }
    free(hold);
    if (database)
        close_unused(database);
    return NULL;
}

struct st_lmdb_hold *st_lmdb_hold(const char *path, bool in_folder, uint64_t *transaction)
{
    char lock[PATH_MAX + 16];
    struct stat info;
    snprintf(lock, sizeof lock, "%s%s", path, in_folder ? "/lock.mdb" : "-lock");
    *transaction = UINT64_MAX;
    if (stat(lock, &info) || access(lock, R_OK | W_OK))
        return NULL;
    st_process_lock(ST_LOCK_LIBRARIES);
    struct st_lmdb_hold *hold = begin(path, in_folder, &info);
    if (hold)
        *transaction = mdb_txn_id(hold->txn);
    st_process_unlock(ST_LOCK_LIBRARIES);
    return hold;
}

void st_lmdb_release(struct st_lmdb_hold *hold)
{
    if (!hold || hold->owner != getpid())
        return;
    st_process_lock(ST_LOCK_LIBRARIES);
    mdb_txn_abort(hold->txn);
    hold->database->holders--;
    close_unused(hold->database);
    st_process_unlock(ST_LOCK_LIBRARIES);
    free(hold);
}

#else

struct st_lmdb_hold *st_lmdb_hold(const char *path, bool in_folder, uint64_t *transaction)
{
    (void)path, (void)in_folder;
    *transaction = UINT64_MAX;
    return NULL;
}

void st_lmdb_release(struct st_lmdb_hold *hold) { (void)hold; }

#endif
