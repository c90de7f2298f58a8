/* lock.c - only one run at a time writes into a folder
 *
 * A file in the folder names the run and is locked while the run is alive, however it ends. A run that
 * ends normally removes it; a killed run leaves it unlocked.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/pack.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether the name still refers to the open file: the previous holder of the lock removes it. */
static bool is_still_named(int fd, const char *path)
{
    struct stat held, named;
    return !fstat(fd, &held) && !lstat(path, &named) && held.st_dev == named.st_dev &&
           held.st_ino == named.st_ino;
}

static int held_by_another(int fd, const char *folder, struct stoker_error *err)
{
    char who[300] = "";
    const ssize_t size = pread(fd, who, sizeof who - 1, 0);
    who[size > 0 ? (size_t)size : 0] = '\0';
    who[strcspn(who, "\n")] = '\0';
    return st_fail(
        err, STOKER_EINVAL,
        "%.500s: another 'stoker pack' is writing there (%s): wait until it is done, or choose another "
        "folder",
        folder, who[0] ? who : "unknown process");
}

static void say_who(int fd)
{
    char host[100] = "", who[200];
    gethostname(host, sizeof host - 1);
    const int size = snprintf(who, sizeof who, "process %ld on %s\n", (long)getpid(), host);
    if (!pack_truncate(fd, 0) || !st_file_write(fd, 0, who, (uint64_t)size))
        return; /* only the lock matters, not its contents: a full disk will be noticed later */
}

int pack_lock_take(struct pack_lock *lock, const char *folder, struct stoker_error *err)
{
    *lock = (struct pack_lock){.fd = -1};
    struct stat about;
    if (mkdir(folder, 0777) && errno != EEXIST)
        return st_fail_errno(err, errno, "%s", folder);
    if (!stat(folder, &about) && !S_ISDIR(about.st_mode))
        return st_fail(err, STOKER_EINVAL, "%s is a file: name a folder to write into", folder);
    const int rc = pack_path(lock->path, folder, PACK_LOCK, err);
    if (rc)
        return rc;
    for (;;) {
        const int fd = st_file_open(lock->path, O_RDWR | O_CREAT | O_NOFOLLOW);
        if (fd < 0)
            return pack_cannot_write(lock->path, errno, err);
        const int why = flock(fd, LOCK_EX | LOCK_NB) ? errno : 0;
        if (why == EWOULDBLOCK) {
            held_by_another(fd, folder, err);
            close(fd);
            return STOKER_EINVAL;
        }
        /* Otherwise the lock is ours, or the file system has no locks, which must be accepted. */
        if (why || is_still_named(fd, lock->path)) {
            lock->fd = fd;
            say_who(fd);
            return STOKER_OK;
        }
        close(fd);
    }
}

void pack_lock_drop(struct pack_lock *lock)
{
    if (lock->fd < 0)
        return;
    unlink(lock->path);
    close(lock->fd);
    lock->fd = -1;
}
