/* samples_read.c - reads RUN/samples, in two passes: counting, then filling one block
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/record/samples.h"

#include "base/err.h"
#include "base/mem.h"
#include "doctor/record/samples_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MOST (UINT64_C(1) << 30)
enum { SIGNALS_MOST = 1024 };

struct known {
    uint32_t id, first_tick, ticks, threads;
    uint64_t row; /* index of its first row in `rows` */
};

struct reader {
    const char *path;
    struct stoker_error *err;
    const uint8_t *data;
    uint64_t size, at; /* of the file; of the current record */
    /* maps columns of the file to signals of this program; -1: none */
    int32_t machine_of[SIGNALS_MOST], process_of[SIGNALS_MOST];
    uint32_t machine_columns, process_columns;
    struct known *known; /* processes by id */
    uint32_t processes, room;
    uint64_t ticks, rows, threads, missing, texts;
    /* second pass */
    struct dr_run *run;
    uint64_t *tick_ns;
    double *machine, *process_rows;
    struct dr_threads *thread;
    struct dr_missing *absent;
    char *text;
};

/* The payload of a record; `at` is the read position. */
struct record {
    const uint8_t *data;
    uint32_t kind, size, at;
};

static int malformed(const struct reader *reader, const char *what)
{
    return st_fail(reader->err, STOKER_ECORRUPT, "%s: offset %llu: %s. Record the run again.",
                   reader->path, (unsigned long long)reader->at, what);
}

static bool take(struct record *record, void *out, uint64_t size)
{
    if (size > record->size - record->at)
        return false;
    memcpy(out, record->data + record->at, size);
    record->at += (uint32_t)size;
    return true;
}

static const char *take_text(struct record *record)
{
    const char *text = (const char *)record->data + record->at;
    const void *end = memchr(text, 0, record->size - record->at);
    if (!end)
        return NULL;
    record->at += (uint32_t)((const char *)end - text) + 1;
    return text;
}

/* False at the end; a truncated last record does not count. */
static bool next_record(struct reader *reader, uint64_t *at, struct record *out)
{
    struct dr_record_head head;
    if (reader->size - *at < sizeof head)
        return false;
    memcpy(&head, reader->data + *at, sizeof head);
    if (head.size > reader->size - *at - sizeof head)
        return false;
    reader->at = *at;
    *out = (struct record){reader->data + *at + sizeof head, head.kind, head.size, 0};
    *at += sizeof head + head.size;
    return true;
}

static struct known *find(const struct reader *reader, uint32_t id)
{
    uint32_t from = 0, to = reader->processes;
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        if (reader->known[middle].id < id)
            from = middle + 1;
        else
            to = middle;
    }
    return from < reader->processes && reader->known[from].id == id ? &reader->known[from] : NULL;
}

/* ---- first pass: validates and counts ----------------------------------------------------------- */

static int map_columns(struct reader *reader, struct record *record, int32_t *map, uint32_t columns,
                       const struct dr_signal *signals, int32_t count)
{
    for (uint32_t k = 0; k < columns; k++) {
        const char *name = take_text(record);
        if (!name)
            return malformed(reader, "a signal has no name");
        map[k] = -1;
        for (int32_t known = 0; known < count; known++)
            if (!strcmp(name, signals[known].name))
                map[k] = known;
    }
    return STOKER_OK;
}

static int read_signals(struct reader *reader, struct record *record)
{
    uint32_t counts[2];
    if (!take(record, counts, sizeof counts) || counts[0] > SIGNALS_MOST || counts[1] > SIGNALS_MOST ||
        reader->ticks)
        return malformed(reader, "the list of signals is invalid");
    reader->machine_columns = counts[0];
    reader->process_columns = counts[1];
    const int rc =
        map_columns(reader, record, reader->machine_of, counts[0], dr_machine_signals, DR_MACHINE_COUNT);
    return rc ? rc
              : map_columns(reader, record, reader->process_of, counts[1], dr_process_signals,
                            DR_PROCESS_COUNT);
}

