/* reader_bench.c - how many files a second each reading backend brings
 *
 *     reader_bench DIR [depth] [consumers] [backend]      DIR: any tree of images; round 0 may be cold
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/clock.h"
#include "source/reader/reader.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

struct job {
    struct st_reader *reader;
    uint64_t count;
    atomic_ullong next, bytes;
};

static uint64_t in_order(void *context, uint64_t ticket)
{
    (void)context;
    return ticket;
}

static void *consume(void *argument)
{
    struct job *job = argument;
    uint64_t ticket;
    while ((ticket = atomic_fetch_add(&job->next, 1)) < job->count) {
        struct st_bytes bytes;
        struct stoker_error err;
        if (st_reader_get(job->reader, ticket, &bytes, &err)) {
            fprintf(stderr, "%s\n", err.message);
            exit(1);
        }
        atomic_fetch_add(&job->bytes, bytes.size);
        st_reader_done(job->reader, ticket);
    }
    return NULL;
}

static double cpu_seconds(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

static void epoch(struct job *job, uint32_t consumers, const char *label)
{
    struct stoker_error err;
    pthread_t threads[64];
    const double cpu = cpu_seconds();
    const uint64_t begin = st_now_ns();
    atomic_store(&job->next, 0);
    atomic_store(&job->bytes, 0);
    if (st_reader_start(job->reader, job->count, in_order, NULL, &err))
        exit(1);
    for (uint32_t i = 0; i < consumers; i++)
        if (pthread_create(&threads[i], NULL, consume, job))
            exit(1);
    for (uint32_t i = 0; i < consumers; i++)
        pthread_join(threads[i], NULL);
    st_reader_stop(job->reader);
    const double seconds = (double)(st_now_ns() - begin) / 1e9;
    printf("%-24s %9.0f files/s %8.2f GB/s %7.1f CPU us/file\n", label, (double)job->count / seconds,
           (double)job->bytes / seconds / 1e9, (cpu_seconds() - cpu) * 1e6 / (double)job->count);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"auto", "uring", "pool", "inline"};
    struct stoker_error err;
    struct stoker_dataset *data;
    const uint32_t depth = argc > 2 ? (uint32_t)atoi(argv[2]) : 64;
    const uint32_t consumers = argc > 3 ? (uint32_t)atoi(argv[3]) : 1;
    char uri[4096];
    snprintf(uri, sizeof uri, "flat:%s", argc > 1 ? argv[1] : ".");
    if (consumers < 1 || consumers > 64 || st_dataset_open(&data, uri, NULL, &err)) {
        fprintf(stderr, "%s\n", consumers < 1 || consumers > 64 ? "1 to 64 consumers" : err.message);
        return 1;
    }
    for (int backend = ST_READER_INLINE; backend >= ST_READER_URING; backend--) {
        if (argc > 4 && strcmp(argv[4], names[backend]))
            continue;
        struct job job = {.count = st_dataset_count(data)};
        if (st_reader_open(&job.reader, data, (enum st_reader_backend)backend, depth, &err)) {
            printf("%-24s %s\n", names[backend], err.message);
            continue;
        }
        for (int round = 0; round < 3; round++) {
            char label[64];
            snprintf(label, sizeof label, "%s, round %d", names[backend], round);
            epoch(&job, consumers, label);
        }
        st_reader_close(job.reader);
    }
    st_dataset_drop(data);
    return 0;
}
