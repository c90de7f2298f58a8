/* load.c - reads a run directory: samples, processes and events, joined by process id
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/model/load.h"

#include "base/err.h"
#include "base/mem.h"
#include "doctor/model/numbers.h"
#include "doctor/record/samples.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_PROCESSES = 65536 };

struct loaded {
    struct dr_run run; /* first member: dr_run_close gets a pointer to it */
    struct dr_blocks blocks;
    bool own_processes; /* run.process is a separate block, not part of the samples */
};

/* Room for the longest name in a run directory, after its own path. */
struct path {
    char text[sizeof((struct dr_run *)0)->directory + 64];
};

static const char *path_of(struct path *room, const struct dr_run *run, const char *folder, int pid)
{
    if (pid < 0)
        snprintf(room->text, sizeof room->text, "%s/%s", run->directory, folder);
    else
        snprintf(room->text, sizeof room->text, "%s/%s/%d", run->directory, folder, pid);
    return room->text;
}

static int read_samples(struct loaded *loaded, struct stoker_error *err)
{
    struct dr_run *run = &loaded->run;
    struct path path;
    struct stat status;
    if (stat(path_of(&path, run, "samples", -1), &status) && errno == ENOENT)
        return STOKER_OK;
    const int rc = dr_samples_read(run, run->directory, err);
    if (run->memory && !dr_blocks_own(&loaded->blocks, run->memory))
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", run->directory);
    return rc;
}

/* The last line is the working directory. */
static int read_command(struct loaded *loaded, struct stoker_error *err)
{
    struct dr_run *run = &loaded->run;
    struct path path;
    char **lines;
    uint32_t count;
    const int rc =
        dr_read_lines(path_of(&path, run, "command", -1), &loaded->blocks, &lines, &count, err);
    if (rc)
        return rc;
    run->cwd = "";
    if (count) {
        run->cwd = lines[count - 1];
        lines[count - 1] = NULL;
    }
    run->argv = lines;
    return STOKER_OK;
}

/* A name that is just a process id; 0: any other. */
static int pid_of(const char *name)
{
    char *end;
    if (*name < '1' || *name > '9')
        return 0;
    errno = 0;
    const long pid = strtol(name, &end, 10);
    return *end || errno || pid > INT32_MAX ? 0 : (int)pid;
}

/* The process with this id; the last one if the id was reused. NULL: there is none. */
static struct dr_process *find_pid(const struct dr_run *run, int pid)
{
    for (uint32_t k = run->processes; k-- > 0;)
        if (run->process[k].pid == pid)
            return &run->process[k];
    return NULL;
}

static struct dr_process *add_process(struct dr_run *run, uint32_t *room, int pid)
{
    if (run->processes == *room) {
        if (*room >= MOST_PROCESSES)
            return NULL;
        struct dr_process *more = st_grow(run->process, 2 * *room, sizeof *more);
        if (!more)
            return NULL;
        run->process = more;
        *room *= 2;
    }
    struct dr_process *process = &run->process[run->processes++];
    *process = (struct dr_process){.pid = pid, .first_tick = run->machine.ticks};
    process->table.signals = DR_PROCESS_COUNT;
    return process;
}

/* Reads process/ or events/, and adds processes that were not seen from outside. */
static int read_folder(struct loaded *loaded, uint32_t *room, const char *folder,
                       int (*read)(const char *, struct dr_blocks *, struct dr_process *,
                                   struct stoker_error *),
                       struct stoker_error *err)
{
    struct dr_run *run = &loaded->run;
    struct path path;
    DIR *listing = opendir(path_of(&path, run, folder, -1));
    if (!listing)
        return errno == ENOENT ? STOKER_OK : st_fail_errno(err, errno, "cannot list %s", path.text);
    int rc = STOKER_OK;
    for (struct dirent *entry; !rc && (entry = readdir(listing));) {
        const int pid = pid_of(entry->d_name);
        if (!pid)
            continue;
        struct dr_process *process = find_pid(run, pid);
        if (!process)
            process = add_process(run, room, pid);
        if (!process)
            rc = st_fail(err, STOKER_ENOMEM, "%s: too many processes", path.text);
        else
            rc = read(path_of(&path, run, folder, pid), &loaded->blocks, process, err);
    }
    closedir(listing);
    return rc;
}

static int said_whole(const struct dr_process *process, const char *key, int otherwise)
{
    const double value = dr_said_number(process, key);
    return value >= 0 && value <= INT32_MAX ? (int)value : otherwise;
}

