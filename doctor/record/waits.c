/* waits.c - what the main thread of a process waits for, by its system call
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/probe/files.h"
#include "doctor/record/watched.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#ifndef F_OFD_SETLKW
#define F_OFD_SETLKW 38
#endif
/* linux/futex.h: a futex that only threads of one process use is marked as private; the low bits are the
 * operation. */
enum {
    ARGUMENTS = 6,
    FUTEX_OPERATION = 0x7f,
    FUTEX_IS_PRIVATE = 128,
    FUTEX_WAIT_ON = 0,
    FUTEX_WAIT_BITS = 9
};

/* Locks of files, and locks in memory that processes share (multiprocessing.Lock). */
static bool is_lock(long call, const unsigned long *argument)
{
    const unsigned long second = argument[1];
#ifdef SYS_flock
    if (call == SYS_flock)
        return true;
#endif
#ifdef SYS_fcntl
    if (call == SYS_fcntl)
        return second == F_SETLKW || second == F_OFD_SETLKW;
#endif
#ifdef SYS_futex
    if (call == SYS_futex) {
        const unsigned long operation = second & FUTEX_OPERATION;
        return !(second & FUTEX_IS_PRIVATE) &&
               (operation == FUTEX_WAIT_ON || operation == FUTEX_WAIT_BITS);
    }
#endif
    return false;
}

static bool is_socket(long call)
{
    switch (call) {
#ifdef SYS_recvfrom
    case SYS_recvfrom:
#endif
#ifdef SYS_recvmsg
    case SYS_recvmsg:
#endif
#ifdef SYS_connect
    case SYS_connect:
#endif
        return true;
    default:
        return false;
    }
}

/* usleep() and nanosleep(): a relative time on the clock of the day. */
static bool is_pause(long call, const unsigned long *argument)
{
    switch (call) {
#ifdef SYS_nanosleep
    case SYS_nanosleep:
        return true;
#endif
#ifdef SYS_clock_nanosleep
    case SYS_clock_nanosleep:
        return argument[0] == CLOCK_REALTIME && !argument[1];
#endif
    default:
        return false;
    }
}

/* SQLite locks bytes at 1 GiB of its database for writing (pending, reserved, exclusive), and bytes 120
 * to 127 of the index beside a write-ahead log. */
bool dr_is_database_lock(const char *text, int *pid)
{
    char kind[16], mode[16], access[16];
    unsigned long long first;
    if (sscanf(text, "%*d: %15s %15s %15s %d %*s %llu", kind, mode, access, pid, &first) != 5 ||
        (strcmp(kind, "POSIX") && strcmp(kind, "OFDLCK")) || strcmp(access, "WRITE"))
        return false;
    const unsigned long long bytes = 1ull << 30;
    return (first >= bytes && first < bytes + 512) || (first >= 120 && first <= 127);
}

enum dr_wait dr_wait_of(const char *text)
{
    unsigned long argument[ARGUMENTS] = {0};
    char *end;
    const long call = strtol(text, &end, 10); /* "running", "-1 0x7ff 0x7f0", "73 0x4 0x2 ..." */
    if (end == text)
        return DR_WAIT_NONE;
    for (int k = 0; k < ARGUMENTS; k++)
        argument[k] = strtoul(end, &end, 16);
    return is_lock(call, argument)    ? DR_WAIT_LOCK
           : is_socket(call)          ? DR_WAIT_SOCKET
           : is_pause(call, argument) ? DR_WAIT_PAUSE
                                      : DR_WAIT_NONE;
}

void dr_process_waits(struct dr_process_watched *process)
{
    char text[256];
    if (process->call < 0 || !dr_file_text(process->call, text, sizeof text))
        return;
    const enum dr_wait wait = dr_wait_of(text);
    process->row[DR_P_MAIN_LOCK] = wait == DR_WAIT_LOCK;
    process->row[DR_P_MAIN_SOCKET] = wait == DR_WAIT_SOCKET;
    process->pauses = wait == DR_WAIT_PAUSE;
}