static int count_process(struct reader *reader, struct record *record)
{
    uint32_t id;
    if (!take(record, &id, 4))
        return malformed(reader, "a process has no number");
    if (find(reader, id))
        return STOKER_OK;
    if (reader->processes && reader->known[reader->processes - 1].id > id)
        return malformed(reader, "process ids are not ascending");
    if (reader->processes == reader->room) {
        const uint32_t room = reader->room ? 2 * reader->room : 64;
        struct known *more = st_grow(reader->known, room, sizeof *more);
        if (!more)
            return st_fail(reader->err, STOKER_ENOMEM, "%s: out of memory", reader->path);
        reader->known = more;
        reader->room = room;
    }
    reader->known[reader->processes++] = (struct known){.id = id};
    return STOKER_OK;
}

static int count_threads(struct reader *reader, struct record *record)
{
    uint32_t head[2];
    struct known *process = NULL;
    if (take(record, head, sizeof head))
        process = find(reader, head[0]);
    if (!process || head[1] > (record->size - record->at) / sizeof(struct dr_threads))
        return malformed(reader, "threads of an unknown process, or too many threads");
    process->threads = head[1];
    return STOKER_OK;
}

static int count_tick(struct reader *reader, struct record *record)
{
    const uint64_t machine = reader->machine_columns * sizeof(float),
                   row = 4 + reader->process_columns * sizeof(float);
    uint32_t count;
    record->at = record->size < 8 ? record->size : 8;
    if (!take(record, &count, 4) || record->size - record->at < machine ||
        record->size - record->at - machine != count * row || reader->ticks == UINT32_MAX)
        return malformed(reader, "the length of a tick does not match its signals");
    for (uint32_t k = 0; k < count; k++) {
        uint32_t id;
        memcpy(&id, record->data + record->at + machine + k * row, 4);
        struct known *process = find(reader, id);
        if (!process)
            return malformed(reader, "a tick refers to an unknown process");
        if (!process->ticks)
            process->first_tick = (uint32_t)reader->ticks;
        else if (process->first_tick + process->ticks != reader->ticks)
            return malformed(reader, "a process is missing in a tick, or occurs twice");
        process->ticks++;
        reader->rows++;
    }
    reader->ticks++;
    return STOKER_OK;
}

static int count_missing(struct reader *reader, struct record *record)
{
    for (int k = 0; k < 3; k++)
        if (!take_text(record))
            return malformed(reader, "a text is not terminated");
    reader->missing++;
    reader->texts += record->at;
    return STOKER_OK;
}

static int count(struct reader *reader)
{
    struct record record;
    uint64_t at = sizeof DR_SAMPLES_MAGIC;
    int rc = STOKER_OK;
    while (!rc && next_record(reader, &at, &record))
        switch (record.kind) {
        case DR_RECORD_SIGNALS:
            rc = read_signals(reader, &record);
            break;
        case DR_RECORD_MISSING:
            rc = count_missing(reader, &record);
            break;
        case DR_RECORD_PROCESS:
            rc = count_process(reader, &record);
            break;
        case DR_RECORD_THREADS:
            rc = count_threads(reader, &record);
            break;
        case DR_RECORD_TICK:
            rc = count_tick(reader, &record);
            break;
        default:
            break; /* for the second pass, or from a later version */
        }
    return rc;
}

/* ---- second pass ------------------------------------------------------------------------------- */

static void fill_limits(struct reader *reader, struct record *record)
{
    uint32_t numbers = 0;
    char *limits = (char *)&reader->run->limits;
    if (!take(record, &numbers, 4))
        return;
    for (uint32_t k = 0; k < numbers; k++) {
        double value;
        if (!take(record, &value, sizeof value))
            return;
        if (k < DR_LIMIT_NUMBERS)
            memcpy(limits + k * sizeof value, &value, sizeof value);
    }
    for (int k = 0; k < DR_LIMIT_TEXTS; k++) {
        const char *text = take_text(record);
        if (!text)
            return;
        snprintf(limits + dr_limit_texts[k].at, dr_limit_texts[k].room, "%s", text);
    }
}

static void fill_missing(struct reader *reader, struct record *record)
{
    const char *copied[3];
    for (int k = 0; k < 3; k++) {
        const char *text = take_text(record);
        const size_t size = strlen(text) + 1;
        copied[k] = memcpy(reader->text, text, size);
        reader->text += size;
    }
    *reader->absent++ = (struct dr_missing){copied[0], copied[1], copied[2]};
}

static struct dr_process *process_of(const struct reader *reader, struct record *record)
{
    uint32_t id = 0;
    take(record, &id, 4);
    return &reader->run->process[find(reader, id) - reader->known];
}

