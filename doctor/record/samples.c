/* samples.c - writes RUN/samples; rows are kept in memory and merged in pairs when there are too many
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/record/samples.h"

#include "base/err.h"
#include "base/mem.h"
#include "doctor/record/samples_file.h"
#include "doctor/record/samples_kept.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS_EVERY = 10 /* flushes */, SLACK = 4 << 20 /* bytes */ };

/* ---- records ---------------------------------------------------------------------------------- */

static void put(struct dr_samples *samples, const void *bytes, size_t size)
{
    struct st_buffer *out = &samples->out;
    if (samples->behind)
        return;
    if (out->size + size > out->capacity && !st_buffer_keep(out, 2 * (out->size + size) + 4096)) {
        samples->behind = true;
        return;
    }
    memcpy(out->data + out->size, bytes, size);
    out->size += size;
}

static void put_text(struct dr_samples *samples, const char *text)
{
    put(samples, text, strlen(text) + 1);
}

static void put_head(struct dr_samples *samples, enum dr_record_kind kind, size_t size)
{
    put(samples, &(struct dr_record_head){kind, (uint32_t)size}, sizeof(struct dr_record_head));
}

static void put_start(struct dr_samples *samples)
{
    put(samples, DR_SAMPLES_MAGIC, sizeof DR_SAMPLES_MAGIC);
    put_head(samples, DR_RECORD_START, 16);
    put(samples, &samples->start_ns, 8);
    put(samples, &samples->started, 8);

    size_t size = 8;
    for (int k = 0; k < DR_MACHINE_COUNT; k++)
        size += strlen(dr_machine_signals[k].name) + 1;
    for (int k = 0; k < DR_PROCESS_COUNT; k++)
        size += strlen(dr_process_signals[k].name) + 1;
    put_head(samples, DR_RECORD_SIGNALS, size);
    put(samples, (uint32_t[]){DR_MACHINE_COUNT, DR_PROCESS_COUNT}, 8);
    for (int k = 0; k < DR_MACHINE_COUNT; k++)
        put_text(samples, dr_machine_signals[k].name);
    for (int k = 0; k < DR_PROCESS_COUNT; k++)
        put_text(samples, dr_process_signals[k].name);
}

static void put_limits(struct dr_samples *samples)
{
    const char *limits = (const char *)&samples->limits;
    size_t size = 4 + DR_LIMIT_NUMBERS * sizeof(double);
    for (int k = 0; k < DR_LIMIT_TEXTS; k++)
        size += strlen(limits + dr_limit_texts[k].at) + 1;
    put_head(samples, DR_RECORD_LIMITS, size);
    put(samples, &(uint32_t){DR_LIMIT_NUMBERS}, 4);
    put(samples, limits, DR_LIMIT_NUMBERS * sizeof(double));
    for (int k = 0; k < DR_LIMIT_TEXTS; k++)
        put_text(samples, limits + dr_limit_texts[k].at);
}

static void put_missing(struct dr_samples *samples, const struct dr_missing *missing)
{
    put_head(samples, DR_RECORD_MISSING,
             strlen(missing->signal) + strlen(missing->why) + strlen(missing->remedy) + 3);
    put_text(samples, missing->signal);
    put_text(samples, missing->why);
    put_text(samples, missing->remedy);
}

static void put_process(struct dr_samples *samples, struct dr_kept_process *process)
{
    put_head(samples, DR_RECORD_PROCESS, 12 + strlen(process->name) + 1);
    put(samples, &process->id, 4);
    put(samples, &process->pid, 4);
    put(samples, &process->parent, 4);
    put_text(samples, process->name);
    process->new_name = false;
}

static void put_threads(struct dr_samples *samples, struct dr_kept_process *process)
{
    put_head(samples, DR_RECORD_THREADS, 8 + process->thread_names * sizeof *process->threads);
    put(samples, &process->id, 4);
    put(samples, &process->thread_names, 4);
    put(samples, process->threads, process->thread_names * sizeof *process->threads);
    process->new_threads = false;
}

static bool has_row(const struct dr_kept_process *process, uint32_t tick)
{
    return tick >= process->first_tick && tick - process->first_tick < process->ticks;
}

static void put_tick(struct dr_samples *samples, uint32_t tick)
{
    const size_t row = DR_PROCESS_COUNT * sizeof(float);
    uint32_t count = 0;
    for (uint32_t k = 0; k < samples->processes; k++)
        count += has_row(samples->process[k], tick);
    put_head(samples, DR_RECORD_TICK, 12 + sizeof samples->machine[0] + count * (4 + row));
    put(samples, &samples->tick_ns[tick], 8);
    put(samples, &count, 4);
    put(samples, samples->machine[tick], sizeof samples->machine[0]);
    for (uint32_t k = 0; k < samples->processes; k++) {
        const struct dr_kept_process *process = samples->process[k];
        if (!has_row(process, tick))
            continue;
        put(samples, &process->id, 4);
        put(samples, process->rows + (size_t)(tick - process->first_tick) * DR_PROCESS_COUNT, row);
    }
}

/* ---- processes -------------------------------------------------------------------------------- */

