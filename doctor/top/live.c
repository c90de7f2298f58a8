/* live.c - the loaders of a process outside `stoker run`, by the counters that they publish
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/top/top.h"

#include "api/publish.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "doctor/rule/words.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOADERS_MOST = 16, LABEL = 11 };

/* What is read from a page, in the order of `keys`. */
enum {
    PID,
    NOW,
    BATCHES,
    EPOCH_BATCHES,
    SAMPLES,
    BYTES,
    BAD,
    READ,
    DECODE,
    AUGMENT,
    SLOT,
    WAIT,
    WORKERS,
    SLOTS,
    LENT,
    HELD,
    ALLOWED,
    KEYS
};
static const char *const keys[KEYS] = {
    "pid",     "now_ns",  "batches",    "epoch_batches", "samples",       "bytes",
    "bad",     "read_ns", "decode_ns",  "augment_ns",    "slot_ns",       "wait_ns",
    "workers", "slots",   "slots_lent", "memory_held",   "memory_allowed"};

struct counters {
    unsigned long number; /* of the file descriptor: identifies the loader */
    double value[KEYS], before[KEYS];
    char reader[32];
    bool seen;
};

struct dr_live {
    int pid;
    struct counters loader[LOADERS_MOST];
    uint32_t loaders;
};

bool dr_run_of_process(char *out, size_t room, int pid)
{
    static const char name[] = "STOKER_RUN=";
    char path[64];
    char *line = NULL;
    size_t size = 0;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/environ", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    while (!found && getdelim(&line, &size, '\0', file) > 0)
        if (!strncmp(line, name, sizeof name - 1))
            found = snprintf(out, room, "%s", line + sizeof name - 1) < (int)room;
    free(line);
    fclose(file);
    return found;
}

/* ---- pages -----------------------------------------------------------------------------------------
 */

/* A consistent copy; false: not one of our pages, or constantly being written. */
static bool read_page(int fd, char text[sizeof((struct st_published_page *)0)->text])
{
    struct st_published_page page;
    for (int attempt = 0; attempt < 100; attempt++) {
        uint32_t again;
        if (pread(fd, &page, sizeof page, 0) != (ssize_t)sizeof page ||
            memcmp(page.magic, ST_PUBLISHED_MAGIC, sizeof page.magic) ||
            pread(fd, &again, sizeof again, offsetof(struct st_published_page, sequence)) !=
                (ssize_t)sizeof again)
            return false;
        const uint32_t sequence = atomic_load_explicit(&page.sequence, memory_order_relaxed);
        if (sequence % 2 == 0 && sequence == again && page.size < sizeof page.text) {
            memcpy(text, page.text, page.size);
            text[page.size] = '\0';
            return true;
        }
        usleep(100);
    }
    return false;
}

static void parse(struct counters *out, char *text)
{
    char *rest = NULL;
    memcpy(out->before, out->value, sizeof out->before);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *value = strchr(line, ' ');
        if (!value)
            continue;
        *value++ = '\0';
        for (int key = 0; key < KEYS; key++)
            if (!strcmp(line, keys[key]))
                out->value[key] = strtod(value, NULL);
        if (!strcmp(line, "reader"))
            snprintf(out->reader, sizeof out->reader, "%s", value);
    }
}

static struct counters *loader_numbered(struct dr_live *live, unsigned long number)
{
    for (uint32_t k = 0; k < live->loaders; k++)
        if (live->loader[k].number == number)
            return &live->loader[k];
    if (live->loaders == LOADERS_MOST)
        return NULL;
    struct counters *fresh = &live->loader[live->loaders++];
    *fresh = (struct counters){.number = number};
    return fresh;
}

/* Inspects one file descriptor of the process: it may be a page of a loader. */
static void look_at(struct dr_live *live, const char *folder, const char *name)
{
    char path[PATH_MAX], link[256], text[sizeof((struct st_published_page *)0)->text];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return;
    const ssize_t length = readlink(path, link, sizeof link - 1);
    if (length < 0)
        return;
    link[length] = '\0';
    if (strncmp(link, "/memfd:" ST_PUBLISHED_NAME, sizeof "/memfd:" ST_PUBLISHED_NAME - 1))
        return;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    struct counters *loader =
        read_page(fd, text) ? loader_numbered(live, strtoul(name, NULL, 10)) : NULL;
    if (loader) {
        parse(loader, text);
        /* a forked child has the page of its parent open too */
        loader->seen = loader->value[PID] == live->pid;
    }
    close(fd);
}

static int refresh(struct dr_live *live, struct stoker_error *err)
{
    char folder[64];
    snprintf(folder, sizeof folder, "/proc/%d/fd", live->pid);
    DIR *dir = opendir(folder);
    if (!dir && errno == ENOENT)
        return st_fail(err, STOKER_ENOTFOUND, "there is no run and no process with the number %d",
                       live->pid);
    if (!dir)
        return st_fail_errno(err, errno, "cannot inspect process %d", live->pid);
    for (uint32_t k = 0; k < live->loaders; k++)
        live->loader[k].seen = false;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            look_at(live, folder, entry->d_name);
    closedir(dir);
    return 0;
}

