/* watched_process.c - observes one process: running, queueing, blocked, per thread; memory and reads
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/mem.h"
#include "doctor/probe/files.h"
#include "doctor/record/watched.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECOND             UINT64_C(1000000000)
#define PRIVATE_PAUSE_MOST (10 * SECOND)
#define NAMING             (3 * SECOND) /* threads get their names within this time */
#define LIST_PAUSE         (5 * SECOND) /* one thread may have replaced another */
enum { PATH_ROOM = 512, THREADS_MOST = 1024, FILES_COUNTED = 4096, FEW_FAULTS = 256 /* 1 MiB */ };

/* The fields of /proc/PID/stat that are used. */
struct stat_line {
    char state;
    int parent, threads, cpu;
    double minor_faults, faults, user, system, pages;
};

/* The name is in brackets and may contain brackets: the fields follow the last one. */
static bool parse_stat(const char *text, struct stat_line *out, char *name, size_t room)
{
    const char *open = strchr(text, '('), *close = strrchr(text, ')');
    if (!open || !close || close < open || close[1] != ' ' || !close[2])
        return false;
    if (name)
        snprintf(name, room, "%.*s", (int)(close - open - 1), open + 1);
    double field[40] = {0}; /* numbered as in proc(5) */
    const char *at = close + 3;
    int k = 4;
    while (k < 40 && (at = dr_text_next(at, &field[k])))
        k++;
    *out = (struct stat_line){.state = close[2],
                              .parent = (int)field[4],
                              .threads = (int)field[20],
                              .cpu = k > 39 ? (int)field[39] : -1,
                              .minor_faults = field[10],
                              .faults = field[12],
                              .user = field[14],
                              .system = field[15],
                              .pages = field[24]};
    return k > 24;
}

static bool read_path(const char *root, int pid, const char *file, char *text, size_t room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    return dr_file_once(root, path, text, room);
}

int dr_process_parent(const char *root, int pid)
{
    char text[1024];
    struct stat_line line;
    return read_path(root, pid, "stat", text, sizeof text) && parse_stat(text, &line, NULL, 0)
               ? line.parent
               : 0;
}

static int keep_open(struct dr_process_watched *process, const char *file)
{
    char path[96];
    if (*process->files_left <= 0)
        return -1;
    snprintf(path, sizeof path, "/proc/%d/%s", process->pid, file);
    const int opened = dr_file_open(process->root, path);
    *process->files_left -= opened >= 0;
    return opened;
}

static void let_go(struct dr_process_watched *process, int *file)
{
    *process->files_left += *file >= 0;
    dr_file_close(file);
}

bool dr_process_open(struct dr_process_watched *process, const char *root, int pid, int *files_left)
{
    *process = (struct dr_process_watched){.root = root,
                                           .pid = pid,
                                           .cpu = -1,
                                           .stat = -1,
                                           .io = -1,
                                           .call = -1,
                                           .files_left = files_left,
                                           .last_private = NAN,
                                           .last_files = NAN,
                                           .last_swapped = NAN};
    process->stat = keep_open(process, "stat");
    process->io = keep_open(process, "io");
    process->call = keep_open(process, "syscall");
    return process->stat >= 0;
}

void dr_process_close(struct dr_process_watched *process)
{
    for (uint32_t k = 0; k < process->threads; k++)
        let_go(process, &process->thread[k].file);
    let_go(process, &process->stat);
    let_go(process, &process->io);
    let_go(process, &process->call);
    free(process->thread);
    process->thread = NULL;
    process->threads = process->room = 0;
}

/* ---- threads ---------------------------------------------------------------------------------- */

static uint32_t name_number(struct dr_process_watched *process, const char *name)
{
    uint32_t k = 0;
    while (k < process->name_count && strcmp(process->names[k].name, name))
        k++;
    if (k == process->name_count) {
        if (k == DR_THREAD_NAMES)
            return DR_THREAD_NAMES - 1;
        process->name_count++;
        snprintf(process->names[k].name, sizeof process->names[k].name, "%.15s",
                 k == DR_THREAD_NAMES - 1 ? "(others)" : name);
    }
    return k;
}

static void name_thread(struct dr_process_watched *process, struct dr_thread_watched *thread)
{
    char file[48], text[64];
    snprintf(file, sizeof file, "task/%d/comm", thread->tid);
    if (!read_path(process->root, process->pid, file, text, sizeof text))
        return;
    text[strcspn(text, "\n")] = '\0';
    text[15] = '\0';
    thread->name = name_number(process, text);
}

static struct dr_thread_watched *thread_of(struct dr_process_watched *process, int tid, uint64_t now_ns)
{
    for (uint32_t k = 0; k < process->threads; k++)
        if (process->thread[k].tid == tid)
            return &process->thread[k];
    if (process->threads >= THREADS_MOST)
        return NULL;
    if (process->threads == process->room) {
        const uint32_t room = process->room ? 2 * process->room : 8;
        struct dr_thread_watched *more = st_grow(process->thread, room, sizeof *more);
        if (!more)
            return NULL;
        process->thread = more;
        process->room = room;
    }
    struct dr_thread_watched *made = &process->thread[process->threads++];
    char file[48];
    snprintf(file, sizeof file, "task/%d/schedstat", tid);
    *made = (struct dr_thread_watched){.tid = tid, .file = keep_open(process, file), .since_ns = now_ns};
    return made;
}