static void free_process(struct dr_kept_process *process)
{
    free(process->rows);
    free(process->threads);
    free(process);
}

/* Makes room for one more: drops the ended process with the fewest rows. */
static bool make_room(struct dr_samples *samples)
{
    if (samples->processes < DR_PROCESSES_MOST)
        return true;
    uint32_t least = UINT32_MAX;
    for (uint32_t k = 0; k < samples->processes; k++)
        if (!samples->process[k]->present && !samples->process[k]->started &&
            (least == UINT32_MAX || samples->process[k]->ticks < samples->process[least]->ticks))
            least = k;
    if (least == UINT32_MAX)
        return false;
    free_process(samples->process[least]);
    samples->processes--;
    memmove(samples->process + least, samples->process + least + 1,
            (samples->processes - least) * sizeof *samples->process);
    return true;
}

static struct dr_kept_process *find(struct dr_samples *samples, uint32_t id)
{
    uint32_t from = 0, to = samples->processes;
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        if (samples->process[middle]->id < id)
            from = middle + 1;
        else
            to = middle;
    }
    if (from < samples->processes && samples->process[from]->id == id)
        return samples->process[from];
    if (from < samples->processes || !make_room(samples)) /* ids are ascending */
        return NULL;
    struct dr_kept_process *made = st_calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->id = id;
    made->new_name = true;
    samples->process[samples->processes++] = made;
    return made;
}

static void note_threads(struct dr_kept_process *process, const struct dr_process *now)
{
    const size_t size = now->thread_names * sizeof *now->threads;
    if (now->thread_names == process->thread_names &&
        (!size || !memcmp(process->threads, now->threads, size)))
        return;
    if (now->thread_names > process->thread_names) {
        struct dr_threads *more = st_grow(process->threads, now->thread_names, sizeof *more);
        if (!more)
            return;
        process->threads = more;
    }
    if (size)
        memcpy(process->threads, now->threads, size);
    process->thread_names = now->thread_names;
    process->new_threads = true;
}

static void note_process(struct dr_kept_process *process, const struct dr_process *now, double seconds)
{
    process->present = process->started = true;
    process->pid = now->pid;
    if (process->parent != now->parent || strcmp(process->name, now->name)) {
        process->parent = now->parent;
        snprintf(process->name, sizeof process->name, "%s", now->name);
        process->new_name = true;
    }
    note_threads(process, now);
    if (now->table.ticks)
        dr_row_add(process->sums, now->table.values, DR_PROCESS_COUNT, seconds);
}

/* If memory for a row runs out, the process gets no more rows: rows must not have gaps. */
static void end_process_row(struct dr_samples *samples, struct dr_kept_process *process)
{
    process->started = false;
    if (process->ticks && process->first_tick + process->ticks != samples->ticks)
        return;
    if (process->ticks == process->room) {
        const uint32_t room = process->room ? 2 * process->room : 16;
        float *rows = st_grow(process->rows, room, DR_PROCESS_COUNT * sizeof *rows);
        if (!rows)
            return;
        process->rows = rows;
        process->room = room;
    }
    if (!process->ticks)
        process->first_tick = samples->ticks;
    dr_row_end(process->rows + (size_t)process->ticks++ * DR_PROCESS_COUNT, process->sums,
               DR_PROCESS_COUNT);
}

void dr_samples_tick(struct dr_samples *samples, const struct dr_tick *tick,
                     const struct dr_watched *watched)
{
    const double seconds =
        tick->now_ns > tick->before_ns ? (double)(tick->now_ns - tick->before_ns) / 1e9 : 1e-9;
    dr_row_add(samples->sums, tick->machine, DR_MACHINE_COUNT, seconds);
    for (uint32_t k = 0; k < samples->processes; k++)
        samples->process[k]->present = false;
    for (uint32_t k = 0; k < watched->processes; k++) {
        struct dr_kept_process *process = find(samples, watched->id[k]);
        if (process)
            note_process(process, &watched->process[k], seconds);
    }
    if (++samples->in_row < samples->merge)
        return;
    samples->in_row = 0;
    dr_row_end(samples->machine[samples->ticks], samples->sums, DR_MACHINE_COUNT);
    samples->tick_ns[samples->ticks] = tick->now_ns;
    for (uint32_t k = 0; k < samples->processes; k++) {
        struct dr_kept_process *process = samples->process[k];
        if (process->started)
            end_process_row(samples, process);
        if (process->new_name)
            put_process(samples, process);
    }
    put_tick(samples, samples->ticks++);
    if (samples->ticks == DR_TICKS_MOST)
        dr_rows_merge(samples);
}

void dr_samples_limits(struct dr_samples *samples, const struct dr_limits *limits)
{
    samples->limits = *limits;
    put_limits(samples);
}

void dr_samples_missing(struct dr_samples *samples, const struct dr_missing *missing)
{
    if (samples->missing_count == DR_MISSING_MOST)
        return;
    const struct dr_missing copy = {strdup(missing->signal), strdup(missing->why),
                                    strdup(missing->remedy)};
    if (!copy.signal || !copy.why || !copy.remedy) {
        free((char *)copy.signal), free((char *)copy.why), free((char *)copy.remedy);
        return;
    }
    samples->missing[samples->missing_count++] = copy;
    put_missing(samples, &copy);
}

