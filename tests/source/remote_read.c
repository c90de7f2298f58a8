/* remote_read.c - reads all samples of a dataset, in a shuffled order and by several threads, for
 * remote.py
 *
 *     remote_read URI [fields=..] [index_dir=..] [cache_dir=..] [cache_bytes=..] [remote_ms=..]
 * [connections=..] [passes=..] [sample_limit=..] [fork=1] [wait=1] [order=1] [stop=1]
 *
 * Prints a line of JSON for each pass: how many samples, a sum over all fields, how many could not be
 * read and why the first of them, the size of one that sample_limit refused, who read them, the first
 * sample's name, and the note. With fork=1 a
 * child reads once more, after the parent has. With wait=1 each pass begins when a line comes in. With
 * order=1 samples are read in their order. With stop=1 reading is stopped after half a second, and the
 * line says how many milliseconds it took until all was closed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/clock.h"
#include "base/threads.h"
#include "source/checksum/crc32c.h"
#include "source/reader/reader.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GETTERS = 4, DEPTH = 32 };

struct pass {
    struct stoker_dataset *data;
    struct st_reader *reader;
    uint64_t count, step;
    uint32_t *sums;
    atomic_ullong next, bad, refused;
    pthread_mutex_t lock;
    struct stoker_error first;
};

/* Far apart one after another: 7919 is a prime, and no test has as many samples. */
static uint64_t scatter(void *context, uint64_t ticket)
{
    const struct pass *pass = context;
    return ticket * pass->step % pass->count;
}

/* A sum over the sample's fields: between them the bytes that were read may be anything. */
static int sum_sample(struct pass *pass, uint64_t ticket, struct st_buffer *scratch,
                      struct stoker_error *err)
{
    const struct st_source *source = pass->data->source;
    struct st_piece pieces[ST_FIELDS_MAX];
    struct st_bytes bytes;
    uint32_t count = 0, sum = 0;
    int rc = st_reader_get(pass->reader, ticket, &bytes, err);
    if (rc) {
        if (bytes.size)
            atomic_store(&pass->refused, bytes.size);
        return rc;
    }
    source->fields(pass->data->self, &count);
    rc = source->split(pass->data->self, scatter(pass, ticket), bytes, scratch, pieces, err);
    for (uint32_t i = 0; i < count && !rc; i++) {
        sum = st_crc32c_more(sum, pieces[i].bytes.data, pieces[i].bytes.size);
        sum = st_crc32c_more(sum, &pieces[i].whole, sizeof pieces[i].whole);
        sum = st_crc32c_more(sum, &pieces[i].real, sizeof pieces[i].real);
    }
    st_reader_done(pass->reader, ticket);
    pass->sums[scatter(pass, ticket)] = sum;
    return rc;
}

static void get(void *context)
{
    struct pass *pass = context;
    struct st_buffer scratch = {0};
    uint64_t ticket;
    while ((ticket = atomic_fetch_add(&pass->next, 1)) < pass->count) {
        struct stoker_error err = {0};
        if (sum_sample(pass, ticket, &scratch, &err)) {
            pthread_mutex_lock(&pass->lock);
            if (!atomic_fetch_add(&pass->bad, 1))
                pass->first = err;
            pthread_mutex_unlock(&pass->lock);
        }
    }
    st_buffer_free(&scratch);
}

static void *get_in_thread(void *context)
{
    get(context);
    return NULL;
}

static void put_text(const char *name, const char *text)
{
    printf(", \"%s\": \"", name);
    for (; *text; text++)
        printf(*text == '"' || *text == '\\' || *text < ' ' ? "?" : "%c", *text);
    putchar('"');
}

static int fail(const struct stoker_error *err)
{
    printf("{\"open\": false");
    put_text("error", err->message);
    puts("}");
    fflush(stdout);
    return 0;
}