/* The main thread stays first. */
static void forget_thread(struct dr_process_watched *process, uint32_t at)
{
    let_go(process, &process->thread[at].file);
    process->threads--;
    memmove(process->thread + at, process->thread + at + 1,
            (process->threads - at) * sizeof *process->thread);
}

static void list_threads(struct dr_process_watched *process, uint64_t now_ns)
{
    char path[PATH_ROOM];
    if (snprintf(path, sizeof path, "%s/proc/%d/task", process->root, process->pid) >= (int)sizeof path)
        return;
    DIR *folder = opendir(path);
    if (!folder)
        return;
    for (uint32_t k = 0; k < process->threads; k++)
        process->thread[k].seen = false;
    thread_of(process, process->pid, now_ns);
    for (const struct dirent *entry; (entry = readdir(folder));) {
        const int tid = atoi(entry->d_name);
        struct dr_thread_watched *thread = tid > 0 ? thread_of(process, tid, now_ns) : NULL;
        if (!thread)
            continue;
        thread->seen = true;
        if (now_ns - thread->since_ns <= NAMING)
            name_thread(process, thread);
    }
    closedir(folder);
    uint32_t now[DR_THREAD_NAMES] = {0};
    for (uint32_t k = process->threads; k-- > 0;)
        if (!process->thread[k].seen && process->thread[k].tid != process->pid)
            forget_thread(process, k);
        else
            now[process->thread[k].name]++;
    for (uint32_t k = 0; k < process->name_count; k++)
        if (process->names[k].most < now[k])
            process->names[k].most = now[k];
    process->listed_ns = now_ns;
}

static bool read_schedstat(const struct dr_process_watched *process,
                           const struct dr_thread_watched *thread, uint64_t *on, uint64_t *queue)
{
    char text[96], file[48];
    if (thread->file >= 0) {
        if (!dr_file_text(thread->file, text, sizeof text))
            return false;
    } else {
        snprintf(file, sizeof file, "task/%d/schedstat", thread->tid);
        if (!read_path(process->root, process->pid, file, text, sizeof text))
            return false;
    }
    char *end;
    *on = strtoull(text, &end, 10);
    *queue = strtoull(end, NULL, 10);
    return end != text;
}

/* No thread runs or waits longer than the interval. */
static double share(uint64_t now, uint64_t before, double seconds)
{
    const double done = now > before ? (double)(now - before) / 1e9 : 0;
    return done > seconds ? 1 : done / seconds;
}

static void sample_threads(struct dr_process_watched *process, double seconds)
{
    double on_all = 0, queue_all = 0, busy = 0;
    bool known = false;
    for (uint32_t k = 0; k < process->threads; k++) {
        struct dr_thread_watched *thread = &process->thread[k];
        uint64_t on, queue;
        if (!read_schedstat(process, thread, &on, &queue))
            continue;
        if (on > thread->on_ns)
            process->names[thread->name].cpu_seconds += (double)(on - thread->on_ns) / 1e9;
        if (seconds > 0) {
            const double ran = share(on, thread->on_ns, seconds);
            const double waited = share(queue, thread->queue_ns, seconds);
            known = true;
            on_all += ran;
            queue_all += waited;
            busy += on > thread->on_ns;
            if (thread->tid == process->pid) {
                process->row[DR_P_MAIN_ON_CPU] = ran;
                process->row[DR_P_MAIN_RUN_QUEUE] = waited;
            }
        }
        thread->on_ns = on;
        thread->queue_ns = queue;
    }
    if (!known)
        return;
    process->row[DR_P_ON_CPU] = on_all;
    process->row[DR_P_RUN_QUEUE] = queue_all;
    process->row[DR_P_BUSY_THREADS] = busy;
}

/* ---- the process ------------------------------------------------------------------------------ */

static double rate(double now, double *before, double seconds)
{
    const double value = seconds > 0 && now >= *before ? (now - *before) / seconds : NAN;
    *before = now;
    return value;
}

static void sample_io(struct dr_process_watched *process, double seconds)
{
    char text[512];
    if (!dr_file_text(process->io, text, sizeof text))
        return;
    process->row[DR_P_READ_STORAGE] =
        rate(dr_text_number(text, "read_bytes:"), &process->read_storage, seconds);
    process->row[DR_P_READ_ASKED] = rate(dr_text_number(text, "rchar:"), &process->read_asked, seconds);
    process->row[DR_P_READ_CALLS] = rate(dr_text_number(text, "syscr:"), &process->read_calls, seconds);
}