int dr_live_open(struct dr_live **out, int pid, struct stoker_error *err)
{
    struct dr_live *live = st_calloc(1, sizeof *live);
    *out = live;
    if (!live)
        return st_fail(err, STOKER_ENOMEM, "out of memory");
    live->pid = pid;
    int rc = refresh(live, err);
    if (!rc && !live->loaders)
        rc = st_fail(err, STOKER_ENOTFOUND,
                     "process %d is not part of a 'stoker run', and loads nothing with Stoker's engine. "
                     "Start it with 'stoker run -- ...'",
                     pid);
    if (rc) {
        dr_live_close(live);
        *out = NULL;
    }
    return rc;
}

void dr_live_close(struct dr_live *live) { free(live); }

/* Everything a loader publishes, since it was opened; times in nanoseconds, memory in bytes. */
int dr_live_json(struct json *json, struct dr_live *live, struct stoker_error *err)
{
    if (refresh(live, err))
        return err->code;
    json_open(json, NULL, '{');
    json_count(json, "pid", (uint64_t)live->pid);
    json_open(json, "loaders", '[');
    for (uint32_t k = 0; k < live->loaders; k++) {
        const struct counters *loader = &live->loader[k];
        if (!loader->seen)
            continue;
        json_open(json, NULL, '{');
        for (int key = BATCHES; key < KEYS; key++)
            json_count(json, keys[key], loader->value[key] > 0 ? (uint64_t)loader->value[key] : 0);
        json_string(json, "reader", loader->reader);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_close(json, '}');
    return STOKER_OK;
}

/* ---- the frame --------------------------------------------------------------------------------------
 */

static void put_stage(struct dr_screen *s, const char *name, enum dr_color color, double share)
{
    dr_put(s, DR_BOLD, " %s", name);
    dr_put_to(s, LABEL);
    dr_put_bar(s, color, 30, share);
    dr_put(s, DR_PLAIN, " %.0f%%", 100 * share);
    dr_put_line(s);
}

static const char *es(double count) { return count == 1 ? "" : "es"; }

static void put_loader(struct dr_screen *s, const struct counters *c)
{
    double since[KEYS];
    for (int key = 0; key < KEYS; key++)
        since[key] = c->value[key] - c->before[key];
    const double seconds = since[NOW] * 1e-9, quiet = ((double)st_now_ns() - c->value[NOW]) * 1e-9;
    const double workers = fmax(1, c->value[WORKERS]);
    dr_put(s, DR_BOLD, " loader");
    dr_put(s, DR_PLAIN,
           "  %.0f batch%s, %.0f sample%s, %.0f bad; %.0f worker%s, %.0f batch%s held, %.0f lent to the "
           "program; reader %s",
           c->value[BATCHES], es(c->value[BATCHES]), c->value[SAMPLES], dr_s(c->value[SAMPLES]),
           c->value[BAD], c->value[WORKERS], dr_s(c->value[WORKERS]), c->value[SLOTS],
           es(c->value[SLOTS]), c->value[LENT], c->reader);
    dr_put_line(s);
    if (c->before[NOW] == 0 || seconds <= 0) {
        dr_put(s, DR_QUIET, " no batch taken in the last %.1f s", quiet);
        dr_put_line(s);
        return;
    }
    dr_put(s, DR_BOLD, " rate");
    dr_put_to(s, LABEL);
    dr_put(s, DR_PLAIN, "%.0f samples/s, %.1f batches/s, %.1f MB/s read, memory %.0f of %.0f MB",
           since[SAMPLES] / seconds, since[BATCHES] / seconds, since[BYTES] / seconds * 1e-6,
           c->value[HELD] * 1e-6, c->value[ALLOWED] * 1e-6);
    dr_put_line(s);
    put_stage(s, "waits", DR_RED, since[WAIT] * 1e-9 / seconds);
    put_stage(s, "read", DR_YELLOW, since[READ] * 1e-9 / seconds / workers);
    put_stage(s, "decode", DR_BLUE, since[DECODE] * 1e-9 / seconds / workers);
    put_stage(s, "augment", DR_CYAN, since[AUGMENT] * 1e-9 / seconds / workers);
    put_stage(s, "idle", DR_GREEN, since[SLOT] * 1e-9 / seconds / workers);
}

bool dr_live_frame(struct dr_screen *screen, struct dr_live *live, struct stoker_error *err)
{
    if (refresh(live, err))
        return false;
    dr_put(screen, DR_BOLD, " stoker top ");
    dr_put(screen, DR_PLAIN, " process %d", live->pid);
    dr_put_line(screen);
    dr_put(
        screen, DR_QUIET,
        " waits: time of the program in next(). The others: share of the workers' time; idle: waiting "
        "for the program");
    dr_put_line(screen);
    for (uint32_t k = 0; k < live->loaders; k++) {
        if (!live->loader[k].seen)
            continue;
        dr_put_line(screen);
        put_loader(screen, &live->loader[k]);
    }
    return true;
}