/* ---- the file --------------------------------------------------------------------------------- */

static bool write_all(int file, const uint8_t *data, uint64_t size)
{
    while (size) {
        const ssize_t done = write(file, data, size);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        data += done;
        size -= (uint64_t)done;
    }
    return true;
}

static void put_end(struct dr_samples *samples)
{
    put_head(samples, DR_RECORD_END, sizeof samples->end);
    put(samples, &samples->end, sizeof samples->end);
}

/* Replaces the file by a new one with everything. */
static int replace(struct dr_samples *samples, struct stoker_error *err)
{
    samples->out.size = 0;
    samples->behind = false;
    put_start(samples);
    put_limits(samples);
    for (uint32_t k = 0; k < samples->missing_count; k++)
        put_missing(samples, &samples->missing[k]);
    for (uint32_t k = 0; k < samples->processes; k++) {
        put_process(samples, samples->process[k]);
        put_threads(samples, samples->process[k]);
    }
    for (uint32_t tick = 0; tick < samples->ticks; tick++)
        put_tick(samples, tick);
    put_end(samples);
    if (samples->behind)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory for %u ticks", samples->path,
                       samples->ticks);
    samples->behind = true; /* until it is written */
    const int file = open(samples->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0)
        return st_fail_errno(err, errno, "cannot write %s", samples->temporary);
    if (!write_all(file, samples->out.data, samples->out.size) ||
        rename(samples->temporary, samples->path)) {
        const int why = errno;
        close(file);
        unlink(samples->temporary);
        return st_fail_errno(err, why, "cannot write %s", samples->path);
    }
    if (samples->file >= 0)
        close(samples->file);
    samples->file = file;
    samples->size = samples->compact = samples->out.size;
    samples->behind = false;
    samples->out.size = 0;
    return STOKER_OK;
}

static int append(struct dr_samples *samples, struct stoker_error *err)
{
    const bool threads = samples->end.finished || samples->flushes++ % THREADS_EVERY == 0;
    for (uint32_t k = 0; k < samples->processes; k++)
        if (samples->process[k]->new_threads && (threads || !samples->process[k]->present))
            put_threads(samples, samples->process[k]);
    put_end(samples);
    if (samples->behind || samples->size + samples->out.size > 2 * samples->compact + SLACK)
        return replace(samples, err);
    const bool done = write_all(samples->file, samples->out.data, samples->out.size);
    samples->size += samples->out.size;
    samples->out.size = 0;
    samples->behind = !done; /* a partial record may be there: rewrite the file next time */
    return done ? STOKER_OK : st_fail_errno(err, errno, "cannot write %s", samples->path);
}

int dr_samples_flush(struct dr_samples *samples, double own_cpu_seconds, struct stoker_error *err)
{
    if (samples->ticks)
        samples->end.end_ns = samples->tick_ns[samples->ticks - 1];
    samples->end.own_cpu_seconds = own_cpu_seconds;
    return append(samples, err);
}

int dr_samples_finish(struct dr_samples *samples, uint64_t end_ns, int exit_code, double own_cpu_seconds,
                      struct stoker_error *err)
{
    samples->end = (struct dr_record_end){end_ns, own_cpu_seconds, exit_code, 1};
    return append(samples, err);
}

int dr_samples_open(struct dr_samples **out, const char *directory, uint64_t start_ns, int64_t started,
                    struct stoker_error *err)
{
    struct dr_samples *samples = st_calloc(1, sizeof *samples);
    if (!samples)
        return st_fail(err, STOKER_ENOMEM, "out of memory to record a run");
    samples->file = -1;
    samples->merge = 1;
    samples->start_ns = samples->end.end_ns = start_ns;
    samples->started = started;
    for (uint32_t k = 0; k < DR_LIMIT_NUMBERS; k++)
        memcpy((char *)&samples->limits + k * sizeof(double), &(double){NAN}, sizeof(double));
    const int room = PATH_MAX;
    int rc = STOKER_OK;
    if (snprintf(samples->path, PATH_MAX, "%s/" DR_SAMPLES_NAME, directory) >= room ||
        snprintf(samples->temporary, PATH_MAX, "%s/." DR_SAMPLES_NAME, directory) >= room)
        rc = st_fail(err, STOKER_EINVAL, "%s: the name is too long", directory);
    if (!rc)
        rc = replace(samples, err);
    if (rc) {
        dr_samples_close(samples);
        return rc;
    }
    *out = samples;
    return STOKER_OK;
}

void dr_samples_close(struct dr_samples *samples)
{
    if (!samples)
        return;
    for (uint32_t k = 0; k < samples->processes; k++)
        free_process(samples->process[k]);
    for (uint32_t k = 0; k < samples->missing_count; k++) {
        free((char *)samples->missing[k].signal);
        free((char *)samples->missing[k].why);
        free((char *)samples->missing[k].remedy);
    }
    if (samples->file >= 0)
        close(samples->file);
    st_buffer_free(&samples->out);
    free(samples);
}