/* Reading that is stopped while it waits for the server. */
static int stop_reading(struct stoker_dataset *data)
{
    struct pass pass = {
        .data = data, .count = st_dataset_count(data), .step = 1, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct stoker_error err = {0};
    pthread_t getter;
    pass.sums = calloc(pass.count, sizeof *pass.sums);
    if (!pass.sums || st_reader_open(&pass.reader, data, ST_READER_AUTO, DEPTH, &err) ||
        st_reader_start(pass.reader, pass.count, scatter, &pass, &err) ||
        st_thread_start(&getter, get_in_thread, &pass, "getter"))
        return fail(&err);
    usleep(500000);
    const uint64_t began = st_now_ns();
    st_reader_cancel(pass.reader);
    pthread_join(getter, NULL);
    st_reader_close(pass.reader);
    st_dataset_drop(data);
    printf("{\"open\": true, \"count\": %llu, \"bad\": %llu, \"ms\": %llu}\n",
           (unsigned long long)pass.count, (unsigned long long)pass.bad,
           (unsigned long long)(st_now_ns() - began) / 1000000);
    free(pass.sums);
    return 0;
}

static int read_all(struct stoker_dataset *data, uint64_t step, uint64_t sample_limit)
{
    struct pass pass = {
        .data = data, .count = st_dataset_count(data), .step = step, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct stoker_error err = {0};
    const uint64_t began = st_now_ns();
    pass.sums = calloc(pass.count, sizeof *pass.sums);
    if (!pass.sums || st_reader_open(&pass.reader, data, ST_READER_AUTO, DEPTH, &err))
        return fail(&err);
    st_reader_sample_limit(pass.reader, sample_limit);
    if (st_reader_start(pass.reader, pass.count, scatter, &pass, &err))
        return fail(&err);
    st_threads_run(GETTERS, get, &pass);
    struct st_reader_stats stats;
    st_reader_stop(pass.reader);
    st_reader_stats(pass.reader, &stats);
    st_reader_close(pass.reader);
    const char *note = data->source->note ? data->source->note(data->self) : NULL;
    printf(
        "{\"open\": true, \"kind\": \"%s\", \"count\": %llu, \"sum\": %u, \"bad\": %llu, \"refused\": %llu, "
        "\"ms\": %llu",
        data->source->scheme, (unsigned long long)pass.count,
        st_crc32c(pass.sums, pass.count * sizeof *pass.sums), (unsigned long long)pass.bad,
        (unsigned long long)pass.refused, (unsigned long long)(st_now_ns() - began) / 1000000);
    char name[PATH_MAX] = "";
    if (pass.count)
        st_dataset_name(data, 0, name, sizeof name);
    put_text("error", pass.first.message);
    put_text("backend", stats.backend);
    put_text("name", name);
    put_text("note", note ? note : "");
    puts("}");
    fflush(stdout);
    free(pass.sums);
    return 0;
}

static const char *value_of(int argc, char **argv, const char *name)
{
    const size_t size = strlen(name);
    for (int i = 2; i < argc; i++)
        if (!strncmp(argv[i], name, size) && argv[i][size] == '=')
            return argv[i] + size + 1;
    return NULL;
}

static uint64_t number_of(int argc, char **argv, const char *name, uint64_t otherwise)
{
    const char *value = value_of(argc, argv, name);
    return value ? strtoull(value, NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    char line[16];
    struct stoker_dataset *data;
    struct stoker_error err = {0};
    if (argc < 2)
        return 2;
    const struct stoker_dataset_options opt = {
        .size = sizeof opt,
        .fields = value_of(argc, argv, "fields"),
        .index_dir = value_of(argc, argv, "index_dir"),
        .cache_dir = value_of(argc, argv, "cache_dir"),
        .cache_bytes = number_of(argc, argv, "cache_bytes", 0),
        .remote_ms = (uint32_t)number_of(argc, argv, "remote_ms", 0),
        .connections = (uint32_t)number_of(argc, argv, "connections", 0),
    };
    const bool waits = value_of(argc, argv, "wait") != NULL;
    const uint64_t step = value_of(argc, argv, "order") ? 1 : 7919;
    const uint64_t sample_limit = number_of(argc, argv, "sample_limit", 0);
    if (st_dataset_open(&data, argv[1], &opt, &err))
        return fail(&err);
    if (value_of(argc, argv, "stop"))
        return stop_reading(data);
    for (uint64_t pass = number_of(argc, argv, "passes", 1); pass; pass--) {
        if (waits) {
            puts("ready");
            fflush(stdout);
            if (!fgets(line, sizeof line, stdin))
                return 1;
        }
        read_all(data, step, sample_limit);
    }
    if (value_of(argc, argv, "fork")) {
        const pid_t child = fork();
        if (child == 0) {
            read_all(data, step, sample_limit);
            st_dataset_drop(data);
            _exit(0);
        }
        int status = 1;
        if (child < 0 || waitpid(child, &status, 0) < 0 || status)
            return 1;
        read_all(data, step, sample_limit);
    }
    st_dataset_drop(data);
    return 0;
}
