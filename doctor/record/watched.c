/* watched.c - the processes of the command, and a row of values for each in every tick
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/record/watched.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "doctor/probe/files.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define SECOND UINT64_C(1000000000)
enum {
    FILES_MOST = 8192,   /* file descriptors kept open */
    SCAN_SHARE = 1000,   /* scans of /proc may take 1/N of the time */
    PRIVATE_FIRST = 150, /* and counting private memory 1/N, until one worker has enough samples, */
    PRIVATE_SHARE = 500, /* and 1/N from then on */
    PRIVATE_KEPT_SECONDS = 20,
    NODES = 64,
    CPUS = 4096,
    SCAN_MOST_SECONDS = 2,
};

struct stranger {
    int pid, parent;
};

struct dr_tree {
    char root[PATH_MAX];
    int self, ignored;
    DIR *proc;
    int loadavg; /* its last number is the newest process: no scan is needed while it stays the same */
    char newest[32];
    uint64_t scan_after_ns, private_after_ns;
    uint64_t locked_ns; /* a process of the run was last seen to lock a database */
    bool private_known; /* a worker has had enough samples */
    int *known;         /* pids found by the last scan of /proc, sorted */
    uint32_t known_count, known_room;
    int *now; /* the current scan */
    uint32_t now_count, now_room;
    struct stranger *stranger; /* the new ones among them */
    uint32_t strangers, stranger_room;
    int files_left;
    struct dr_process_watched *inside[DR_WATCHED_MOST];
    struct dr_process process[DR_WATCHED_MOST];
    uint32_t id[DR_WATCHED_MOST];
    struct dr_watched watched;
    uint32_t next_id;
    int8_t node_of[CPUS];
    double node_used[NODES];
};

static void add_process(struct dr_tree *tree, int pid)
{
    const uint32_t at = tree->watched.processes;
    if (at == DR_WATCHED_MOST)
        return;
    struct dr_process_watched *inside = st_calloc(1, sizeof *inside);
    if (!inside)
        return;
    if (!dr_process_open(inside, tree->root, pid, &tree->files_left)) {
        dr_process_close(inside);
        free(inside);
        return;
    }
    tree->inside[at] = inside;
    tree->id[at] = tree->next_id++;
    tree->process[at] = (struct dr_process){.pid = pid, .rank = -1, .worker = -1, .trainer = -1};
    tree->watched.processes++;
}

static void remove_process(struct dr_tree *tree, uint32_t at)
{
    dr_process_close(tree->inside[at]);
    free(tree->inside[at]);
    const uint32_t behind = --tree->watched.processes - at;
    memmove(tree->inside + at, tree->inside + at + 1, behind * sizeof *tree->inside);
    memmove(tree->process + at, tree->process + at + 1, behind * sizeof *tree->process);
    memmove(tree->id + at, tree->id + at + 1, behind * sizeof *tree->id);
}

/* ---- new processes ------------------------------------------------------------------------------ */

static bool is_ours(const struct dr_tree *tree, int pid)
{
    for (uint32_t k = 0; k < tree->watched.processes; k++)
        if (tree->process[k].pid == pid)
            return true;
    return false;
}

static int compare(const void *a, const void *b)
{
    const int first = *(const int *)a, second = *(const int *)b;
    return (first > second) - (first < second);
}

static bool was_known(const struct dr_tree *tree, int pid)
{
    return tree->known_count && bsearch(&pid, tree->known, tree->known_count, sizeof pid, compare);
}

static void note_stranger(struct dr_tree *tree, int pid)
{
    if (tree->strangers == tree->stranger_room) {
        const uint32_t room = tree->stranger_room ? 2 * tree->stranger_room : 64;
        struct stranger *more = st_grow(tree->stranger, room, sizeof *more);
        if (!more)
            return;
        tree->stranger = more;
        tree->stranger_room = room;
    }
    tree->stranger[tree->strangers++] = (struct stranger){pid, dr_process_parent(tree->root, pid)};
}

static void note_pid(struct dr_tree *tree, int pid)
{
    if (tree->now_count == tree->now_room) {
        const uint32_t room = tree->now_room ? 2 * tree->now_room : 1024;
        int *more = st_grow(tree->now, room, sizeof *more);
        if (!more)
            return;
        tree->now = more;
        tree->now_room = room;
    }
    tree->now[tree->now_count++] = pid;
}

/* /proc may list a child before its parent, so repeat until nothing new is found. */
static void adopt(struct dr_tree *tree)
{
    for (bool found = true; found;) {
        found = false;
        for (uint32_t k = 0; k < tree->strangers; k++) {
            const struct stranger stranger = tree->stranger[k];
            if (stranger.parent <= 0 ||
                (stranger.parent != tree->self && !is_ours(tree, stranger.parent)))
                continue;
            tree->stranger[k].parent = 0;
            if (!is_ours(tree, stranger.pid)) {
                add_process(tree, stranger.pid);
                found = true;
            }
        }
    }
}

