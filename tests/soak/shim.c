/* shim.c - faults below the reader: an LD_PRELOAD library that lets one call of the C library, of
 * io_uring or of a socket go wrong
 *
 * Counted are the calls that concern a file or folder below a given one, and those of internet sockets,
 * to which the kind of fault applies; the one with the given number fails:
 *
 *     eio      an input/output error (sockets: the connection is reset)
 *     eintr    interrupted by a signal before anything was done
 *     short    half of the bytes are read or written
 *     enospc   the disk is full
 *     kill     the process is killed before the call
 *     torn     the process is killed when half of a write is done
 *
 * Armed by STOKER_FAULT=KIND:NUMBER and STOKER_FAULT_UNDER=FOLDER, or by fault_arm. STOKER_FAULT_LOG
 * names a file that gets a line for each counted call; the one that failed has a star.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#undef _FILE_OFFSET_BITS /* or the functions below would have other names */
#undef _FORTIFY_SOURCE
#include "soak/shim.h"
#include "st_config.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#if ST_HAVE_URING
#include <liburing.h>
#endif

enum kind { NONE, EIO_ONCE, EINTR_ONCE, SHORT_ONCE, ENOSPC_ONCE, KILL_ONCE, TORN_ONCE };
static const char *const kind_names[] = {"none", "eio", "eintr", "short", "enospc", "kill", "torn"};
#define BIT(kind) (1u << (kind))

/* The faults that a call of each sort may meet. */
enum {
    READS = BIT(EIO_ONCE) | BIT(EINTR_ONCE) | BIT(SHORT_ONCE),
    WRITES = READS | BIT(ENOSPC_ONCE) | BIT(KILL_ONCE) | BIT(TORN_ONCE),
    OPENS = BIT(EIO_ONCE) | BIT(EINTR_ONCE),
    CREATES = OPENS | BIT(ENOSPC_ONCE) | BIT(KILL_ONCE),
    LOOKS = BIT(EIO_ONCE), /* stat, mmap, readdir */
    NAMES = BIT(EIO_ONCE) | BIT(ENOSPC_ONCE) | BIT(KILL_ONCE),
    REMOVES = BIT(EIO_ONCE) | BIT(KILL_ONCE),
    SYNCS = CREATES,
    WAITS = BIT(EINTR_ONCE),
};

static struct {
    enum kind kind;
    char under[PATH_MAX];
    size_t under_size;
    int log;
} fault = {.log = -1};
static atomic_ulong fault_number, fault_calls;
static atomic_bool fault_has_fired;

#define PUBLIC     __attribute__((visibility("default")))
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* ---- what is counted ----------------------------------------------------------------------------- */

PUBLIC void fault_arm(const char *kind, unsigned long number, const char *under)
{
    fault.kind = NONE;
    for (size_t i = 0; i < sizeof kind_names / sizeof *kind_names; i++)
        if (!strcmp(kind, kind_names[i]))
            fault.kind = (enum kind)i;
    snprintf(fault.under, sizeof fault.under, "%s", under);
    fault.under_size = strlen(fault.under);
    atomic_store(&fault_calls, 0);
    atomic_store(&fault_has_fired, false);
    atomic_store(&fault_number, number);
}

PUBLIC void fault_state(unsigned long *calls, bool *fired)
{
    *calls = atomic_load(&fault_calls);
    *fired = atomic_load(&fault_has_fired);
}

static __attribute__((constructor)) void start(void)
{
    const char *wanted = getenv("STOKER_FAULT"), *under = getenv("STOKER_FAULT_UNDER");
    const char *log = getenv("STOKER_FAULT_LOG");
    char kind[16] = "";
    unsigned long number = 0;
    if (log)
        fault.log =
            (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (wanted && under && sscanf(wanted, "%15[a-z]:%lu", kind, &number) == 2)
        fault_arm(kind, number, under);
}

static void log_call(const char *name, const char *what, unsigned long number, bool now)
{
    char line[PATH_MAX + 100];
    const int size =
        snprintf(line, sizeof line, "%lu\t%s\t%s%s\n", number, name, what, now ? "\t*" : "");
    if (fault.log >= 0 && size > 0)
        syscall(SYS_write, fault.log, line, size);
}

static bool is_under(const char *path)
{
    return path && fault.under_size && !strncmp(path, fault.under, fault.under_size);
}

/* Counts a call; whether it is the one that goes wrong. */
static bool due(unsigned faults, const char *name, const char *what)
{
    if (!(faults & BIT(fault.kind)))
        return false;
    const unsigned long number = atomic_fetch_add(&fault_calls, 1) + 1;
    const bool now = number == atomic_load(&fault_number);
    log_call(name, what, number, now);
    if (!now)
        return false;
    atomic_store(&fault_has_fired, true);
    if (fault.kind == KILL_ONCE)
        syscall(SYS_kill, getpid(), SIGKILL);
    return true;
}

static bool due_at(unsigned faults, const char *name, const char *path)
{
    const int before = errno;
    const bool now = is_under(path) && due(faults, name, path);
    errno = before;
    return now;
}

static bool due_on(unsigned faults, const char *name, int fd)
{
    char link[64], path[PATH_MAX];
    const int before = errno;
    if (!(faults & BIT(fault.kind)) || fd < 0)
        return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const long size = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    path[size > 0 ? size : 0] = '\0';
    const bool now = is_under(path) && due(faults, name, path);
    errno = before;
    return now;
}

static int domain_of(int fd)
{
    int domain = 0;
    socklen_t size = sizeof domain;
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) ? 0 : domain;
}