static bool did(const struct dr_process *process, uint16_t kind)
{
    for (uint64_t k = 0; k < process->event_count; k++)
        if (process->events[k].kind == kind)
            return true;
    return false;
}

static enum dr_role role_of(const struct dr_process *process)
{
    const char *said = dr_said(process, "role");
    if (said && !strcmp(said, "trainer"))
        return DR_TRAINER;
    if (said && !strcmp(said, "worker"))
        return DR_WORKER;
    return did(process, DR_NEXT) ? DR_TRAINER : did(process, DR_FETCH) ? DR_WORKER : DR_OTHER;
}

/* Processes seen from outside are in the order in which they appeared; the others in the order of their
 * files in the directory, which is arbitrary. */
static int compare_processes(const void *a, const void *b)
{
    const struct dr_process *one = a, *other = b;
    const int order = (one->first_tick > other->first_tick) - (one->first_tick < other->first_tick);
    return order ? order : (one->pid > other->pid) - (one->pid < other->pid);
}

/* Sets roles, ranks, and which worker belongs to which trainer. */
static void join(struct dr_run *run)
{
    for (uint32_t k = 0; k < run->processes; k++) {
        struct dr_process *process = &run->process[k];
        process->role = role_of(process);
        process->parent = said_whole(process, "parent", process->parent);
        process->rank = said_whole(process, "rank", -1);
        process->worker = process->role == DR_WORKER ? said_whole(process, "worker.id", -1) : -1;
        process->trainer = -1;
        const char *argv = dr_said(process, "argv");
        if (!process->name[0] && argv)
            snprintf(process->name, sizeof process->name, "%.*s", (int)strcspn(argv, " "), argv);
    }
    for (uint32_t k = 0; k < run->processes; k++) {
        struct dr_process *process = &run->process[k];
        const struct dr_process *parent = find_pid(run, process->parent);
        if (process->role == DR_WORKER && parent && parent->role == DR_TRAINER) {
            process->trainer = (int)(parent - run->process);
            process->rank = parent->rank;
        }
    }
}

static int read_all(struct loaded *loaded, struct stoker_error *err)
{
    struct dr_run *run = &loaded->run;
    int rc = read_samples(loaded, err);
    if (!rc)
        rc = read_command(loaded, err);
    if (rc)
        return rc;
    /* The array of processes moves when it grows, so it is a separate block. */
    const struct dr_process *seen = run->process;
    uint32_t room = run->processes < 32 ? 64 : 2 * run->processes;
    run->process = st_calloc(room, sizeof *run->process);
    loaded->own_processes = true;
    if (!run->process)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory for its processes", run->directory);
    if (run->processes)
        memcpy(run->process, seen, run->processes * sizeof *seen);
    rc = read_folder(loaded, &room, "process", dr_read_said, err);
    if (!rc)
        rc = read_folder(loaded, &room, "events", dr_read_events, err);
    if (rc)
        return rc;
    qsort(run->process, run->processes, sizeof *run->process, compare_processes);
    join(run);
    return STOKER_OK;
}

int dr_run_open(struct dr_run **out, const char *directory, struct stoker_error *err)
{
    struct stat status;
    *out = NULL;
    if (stat(directory, &status))
        return st_fail_errno(err, errno, "%s: no such run", directory);
    if (!S_ISDIR(status.st_mode))
        return st_fail(err, STOKER_EINVAL, "%s: not a run directory, as `stoker run` creates it",
                       directory);
    struct loaded *loaded = st_calloc(1, sizeof *loaded);
    if (!loaded)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", directory);
    struct dr_run *run = &loaded->run;
    if (snprintf(run->directory, sizeof run->directory, "%s", directory) >= (int)sizeof run->directory) {
        free(loaded);
        return st_fail(err, STOKER_EINVAL, "%s: the name is too long", directory);
    }
    dr_forget(&run->limits, offsetof(struct dr_limits, gpu_name));
    run->machine.signals = DR_MACHINE_COUNT;
    run->own_cpu_seconds = NAN;
    const int rc = read_all(loaded, err);
    if (rc)
        dr_run_close(run);
    else
        *out = run;
    return rc;
}

void dr_run_close(struct dr_run *run)
{
    struct loaded *loaded = (struct loaded *)run;
    if (!run)
        return;
    if (loaded->own_processes)
        free(run->process);
    dr_blocks_free(&loaded->blocks);
    free(loaded);
}