static void scan(struct dr_tree *tree, uint64_t now_ns)
{
    char load[96];
    const char *newest = "";
    if (now_ns < tree->scan_after_ns)
        return;
    if (dr_file_text(tree->loadavg, load, sizeof load) && (newest = strrchr(dr_text_line(load), ' ')) &&
        !strcmp(newest, tree->newest))
        return;
    snprintf(tree->newest, sizeof tree->newest, "%s", newest ? newest : "");
    const uint64_t began = st_thread_cpu_ns();
    tree->now_count = tree->strangers = 0;
    rewinddir(tree->proc);
    for (const struct dirent *entry; (entry = readdir(tree->proc));) {
        const int pid = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? atoi(entry->d_name) : 0;
        if (pid <= 0)
            continue;
        note_pid(tree, pid);
        if (!was_known(tree, pid) && pid != tree->self && pid != tree->ignored)
            note_stranger(tree, pid);
    }
    int *const spare = tree->known;
    const uint32_t spare_room = tree->known_room;
    tree->known = tree->now;
    tree->known_room = tree->now_room;
    tree->known_count = tree->now_count;
    tree->now = spare;
    tree->now_room = spare_room;
    if (tree->known_count)
        qsort(tree->known, tree->known_count, sizeof *tree->known, compare);
    adopt(tree);
    uint64_t pause = (st_thread_cpu_ns() - began) * SCAN_SHARE;
    if (pause > SCAN_MOST_SECONDS * SECOND)
        pause = SCAN_MOST_SECONDS * SECOND;
    tree->scan_after_ns = now_ns + pause;
}

/* ---- values ----------------------------------------------------------------------------------- */

/* Private memory shows whether workers copy the pages of the process that they were forked from. That
 * process has many pages and copies none, so it is not counted; the command itself is, rarely, while it
 * has no children: that tells what a worker would need. */
static bool has_children(const struct dr_tree *tree, uint32_t at)
{
    for (uint32_t k = 0; k < tree->watched.processes; k++)
        if (tree->inside[k]->parent == tree->process[at].pid)
            return true;
    return false;
}

/* The process to count next, or UINT32_MAX. A few samples of one worker tell more than one sample of
 * each, so no other worker is counted until this one has enough. */
static uint32_t next_to_count(const struct dr_tree *tree, uint64_t now_ns)
{
    uint32_t best = UINT32_MAX, best_rank = UINT32_MAX;
    for (uint32_t at = 0; at < tree->watched.processes; at++) {
        const struct dr_process_watched *process = tree->inside[at];
        const bool worker = is_ours(tree, process->parent);
        if (has_children(tree, at))
            continue;
        const uint32_t count = process->private_count;
        const bool due = dr_process_private_due(process, worker, now_ns);
        if (worker && count > 0 && count < DR_PRIVATE_ENOUGH)
            return due ? at : UINT32_MAX;
        const uint32_t rank = worker ? count : UINT32_MAX - 1;
        if (due && rank < best_rank)
            best = at, best_rank = rank;
    }
    return best;
}

/* All together within their share of the time. At the beginning, what was not used is kept for a while,
 * so that a short run has enough samples too. */
static void count_private(struct dr_tree *tree, uint64_t now_ns)
{
    const uint64_t kept = tree->private_known ? 0 : (uint64_t)PRIVATE_KEPT_SECONDS * SECOND;
    if (tree->private_after_ns + kept < now_ns)
        tree->private_after_ns = now_ns - kept;
    while (now_ns >= tree->private_after_ns) {
        const uint32_t at = next_to_count(tree, now_ns);
        if (at == UINT32_MAX)
            return;
        const uint64_t began = st_thread_cpu_ns();
        dr_process_private(tree->inside[at], now_ns);
        tree->private_after_ns +=
            (st_thread_cpu_ns() - began) * (tree->private_known ? PRIVATE_SHARE : PRIVATE_FIRST);
        if (!tree->private_known && tree->inside[at]->private_count == DR_PRIVATE_ENOUGH) {
            tree->private_known = true;
            tree->private_after_ns = now_ns + SECOND;
        }
    }
}

static void show(struct dr_tree *tree, uint32_t at)
{
    struct dr_process *shown = &tree->process[at];
    const struct dr_process_watched *inside = tree->inside[at];
    shown->parent = inside->parent;
    snprintf(shown->name, sizeof shown->name, "%s", inside->name);
    shown->table = (struct dr_table){1, DR_PROCESS_COUNT, inside->row};
    shown->threads = inside->names;
    shown->thread_names = inside->name_count;
    const int node = inside->cpu >= 0 && inside->cpu < CPUS ? tree->node_of[inside->cpu] : -1;
    if (node >= 0 && inside->row[DR_P_ON_CPU] > 0)
        tree->node_used[node] += inside->row[DR_P_ON_CPU];
}

/* SQLite tries again after a pause, without a system call that waits for the lock: processes of the run
 * pause, the longer the more often they try, while others of them hold such locks by turns. */