static bool due_on_socket(unsigned faults, const char *name, int fd)
{
    const int before = errno, domain = faults & BIT(fault.kind) ? domain_of(fd) : 0;
    const bool now = (domain == AF_INET || domain == AF_INET6) && due(faults, name, "socket");
    errno = before;
    return now;
}

static int errno_of(void)
{
    return fault.kind == EINTR_ONCE ? EINTR : fault.kind == ENOSPC_ONCE ? ENOSPC : EIO;
}

static int fail(void)
{
    errno = errno_of();
    return -1;
}

static bool halves(size_t size) { return fault.kind == SHORT_ONCE && size > 1; }

/* After half of a write. */
static ssize_t torn(ssize_t done)
{
    if (fault.kind == TORN_ONCE)
        syscall(SYS_kill, getpid(), SIGKILL);
    return done;
}

/* ---- reading and writing -------------------------------------------------------------------------- */

/* The same function under another name. */
#define ALSO(other, name) __asm__(".globl " #other "\n.set " #other ", " #name)

/* A function that reads: the call as it was, and with half of the bytes. */
#define READER(name, arguments, fd, size, whole, half)                                                  \
    PUBLIC ssize_t name arguments                                                                       \
    {                                                                                                   \
        if (!due_on(READS, #name, fd) || (fault.kind == SHORT_ONCE && !halves(size)))                   \
            return REAL(name) whole;                                                                    \
        return halves(size) ? REAL(name) half : fail();                                                 \
    }
#define WRITER(name, arguments, fd, size, whole, half)                                                  \
    PUBLIC ssize_t name arguments                                                                       \
    {                                                                                                   \
        if (!due_on(WRITES, #name, fd))                                                                 \
            return REAL(name) whole;                                                                    \
        if (fault.kind != SHORT_ONCE && fault.kind != TORN_ONCE)                                        \
            return fail();                                                                              \
        return torn((size) > 1 ? REAL(name) half : REAL(name) whole);                                   \
    }

READER(read, (int fd, void *to, size_t size), fd, size, (fd, to, size), (fd, to, size / 2))
READER(pread, (int fd, void *to, size_t size, off_t at), fd, size, (fd, to, size, at),
       (fd, to, size / 2, at))
READER(readv, (int fd, const struct iovec *to, int count), fd, (size_t)count, (fd, to, count),
       (fd, to, count / 2))
READER(preadv, (int fd, const struct iovec *to, int count, off_t at), fd, (size_t)count,
       (fd, to, count, at), (fd, to, count / 2, at))
WRITER(write, (int fd, const void *from, size_t size), fd, size, (fd, from, size), (fd, from, size / 2))
WRITER(pwrite, (int fd, const void *from, size_t size, off_t at), fd, size, (fd, from, size, at),
       (fd, from, size / 2, at))
WRITER(writev, (int fd, const struct iovec *from, int count), fd, (size_t)count, (fd, from, count),
       (fd, from, count / 2))
WRITER(pwritev, (int fd, const struct iovec *from, int count, off_t at), fd, (size_t)count,
       (fd, from, count, at), (fd, from, count / 2, at))
WRITER(copy_file_range, (int fd, loff_t *from, int to, loff_t *at, size_t size, unsigned flags), to,
       size, (fd, from, to, at, size, flags), (fd, from, to, at, size / 2, flags))
ALSO(pread64, pread);
ALSO(preadv64, preadv);
ALSO(pwrite64, pwrite);
ALSO(pwritev64, pwritev);

/* What _FORTIFY_SOURCE makes of them. */
PUBLIC ssize_t __read_chk(int fd, void *to, size_t size, size_t room);
PUBLIC ssize_t __read_chk(int fd, void *to, size_t size, size_t room)
{
    return size > room ? (abort(), 0) : read(fd, to, size);
}
PUBLIC ssize_t __pread_chk(int fd, void *to, size_t size, off_t at, size_t room);
PUBLIC ssize_t __pread_chk(int fd, void *to, size_t size, off_t at, size_t room)
{
    return size > room ? (abort(), 0) : pread(fd, to, size, at);
}
ALSO(__pread64_chk, __pread_chk);

PUBLIC int fsync(int fd) { return due_on(SYNCS, "fsync", fd) ? fail() : REAL(fsync)(fd); }
PUBLIC int fdatasync(int fd) { return due_on(SYNCS, "fdatasync", fd) ? fail() : REAL(fdatasync)(fd); }
PUBLIC int msync(void *at, size_t size, int flags)
{
    return due(SYNCS, "msync", "") ? fail() : REAL(msync)(at, size, flags);
}
PUBLIC int ftruncate(int fd, off_t size)
{
    return due_on(CREATES, "ftruncate", fd) ? fail() : REAL(ftruncate)(fd, size);
}
ALSO(ftruncate64, ftruncate);
PUBLIC int truncate(const char *path, off_t size)
{
    return due_at(CREATES, "truncate", path) ? fail() : REAL(truncate)(path, size);
}
ALSO(truncate64, truncate);
PUBLIC void *mmap(void *at, size_t size, int rights, int flags, int fd, off_t offset)
{
    if (!(flags & MAP_ANONYMOUS) && due_on(LOOKS, "mmap", fd)) {
        errno = EIO;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, size, rights, flags, fd, offset);
}
ALSO(mmap64, mmap);

/* ---- names --------------------------------------------------------------------------------------- */

static mode_t mode_of(int flags, va_list more)
{
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? (mode_t)va_arg(more, int) : 0;
}

static int open_one(int folder, const char *path, int flags, mode_t mode)
{
    if (due_at(flags & O_CREAT ? CREATES : OPENS, "open", path))
        return fail();
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

PUBLIC int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const mode_t mode = mode_of(flags, more);
    va_end(more);
    return open_one(AT_FDCWD, path, flags, mode);
}
ALSO(open64, open);
PUBLIC int openat(int folder, const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const mode_t mode = mode_of(flags, more);
    va_end(more);
    return open_one(folder, path, flags, mode);
}
ALSO(openat64, openat);
PUBLIC int __open_2(const char *path, int flags);
PUBLIC int __open_2(const char *path, int flags) { return open_one(AT_FDCWD, path, flags, 0); }
ALSO(__open64_2, __open_2);
PUBLIC int mkostemp(char *pattern, int flags)
{
    return due_at(CREATES, "mkostemp", pattern) ? fail() : REAL(mkostemp)(pattern, flags);
}
ALSO(mkostemp64, mkostemp);

PUBLIC int stat(const char *path, struct stat *out)
{
    return due_at(LOOKS, "stat", path) ? fail() : REAL(stat)(path, out);
}
ALSO(stat64, stat);
PUBLIC int lstat(const char *path, struct stat *out)
{
    return due_at(LOOKS, "lstat", path) ? fail() : REAL(lstat)(path, out);
}
ALSO(lstat64, lstat);
PUBLIC int fstat(int fd, struct stat *out)
{
    return due_on(LOOKS, "fstat", fd) ? fail() : REAL(fstat)(fd, out);
}
ALSO(fstat64, fstat);
PUBLIC int fstatat(int folder, const char *path, struct stat *out, int flags)
{
    const bool now = path[0] == '/' ? due_at(LOOKS, "fstatat", path) : due_on(LOOKS, "fstatat", folder);
    return now ? fail() : REAL(fstatat)(folder, path, out, flags);
}
ALSO(fstatat64, fstatat);
PUBLIC int statx(int folder, const char *path, int flags, unsigned mask, struct statx *out)
{
    const bool now = path[0] == '/' ? due_at(LOOKS, "statx", path) : due_on(LOOKS, "statx", folder);
    return now ? fail() : REAL(statx)(folder, path, flags, mask, out);
}

PUBLIC int rename(const char *from, const char *to)
{
    return due_at(NAMES, "rename", to) ? fail() : REAL(rename)(from, to);
}
PUBLIC int link(const char *from, const char *to)
{
    return due_at(NAMES, "link", to) ? fail() : REAL(link)(from, to);
}
PUBLIC int mkdir(const char *path, mode_t mode)
{
    return due_at(NAMES, "mkdir", path) ? fail() : REAL(mkdir)(path, mode);
}
PUBLIC int unlink(const char *path)
{
    return due_at(REMOVES, "unlink", path) ? fail() : REAL(unlink)(path);
}
PUBLIC int unlinkat(int folder, const char *path, int flags)
{
    return due_on(REMOVES, "unlinkat", folder) ? fail() : REAL(unlinkat)(folder, path, flags);
}
PUBLIC DIR *opendir(const char *path)
{
    return due_at(OPENS, "opendir", path) ? (fail(), NULL) : REAL(opendir)(path);
}
PUBLIC struct dirent *readdir(DIR *dir)
{
    return due_on(LOOKS, "readdir", dirfd(dir)) ? (fail(), NULL) : REAL(readdir)(dir);
}
ALSO(readdir64, readdir);

/* ---- sockets ------------------------------------------------------------------------------------- */

static ssize_t reset_or_interrupted(void)
{
    errno = fault.kind == EINTR_ONCE ? EINTR : ECONNRESET;
    return -1;
}

PUBLIC ssize_t recv(int fd, void *to, size_t size, int flags)
{
    if (!due_on_socket(READS, "recv", fd) || (fault.kind == SHORT_ONCE && size < 2))
        return REAL(recv)(fd, to, size, flags);
    return halves(size) ? REAL(recv)(fd, to, 1, flags) : reset_or_interrupted();
}
PUBLIC ssize_t send(int fd, const void *from, size_t size, int flags)
{
    if (!due_on_socket(READS, "send", fd) || (fault.kind == SHORT_ONCE && size < 2))
        return REAL(send)(fd, from, size, flags);
    return halves(size) ? REAL(send)(fd, from, size / 2, flags) : reset_or_interrupted();
}
PUBLIC int connect(int fd, const struct sockaddr *to, socklen_t size)
{
    if (!due_on_socket(BIT(EIO_ONCE), "connect", fd))
        return REAL(connect)(fd, to, size);
    errno = ECONNREFUSED;
    return -1;
}

/* ---- io_uring ------------------------------------------------------------------------------------ */

#if ST_HAVE_URING
/* Whether the request is the one that goes wrong. */
static bool due_in_ring(const struct io_uring_sqe *sqe)
{
    if (sqe->opcode == IORING_OP_OPENAT)
        return due_at(OPENS, "io_uring open", (const char *)(uintptr_t)sqe->addr);
    return sqe->opcode == IORING_OP_READ && due_on(READS, "io_uring read", sqe->fd);
}

/* The completion of a request, once it is there; NULL if none comes. */
static struct io_uring_cqe *completion(const struct io_uring *ring, uint64_t request)
{
    for (int tries = 0; tries < 20000; tries++) {
        const unsigned tail = __atomic_load_n(ring->cq.ktail, __ATOMIC_ACQUIRE);
        for (unsigned at = *ring->cq.khead; at != tail; at++)
            if (ring->cq.cqes[at & *ring->cq.kring_mask].user_data == request)
                return &ring->cq.cqes[at & *ring->cq.kring_mask];
        usleep(500);
    }
    return NULL;
}

/* The request is carried out, and its completion then changed. */
static void spoil(const struct io_uring *ring, const struct io_uring_sqe *sqe)
{
    struct io_uring_cqe *cqe = completion(ring, sqe->user_data);
    if (!cqe || cqe->res < 0)
        return;
    if (sqe->opcode == IORING_OP_OPENAT)
        close(cqe->res);
    cqe->res = fault.kind == SHORT_ONCE ? cqe->res / 2 : -errno_of();
}

PUBLIC int io_uring_submit(struct io_uring *ring)
{
    struct io_uring_sqe chosen = {0};
    bool any = false;
    if (due(OPENS, "io_uring_submit", "")) /* the kernel is out of memory, or a signal came */
        return fault.kind == EINTR_ONCE ? -EINTR : -EAGAIN;
    for (unsigned at = ring->sq.sqe_head; at != ring->sq.sqe_tail; at++) {
        const struct io_uring_sqe *sqe = &ring->sq.sqes[at & *ring->sq.kring_mask];
        if (due_in_ring(sqe)) {
            chosen = *sqe;
            any = true;
        }
    }
    const int rc = REAL(io_uring_submit)(ring);
    if (any)
        spoil(ring, &chosen);
    return rc;
}

PUBLIC int __io_uring_get_cqe(struct io_uring *ring, struct io_uring_cqe **out, unsigned submit,
                              unsigned wait, sigset_t *mask)
{
    if (wait && due(WAITS, "io_uring_wait_cqe", "")) {
        *out = NULL;
        return -EINTR;
    }
    return REAL(__io_uring_get_cqe)(ring, out, submit, wait, mask);
}
#endif