static void fill_process(struct reader *reader, struct record *record)
{
    struct dr_process *process = process_of(reader, record);
    int32_t pids[2] = {0, 0};
    if (!take(record, pids, sizeof pids))
        return;
    process->pid = pids[0];
    process->parent = pids[1];
    const char *name = take_text(record);
    if (name)
        snprintf(process->name, sizeof process->name, "%s", name);
}

static void fill_threads(struct reader *reader, struct record *record)
{
    struct dr_process *process = process_of(reader, record);
    uint32_t count = 0;
    take(record, &count, 4);
    if (count != process->thread_names)
        return; /* an earlier list, which is replaced */
    struct dr_threads *threads = (struct dr_threads *)process->threads;
    take(record, threads, count * sizeof *threads);
    for (uint32_t k = 0; k < count; k++)
        threads[k].name[sizeof threads[k].name - 1] = '\0';
}

static void fill_row(double *row, uint32_t signals, const uint8_t *from, const int32_t *map,
                     uint32_t columns)
{
    for (uint32_t k = 0; k < signals; k++)
        row[k] = NAN;
    for (uint32_t k = 0; k < columns; k++) {
        float value;
        memcpy(&value, from + k * sizeof value, sizeof value);
        if (map[k] >= 0 && isfinite(value))
            row[map[k]] = value;
    }
}

static void fill_tick(struct reader *reader, struct record *record)
{
    const uint64_t machine = reader->machine_columns * sizeof(float),
                   row = 4 + reader->process_columns * sizeof(float);
    const uint64_t tick = reader->ticks++;
    uint32_t count = 0;
    take(record, &reader->tick_ns[tick], 8);
    take(record, &count, 4);
    const uint8_t *from = record->data + record->at;
    fill_row(reader->machine + tick * DR_MACHINE_COUNT, DR_MACHINE_COUNT, from, reader->machine_of,
             reader->machine_columns);
    from += machine;
    for (uint32_t k = 0; k < count; k++, from += row) {
        uint32_t id;
        memcpy(&id, from, 4);
        const struct known *process = find(reader, id);
        fill_row(reader->process_rows + (process->row + tick - process->first_tick) * DR_PROCESS_COUNT,
                 DR_PROCESS_COUNT, from + 4, reader->process_of, reader->process_columns);
    }
    if (reader->run->end_ns < reader->tick_ns[tick])
        reader->run->end_ns = reader->tick_ns[tick];
}

static void fill_end(struct reader *reader, struct record *record)
{
    struct dr_record_end end;
    if (!take(record, &end, sizeof end))
        return;
    reader->run->end_ns = end.end_ns;
    reader->run->own_cpu_seconds = end.own_cpu_seconds;
    reader->run->exit_code = end.exit_code;
    reader->run->finished = end.finished == 1;
}

static void fill(struct reader *reader)
{
    struct record record;
    uint64_t at = sizeof DR_SAMPLES_MAGIC;
    reader->ticks = 0;
    while (next_record(reader, &at, &record))
        switch (record.kind) {
        case DR_RECORD_START:
            take(&record, &reader->run->start_ns, 8);
            take(&record, &reader->run->started, 8);
            break;
        case DR_RECORD_LIMITS:
            fill_limits(reader, &record);
            break;
        case DR_RECORD_MISSING:
            fill_missing(reader, &record);
            break;
        case DR_RECORD_PROCESS:
            fill_process(reader, &record);
            break;
        case DR_RECORD_THREADS:
            fill_threads(reader, &record);
            break;
        case DR_RECORD_TICK:
            fill_tick(reader, &record);
            break;
        case DR_RECORD_END:
            fill_end(reader, &record);
            break;
        default:
            break;
        }
}

/* Allocates from the block; without a block yet, only counts the size. */
static void *part(char *block, uint64_t *used, uint64_t count, uint64_t size)
{
    void *at = block ? block + *used : NULL;
    *used = st_align(*used + count * size, 16);
    return at;
}