static void look_at_databases(struct dr_tree *tree, uint64_t now_ns)
{
    char text[16384];
    bool any = false;
    int writer = 0;
    for (uint32_t k = 0; k < tree->watched.processes; k++)
        any |= tree->inside[k]->pauses;
    if (!any || !dr_file_once(tree->root, "/proc/locks", text, sizeof text))
        return;
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        int holder;
        line += *line == '\n';
        if (dr_is_database_lock(line, &holder) && is_ours(tree, holder))
            writer = holder;
    }
    if (writer)
        tree->locked_ns = now_ns;
    if (!tree->locked_ns || now_ns - tree->locked_ns > SECOND)
        return;
    for (uint32_t k = 0; k < tree->watched.processes; k++)
        if (tree->inside[k]->pauses && tree->process[k].pid != writer)
            tree->inside[k]->row[DR_P_MAIN_LOCK] = 1;
}

void dr_tree_sample(struct dr_tree *tree, uint64_t now_ns)
{
    scan(tree, now_ns);
    for (uint32_t k = tree->watched.processes; k-- > 0;)
        if (!dr_process_sample(tree->inside[k], now_ns))
            remove_process(tree, k);
    look_at_databases(tree, now_ns);
    count_private(tree, now_ns);
    for (uint32_t k = 0; k < tree->watched.processes; k++)
        show(tree, k);
}

const struct dr_watched *dr_tree_now(const struct dr_tree *tree) { return &tree->watched; }

double dr_tree_node(const struct dr_tree *tree)
{
    int most = 0;
    for (int k = 1; k < NODES; k++)
        if (tree->node_used[k] > tree->node_used[most])
            most = k;
    return tree->node_used[most] > 0 ? most : NAN;
}

/* ---- open and close --------------------------------------------------------------------------- */

/* "0-3,8-11" */
static void read_node(struct dr_tree *tree, int node)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
    if (!dr_file_once(tree->root, path, text, sizeof text))
        return;
    for (char *at = text; *at >= '0' && *at <= '9';) {
        const unsigned long from = strtoul(at, &at, 10);
        const unsigned long to = *at == '-' ? strtoul(at + 1, &at, 10) : from;
        for (unsigned long cpu = from; cpu <= to && cpu < CPUS; cpu++)
            tree->node_of[cpu] = (int8_t)node;
        at += *at == ',';
    }
}

static void say_what_is_absent(const struct dr_tree *tree, struct dr_absent *absent)
{
    char text[256];
    static const char *const by_schedstat[] = {"run_queue", "main.on_cpu", "main.run_queue",
                                               "threads.busy"};
    if (!dr_file_once(tree->root, "/proc/self/schedstat", text, sizeof text))
        for (size_t k = 0; k < sizeof by_schedstat / sizeof *by_schedstat; k++)
            dr_absent_add(absent, by_schedstat[k], "this kernel has no /proc/PID/schedstat",
                          "use a kernel with CONFIG_SCHED_INFO");
    if (!dr_file_once(tree->root, "/proc/self/io", text, sizeof text)) {
        static const char *const by_io[] = {"read.storage", "read.asked", "read.calls"};
        for (size_t k = 0; k < sizeof by_io / sizeof *by_io; k++)
            dr_absent_add(
                absent, by_io[k], "cannot read /proc/PID/io",
                "use a kernel with CONFIG_TASK_IO_ACCOUNTING, and the same user as the command");
    }
    if (!dr_file_once(tree->root, "/proc/self/smaps_rollup", text, sizeof text))
        dr_absent_add(absent, "private", "cannot read /proc/PID/smaps_rollup",
                      "use Linux 4.14 or newer");
}

int dr_tree_open(struct dr_tree **out, const char *root, int command, int self, int ignored,
                 struct dr_absent *absent, struct stoker_error *err)
{
    struct dr_tree *tree = st_calloc(1, sizeof *tree);
    if (!tree)
        return st_fail(err, STOKER_ENOMEM, "out of memory to watch processes");
    char proc[PATH_MAX + 8];
    tree->self = self;
    tree->ignored = ignored;
    tree->next_id = 1;
    snprintf(tree->root, sizeof tree->root, "%s", root);
    snprintf(proc, sizeof proc, "%s/proc", tree->root);
    tree->loadavg = dr_file_open(root, "/proc/loadavg");
    memset(tree->node_of, -1, sizeof tree->node_of);
    for (int node = 0; node < NODES; node++)
        read_node(tree, node);
    tree->watched.process = tree->process;
    tree->watched.id = tree->id;
    struct rlimit limit;
    tree->files_left = FILES_MOST;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        limit.rlim_cur / 4 * 3 < FILES_MOST)
        tree->files_left = (int)(limit.rlim_cur / 4 * 3);
    tree->proc = opendir(proc);
    if (!tree->proc) {
        const int why = errno;
        dr_tree_close(tree);
        return st_fail_errno(err, why, "cannot read %s: no process can be watched", proc);
    }
    say_what_is_absent(tree, absent);
    add_process(tree, command);
    *out = tree;
    return STOKER_OK;
}

void dr_tree_close(struct dr_tree *tree)
{
    if (!tree)
        return;
    while (tree->watched.processes)
        remove_process(tree, tree->watched.processes - 1);
    if (tree->proc)
        closedir(tree->proc);
    dr_file_close(&tree->loadavg);
    free(tree->known);
    free(tree->now);
    free(tree->stranger);
    free(tree);
}
