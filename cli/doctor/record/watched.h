/* watched.h - the command's processes, seen from outside
 *
 * The tree is followed by parents: whoever is a child of a watched process is watched too, and with
 * PR_SET_CHILD_SUBREAPER those whose parents have ended become children of this one. /proc is gone
 * through only after a process was made, and as often as costs a small share of one CPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_WATCHED_H
#define ST_DOCTOR_WATCHED_H

#include "cli/doctor/probe.h"

enum { DR_WATCHED_MOST = 256 };

struct dr_tree;
/* Watches `command` and what descends from it. `self`: the process to which orphans come;
 * `ignored`: a child of it that does not belong to the command, or 0. */
int dr_tree_open(struct dr_tree **out, const char *root, int command, int self, int ignored,
                 struct dr_absent *absent, struct stoker_error *err);
/* Looks for new processes and samples all; rates are over the time since the call before. */
void dr_tree_sample(struct dr_tree *tree, uint64_t now_ns);
/* Valid until the next sample. */
const struct dr_watched *dr_tree_now(const struct dr_tree *tree);
/* The NUMA node whose CPUs were used most so far; NaN: unknown. */
double dr_tree_node(const struct dr_tree *tree);
void dr_tree_close(struct dr_tree *tree); /* NULL is fine */

/* ---- one process (watched_process.c) ---------------------------------------------------------- */

struct dr_thread_watched {
    int tid, file; /* schedstat, kept open; -1: opened each time */
    uint64_t on_ns, queue_ns, since_ns;
    uint32_t name; /* in `names` */
    bool seen;
};

enum { DR_THREAD_NAMES = 48 };

struct dr_process_watched {
    const char *root;
    int pid, parent, cpu;
    char state;
    char name[64];
    int stat, io;
    int *files_left; /* descriptors that may still be opened, of all together */
    struct dr_thread_watched *thread;
    uint32_t threads, room;
    uint64_t sampled_ns, listed_ns, counted_ns, private_ns; /* when each was last done; 0: never */
    double ticks, system_ticks, faults, read_storage, read_asked, read_calls;
    double last_private, last_files;
    struct dr_threads names[DR_THREAD_NAMES];
    uint32_t name_count;
    double row[DR_PROCESS_COUNT];
};

/* False: there is no such process (any more). */
bool dr_process_open(struct dr_process_watched *process, const char *root, int pid, int *files_left);
bool dr_process_sample(struct dr_process_watched *process, uint64_t now_ns);
/* Private memory, which the kernel has to count: the caller decides when it is worth it. */
void dr_process_private(struct dr_process_watched *process, uint64_t now_ns);
void dr_process_close(struct dr_process_watched *process);
/* The fields of /proc/PID/stat: parent alone, for a process that may not be one of ours; 0: unknown. */
int dr_process_parent(const char *root, int pid);

#endif