/* All counts are bounded by the size of the file: nothing here overflows. */
static uint64_t divide(struct reader *reader, char *block)
{
    uint64_t used = 0;
    struct dr_run *run = reader->run;
    run->process = part(block, &used, reader->processes, sizeof *run->process);
    run->tick_ns = reader->tick_ns = part(block, &used, reader->ticks, sizeof *reader->tick_ns);
    reader->machine = part(block, &used, reader->ticks * DR_MACHINE_COUNT, sizeof(double));
    reader->process_rows = part(block, &used, reader->rows * DR_PROCESS_COUNT, sizeof(double));
    reader->thread = part(block, &used, reader->threads, sizeof *reader->thread);
    run->missing = reader->absent = part(block, &used, reader->missing, sizeof *reader->absent);
    reader->text = part(block, &used, reader->texts, 1);
    return used;
}

static int allocate(struct reader *reader)
{
    struct dr_run *run = reader->run;
    for (uint32_t k = 0; k < reader->processes; k++)
        reader->threads += reader->known[k].threads;
    const uint64_t size = divide(reader, NULL);
    char *block = st_calloc(1, size ? size : 1);
    if (!block)
        return st_fail(reader->err, STOKER_ENOMEM, "%s: out of memory for %llu bytes", reader->path,
                       (unsigned long long)size);
    divide(reader, block);
    run->memory = block;
    run->processes = reader->processes;
    run->missing_count = (uint32_t)reader->missing;
    run->machine = (struct dr_table){(uint32_t)reader->ticks, DR_MACHINE_COUNT, reader->machine};
    uint64_t row = 0, thread = 0;
    for (uint32_t k = 0; k < reader->processes; k++) {
        struct known *known = &reader->known[k];
        known->row = row;
        run->process[k] = (struct dr_process){
            .rank = -1,
            .worker = -1,
            .trainer = -1,
            .first_tick = known->first_tick,
            .table = {known->ticks, DR_PROCESS_COUNT, reader->process_rows + row * DR_PROCESS_COUNT},
            .threads = reader->thread + thread,
            .thread_names = known->threads,
        };
        row += known->ticks;
        thread += known->threads;
    }
    return STOKER_OK;
}

static int load(struct reader *reader, uint8_t **out)
{
    const int file = open(reader->path, O_RDONLY | O_CLOEXEC);
    struct stat about;
    if (file < 0)
        return st_fail_errno(reader->err, errno, "cannot open %s", reader->path);
    uint8_t *data = NULL;
    int rc = STOKER_OK;
    if (fstat(file, &about) || !S_ISREG(about.st_mode) || (uint64_t)about.st_size > FILE_MOST)
        rc = st_fail(reader->err, STOKER_ECORRUPT, "%s is not a samples file", reader->path);
    else if (!(data = st_calloc((uint64_t)about.st_size + 1, 1)))
        rc = st_fail(reader->err, STOKER_ENOMEM, "%s: out of memory", reader->path);
    while (!rc && reader->size < (uint64_t)about.st_size) {
        const ssize_t got = read(file, data + reader->size, (uint64_t)about.st_size - reader->size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            rc = st_fail_errno(reader->err, errno, "cannot read %s", reader->path);
        if (got <= 0)
            break;
        reader->size += (uint64_t)got;
    }
    close(file);
    if (!rc && (reader->size < sizeof DR_SAMPLES_MAGIC ||
                memcmp(data, DR_SAMPLES_MAGIC, sizeof DR_SAMPLES_MAGIC)))
        rc = st_fail(reader->err, STOKER_ECORRUPT, "%s is not a samples file", reader->path);
    *out = data;
    return rc;
}

int dr_samples_read(struct dr_run *run, const char *directory, struct stoker_error *err)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/" DR_SAMPLES_NAME, directory) >= (int)sizeof path)
        return st_fail(err, STOKER_EINVAL, "%s: the name is too long", directory);
    struct reader *reader = st_calloc(1, sizeof *reader);
    uint8_t *data = NULL;
    if (!reader)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", path);
    reader->path = path;
    reader->err = err;
    reader->run = run;
    for (uint32_t k = 0; k < DR_LIMIT_NUMBERS; k++)
        memcpy((char *)&run->limits + k * sizeof(double), &(double){NAN}, sizeof(double));
    int rc = load(reader, &data);
    reader->data = data;
    if (!rc)
        rc = count(reader);
    if (!rc)
        rc = allocate(reader);
    if (!rc)
        fill(reader);
    free(reader->known);
    free(reader);
    free(data);
    return rc;
}
