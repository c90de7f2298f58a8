/* watched.h - the processes of the command, observed from outside
 *
 * Children of a watched process are watched too; with PR_SET_CHILD_SUBREAPER, orphans become children of
 * this process. /proc is scanned only after a process was created, and only as often as costs a small
 * share of a CPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_WATCHED_H
#define ST_DOCTOR_WATCHED_H

#include "doctor/probe/probe.h"

enum { DR_WATCHED_MOST = 256 };

struct dr_tree;
/* Watches `command` and its descendants. `self`: the process that adopts orphans; `ignored`: a child of
 * it that does not belong to the command, or 0. */
int dr_tree_open(struct dr_tree **out, const char *root, int command, int self, int ignored,
                 struct dr_absent *absent, struct stoker_error *err);
/* Finds new processes and samples all of them; rates are over the time since the last call. */
void dr_tree_sample(struct dr_tree *tree, uint64_t now_ns);
/* Valid until the next sample. */
const struct dr_watched *dr_tree_now(const struct dr_tree *tree);
/* The NUMA node whose CPUs were used the most so far; NaN: unknown. */
double dr_tree_node(const struct dr_tree *tree);
void dr_tree_close(struct dr_tree *tree); /* NULL is allowed */

/* ---- one process (watched_process.c) ---------------------------------------------------------- */

struct dr_thread_watched {
    int tid, file; /* schedstat, kept open; -1: opened each time */
    uint64_t on_ns, queue_ns, since_ns;
    uint32_t name; /* in `names` */
    bool seen;
};

enum { DR_THREAD_NAMES = 48, DR_PRIVATE_ENOUGH = 4 /* samples that show whether a process grows */ };

struct dr_process_watched {
    const char *root;
    int pid, parent, cpu;
    char state;
    bool pauses; /* the main thread, in the last sample: DR_WAIT_PAUSE */
    char name[64];
    int stat, io, call; /* files, kept open; -1 */
    int *files_left; /* file descriptors that may still be opened, for all processes together */
    struct dr_thread_watched *thread;
    uint32_t threads, room;
    uint64_t since_ns;   /* time of the first sample */
    uint64_t changed_ns; /* the number of threads changed */
    uint64_t sampled_ns, listed_ns, counted_ns, private_ns; /* the last update of each; 0: never */
    uint32_t private_count;                                 /* updates of the private memory */
    double minor_faults, private_faults; /* so far; when the private memory was counted */
    double ticks, system_ticks, faults, read_storage, read_asked, read_calls;
    double last_private, last_files, last_swapped;
    struct dr_threads names[DR_THREAD_NAMES];
    uint32_t name_count;
    double row[DR_PROCESS_COUNT];
};

/* False: the process does not exist (any more). */
bool dr_process_open(struct dr_process_watched *process, const char *root, int pid, int *files_left);
bool dr_process_sample(struct dr_process_watched *process, uint64_t now_ns);
/* Whether the private memory should be counted again. Of a worker, every 1.5 seconds until there are
 * enough samples to see whether it grows, then every quarter of its age, up to 10 seconds. Of another
 * process, after 8 seconds (most have workers by then, and are not counted), and whenever it has become
 * four times as old. */
bool dr_process_private_due(const struct dr_process_watched *process, bool worker, uint64_t now_ns);
/* Fills in DR_P_PRIVATE, which is known only in ticks with this call. The kernel walks all pages to
 * count the private ones (tens of milliseconds for a large process), so the caller decides when it is
 * worth the cost. */
void dr_process_private(struct dr_process_watched *process, uint64_t now_ns);
/* Fills in DR_P_MAIN_LOCK and DR_P_MAIN_SOCKET (waits.c). */
void dr_process_waits(struct dr_process_watched *process);
/* By the text of /proc/PID/syscall. A pause is a sleep as C libraries do it between two attempts;
 * Python's time.sleep is none. */
enum dr_wait { DR_WAIT_NONE, DR_WAIT_LOCK, DR_WAIT_SOCKET, DR_WAIT_PAUSE };
enum dr_wait dr_wait_of(const char *text);
/* Whether a line of /proc/locks (`text` begins with it) is a lock for writing to an SQLite database; the
 * process that has it. */
bool dr_is_database_lock(const char *text, int *pid);
void dr_process_close(struct dr_process_watched *process);
/* The parent in /proc/PID/stat of a process that may not be ours; 0: unknown. */
int dr_process_parent(const char *root, int pid);

#endif
