/* line.c - many workers, whose results are processed in order
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/pack.h"

#include "base/threads.h"

#include <stdlib.h>

struct state {
    const struct pack_line *line;
    pthread_mutex_t lock;
    pthread_cond_t made, taken;
    uint64_t next, done; /* next to work on; next to take out */
    uint32_t started;
    bool ready[PACK_RING];
    bool stop;
};

static void *worker(void *argument)
{
    struct state *s = argument;
    pthread_mutex_lock(&s->lock);
    const uint32_t number = s->started++;
    for (;;) {
        while (!s->stop && s->next < s->line->last && s->next >= s->done + PACK_RING)
            pthread_cond_wait(&s->taken, &s->lock);
        if (s->stop || s->next >= s->line->last)
            break;
        const uint64_t ticket = s->next++;
        pthread_mutex_unlock(&s->lock);
        s->line->work(s->line->context, number, ticket);
        pthread_mutex_lock(&s->lock);
        s->ready[ticket % PACK_RING] = true;
        pthread_cond_signal(&s->made);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static int take_all(struct state *s)
{
    int rc = STOKER_OK;
    for (uint64_t ticket = s->line->first; ticket < s->line->last && !rc; ticket++) {
        pthread_mutex_lock(&s->lock);
        while (!s->ready[ticket % PACK_RING])
            pthread_cond_wait(&s->made, &s->lock);
        s->ready[ticket % PACK_RING] = false;
        pthread_mutex_unlock(&s->lock);
        rc = s->line->done(s->line->context, ticket);
        pthread_mutex_lock(&s->lock);
        s->done = ticket + 1;
        pthread_cond_broadcast(&s->taken);
        pthread_mutex_unlock(&s->lock);
    }
    return rc;
}

int pack_line_run(const struct pack_line *line, struct stoker_error *err)
{
    struct state s = {.line = line, .next = line->first, .done = line->first};
    pthread_t *threads = st_calloc(line->workers, sizeof *threads);
    uint32_t started = 0;
    int rc = STOKER_OK, why = 0;
    if (!threads)
        return st_fail(err, STOKER_ENOMEM, "out of memory for threads");
    pthread_mutex_init(&s.lock, NULL);
    pthread_cond_init(&s.made, NULL);
    pthread_cond_init(&s.taken, NULL);
    while (started < line->workers && !(why = st_thread_start(&threads[started], worker, &s, "pack")))
        started++;
    if (!started)
        rc = st_fail_errno(err, why, "cannot start a thread");
    else
        rc = take_all(&s);
    pthread_mutex_lock(&s.lock);
    s.stop = true;
    pthread_cond_broadcast(&s.taken);
    pthread_mutex_unlock(&s.lock);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_cond_destroy(&s.taken);
    pthread_cond_destroy(&s.made);
    pthread_mutex_destroy(&s.lock);
    free(threads);
    return rc;
}