/* Newer kernels report the number of file descriptors as the size of the folder. */
static void count_files(struct dr_process_watched *process, uint64_t now_ns)
{
    char path[PATH_ROOM];
    struct stat about;
    process->counted_ns = now_ns;
    if (snprintf(path, sizeof path, "%s/proc/%d/fd", process->root, process->pid) >= (int)sizeof path ||
        stat(path, &about))
        return;
    if (about.st_size > 0 && !*process->root) {
        process->last_files = (double)about.st_size;
        return;
    }
    DIR *folder = opendir(path);
    if (!folder)
        return;
    uint32_t count = 0;
    for (const struct dirent *entry; (entry = readdir(folder)) && count < FILES_COUNTED;)
        count += entry->d_name[0] != '.';
    closedir(folder);
    process->last_files = count;
}

static void look_at_swap(struct dr_process_watched *process)
{
    char text[4096];
    process->last_swapped = read_path(process->root, process->pid, "status", text, sizeof text)
                                ? 1024 * dr_text_number(text, "VmSwap:")
                                : NAN;
}

bool dr_process_private_due(const struct dr_process_watched *process, bool worker, uint64_t now_ns)
{
    const uint64_t age = now_ns - process->since_ns;
    if (!process->private_ns)
        return age >= (worker ? SECOND : 8 * SECOND);
    uint64_t pause = age / 4 < PRIVATE_PAUSE_MOST ? age / 4 : PRIVATE_PAUSE_MOST;
    if (!worker)
        pause = 3 * (process->private_ns - process->since_ns);
    else if (process->private_count < DR_PRIVATE_ENOUGH)
        pause = 3 * SECOND / 2;
    return now_ns - process->private_ns >= pause;
}

void dr_process_private(struct dr_process_watched *process, uint64_t now_ns)
{
    char text[2048];
    /* Every page that becomes private causes a fault. */
    const bool unchanged = process->private_ns && !isnan(process->last_private) &&
                           process->minor_faults - process->private_faults < FEW_FAULTS;
    process->private_ns = now_ns;
    process->private_count++;
    if (!unchanged) {
        process->private_faults = process->minor_faults;
        process->last_private = NAN;
        if (read_path(process->root, process->pid, "smaps_rollup", text, sizeof text))
            process->last_private =
                1024 * (dr_text_number(text, "Private_Clean:") + dr_text_number(text, "Private_Dirty:"));
    }
    process->row[DR_P_PRIVATE] = process->last_private;
}

/* CPU time of threads that ended between two ticks is only in the total of the process, which has a
 * resolution of 10 ms. */
static void add_ended_threads(struct dr_process_watched *process, double used)
{
    const double two_ticks = 0.02;
    if (isnan(process->row[DR_P_ON_CPU]) || used - two_ticks > process->row[DR_P_ON_CPU])
        process->row[DR_P_ON_CPU] = used;
}

bool dr_process_sample(struct dr_process_watched *process, uint64_t now_ns)
{
    char text[1024];
    struct stat_line line;
    if (!dr_file_text(process->stat, text, sizeof text) ||
        !parse_stat(text, &line, process->name, sizeof process->name) || line.state == 'Z' ||
        line.state == 'X')
        return false;
    const double seconds = process->sampled_ns ? (double)(now_ns - process->sampled_ns) / 1e9 : 0,
                 hertz = (double)sysconf(_SC_CLK_TCK);
    const bool first = !process->sampled_ns;
    if (first)
        process->since_ns = now_ns;
    process->sampled_ns = now_ns;
    process->minor_faults = line.minor_faults;
    process->parent = line.parent;
    process->state = line.state;
    process->cpu = line.cpu;
    process->pauses = false;
    for (int k = 0; k < DR_PROCESS_COUNT; k++)
        process->row[k] = NAN;
    if ((uint32_t)line.threads != process->threads)
        process->changed_ns = now_ns;
    if (!process->listed_ns || process->changed_ns == now_ns ||
        now_ns - process->listed_ns >= (now_ns - process->changed_ns <= NAMING ? SECOND : LIST_PAUSE))
        list_threads(process, now_ns);
    sample_threads(process, seconds);
    process->row[DR_P_SYSTEM] = rate(line.system / hertz, &process->system_ticks, seconds);
    add_ended_threads(process, rate((line.user + line.system) / hertz, &process->ticks, seconds));
    process->row[DR_P_MAJOR_FAULTS] = rate(line.faults, &process->faults, seconds);
    process->row[DR_P_MAIN_DISK] = line.state == 'D';
    if (line.state != 'R')
        dr_process_waits(process);
    else
        process->row[DR_P_MAIN_LOCK] = process->row[DR_P_MAIN_SOCKET] = 0;
    process->row[DR_P_THREADS] = line.threads;
    process->row[DR_P_RSS] = line.pages * (double)sysconf(_SC_PAGESIZE);
    sample_io(process, seconds);
    if (first || now_ns - process->counted_ns >= SECOND)
        count_files(process, now_ns), look_at_swap(process);
    process->row[DR_P_SWAPPED] = process->last_swapped;
    process->row[DR_P_OPEN_FILES] = process->last_files;
    return true;
}
