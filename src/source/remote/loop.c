/* loop.c - one thread that runs many requests concurrently
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/remote/loop.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/threads.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define NS_IN_MS 1000000ull
#define SWEEP_NS (50 * NS_IN_MS) /* how often cancelled jobs are looked for */
#define NO_TIMER UINT64_MAX
enum { EVENTS = 64 };

/* A circular list of jobs with a sentinel. */
struct queue {
    struct st_loop_job head;
};

struct st_loop {
    pid_t owner;
    st_loop_prepare *prepare;
    uint32_t most, active, idle_count;
    int epoll, wake;
    CURLM *multi;
    uint64_t timer_ns, swept_ns;
    struct queue running, waiting; /* loop thread only; waiting: until due, or for a free connection */
    CURL **idle;                  /* unused handles, up to `most` */
    pthread_mutex_t lock;
    pthread_t thread;
    /* Guarded by the lock: */
    bool started, closing;
    struct queue inbox;
};

static void queue_init(struct queue *queue) { queue->head.next = queue->head.previous = &queue->head; }

static void queue_add(struct queue *queue, struct st_loop_job *job)
{
    job->next = &queue->head;
    job->previous = queue->head.previous;
    job->previous->next = job;
    queue->head.previous = job;
}

static void queue_remove(struct st_loop_job *job)
{
    job->previous->next = job->next;
    job->next->previous = job->previous;
}

static bool queue_empty(const struct queue *queue) { return queue->head.next == &queue->head; }

/* ---- libcurl's sockets and its timer ----------------------------------------------------------- */

static int on_socket(CURL *curl, curl_socket_t fd, int what, void *context, void *own)
{
    struct st_loop *loop = context;
    struct epoll_event event = {.data.fd = fd};
    (void)curl, (void)own;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(loop->epoll, EPOLL_CTL_DEL, fd, NULL); /* it may be closed already */
        return 0;
    }
    event.events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
    if (epoll_ctl(loop->epoll, EPOLL_CTL_MOD, fd, &event) && errno == ENOENT)
        return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) ? -1 : 0;
    return 0;
}

static int on_timer(CURLM *multi, long ms, void *context)
{
    struct st_loop *loop = context;
    (void)multi;
    loop->timer_ns = ms < 0 ? NO_TIMER : st_now_ns() + (uint64_t)ms * NS_IN_MS;
    return 0;
}

/* ---- jobs -------------------------------------------------------------------------------------- */

static CURL *take_handle(struct st_loop *loop)
{
    if (loop->idle_count)
        return loop->idle[--loop->idle_count]; /* each request sets all of its options again */
    CURL *curl = curl_easy_init();
    if (!curl || loop->prepare(curl))
        return curl;
    curl_easy_cleanup(curl);
    return NULL;
}

/* Removes the job's handle from the multi handle. */
static void detach(struct st_loop *loop, struct st_loop_job *job)
{
    curl_multi_remove_handle(loop->multi, job->curl);
    queue_remove(job);
    loop->active--;
}

static void put_handle(struct st_loop *loop, CURL *curl)
{
    loop->idle[loop->idle_count++] = curl; /* connections stay with the multi handle */
}

static void wait_until(struct st_loop *loop, struct st_loop_job *job, uint64_t due_ns)
{
    job->due_ns = due_ns;
    queue_add(&loop->waiting, job);
}

static void finish_try(struct st_loop *loop, struct st_loop_job *job, CURLcode code)
{
    CURL *curl = job->curl;
    const uint64_t again = job->end(job, code);
    put_handle(loop, curl);
    if (again)
        wait_until(loop, job, again);
}

static void begin(struct st_loop *loop, struct st_loop_job *job)
{
    queue_remove(job);
    job->curl = take_handle(loop);
    const bool ready = job->curl && job->begin(job) &&
                       !curl_easy_setopt(job->curl, CURLOPT_PRIVATE, job) &&
                       !curl_multi_add_handle(loop->multi, job->curl);
    if (ready) {
        queue_add(&loop->running, job);
        loop->active++;
    } else if (job->curl) {
        finish_try(loop, job, CURLE_OUT_OF_MEMORY);
    } else {
        job->end(job, CURLE_OUT_OF_MEMORY);
    }
}

/* Starts jobs that are due; returns when the next one is. */
static uint64_t begin_due(struct st_loop *loop)
{
    uint64_t next = NO_TIMER;
    const uint64_t now = queue_empty(&loop->waiting) ? 0 : st_now_ns();
    for (struct st_loop_job *job = loop->waiting.head.next, *following; job != &loop->waiting.head;
         job = following) {
        following = job->next;
        if (loop->active >= loop->most)
            return NO_TIMER; /* until one ends */
        if (job->due_ns <= now)
            begin(loop, job);
        else if (job->due_ns < next)
            next = job->due_ns;
    }
    return next;
}

static void reap(struct st_loop *loop)
{
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(loop->multi, &left)) != NULL;) {
        struct st_loop_job *job = NULL;
        const CURLcode code = message->data.result;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&job);
        detach(loop, job);
        finish_try(loop, job, code);
    }
}

static bool is_cancelled(const struct st_loop_job *job, bool all)
{
    return all || (job->cancel && atomic_load_explicit(job->cancel, memory_order_relaxed)) ||
           (job->interrupted && atomic_load_explicit(job->interrupted, memory_order_relaxed));
}

/* Stops cancelled jobs, or all. */
static void sweep(struct st_loop *loop, bool all)
{
    struct st_loop_job *following;
    for (struct st_loop_job *job = loop->running.head.next; job != &loop->running.head;
         job = following) {
        following = job->next;
        if (!is_cancelled(job, all))
            continue;
        CURL *curl = job->curl;
        detach(loop, job);
        put_handle(loop, curl);
        job->stop(job);
    }
    for (struct st_loop_job *job = loop->waiting.head.next; job != &loop->waiting.head;
         job = following) {
        following = job->next;
        if (!is_cancelled(job, all))
            continue;
        queue_remove(job);
        job->stop(job);
    }
}

/* ---- the thread -------------------------------------------------------------------------------- */

/* Takes new jobs from the inbox; false if the loop is closing. */
static bool collect(struct st_loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    while (!queue_empty(&loop->inbox)) {
        struct st_loop_job *job = loop->inbox.head.next;
        queue_remove(job);
        wait_until(loop, job, 0);
    }
    const bool open = !loop->closing;
    pthread_mutex_unlock(&loop->lock);
    return open;
}

static int time_left(const struct st_loop *loop, uint64_t next_ns)
{
    const bool idle = queue_empty(&loop->running) && queue_empty(&loop->waiting);
    if (idle && loop->timer_ns == NO_TIMER)
        return -1;
    const uint64_t now = st_now_ns(), sweep_ns = idle ? NO_TIMER : loop->swept_ns + SWEEP_NS;
    uint64_t until = loop->timer_ns < next_ns ? loop->timer_ns : next_ns;
    until = sweep_ns < until ? sweep_ns : until;
    return until <= now ? 0 : (int)((until - now) / NS_IN_MS) + 1;
}

static void serve(struct st_loop *loop, const struct epoll_event *events, int count)
{
    int running;
    uint64_t woken;
    for (int i = 0; i < count; i++) {
        const uint32_t was = events[i].events;
        if (events[i].data.fd == loop->wake) {
            while (read(loop->wake, &woken, sizeof woken) < 0 && errno == EINTR)
                ;
            continue;
        }
        const int what = (was & EPOLLIN ? CURL_CSELECT_IN : 0) |
                         (was & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                         (was & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
        curl_multi_socket_action(loop->multi, events[i].data.fd, what, &running);
    }
    if (loop->timer_ns != NO_TIMER && st_now_ns() >= loop->timer_ns) {
        loop->timer_ns = NO_TIMER; /* libcurl sets it again in this call, if needed */
        curl_multi_socket_action(loop->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
}

static void *loop_thread(void *argument)
{
    struct st_loop *loop = argument;
    struct epoll_event events[EVENTS];
    while (collect(loop)) {
        const uint64_t next = begin_due(loop), now = st_now_ns();
        if (now - loop->swept_ns >= SWEEP_NS) {
            loop->swept_ns = now;
            sweep(loop, false);
        }
        const int count = epoll_wait(loop->epoll, events, EVENTS, time_left(loop, next));
        serve(loop, events, count > 0 ? count : 0);
        reap(loop);
    }
    sweep(loop, true);
    return NULL;
}

/* ---- opening and closing ----------------------------------------------------------------------- */

static void forget(struct st_loop *loop)
{
    for (uint32_t i = 0; i < loop->idle_count; i++)
        curl_easy_cleanup(loop->idle[i]);
    if (loop->multi)
        curl_multi_cleanup(loop->multi);
    if (loop->epoll >= 0)
        close(loop->epoll);
    if (loop->wake >= 0)
        close(loop->wake);
    pthread_mutex_destroy(&loop->lock);
    free(loop->idle);
    free(loop);
}

static bool set_up(struct st_loop *loop)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = loop->wake};
    return loop->epoll >= 0 && loop->wake >= 0 && loop->multi && loop->idle &&
           !epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->wake, &event) &&
           !curl_multi_setopt(loop->multi, CURLMOPT_SOCKETFUNCTION, on_socket) &&
           !curl_multi_setopt(loop->multi, CURLMOPT_SOCKETDATA, loop) &&
           !curl_multi_setopt(loop->multi, CURLMOPT_TIMERFUNCTION, on_timer) &&
           !curl_multi_setopt(loop->multi, CURLMOPT_TIMERDATA, loop) &&
           !curl_multi_setopt(loop->multi, CURLMOPT_MAXCONNECTS, (long)loop->most);
}

struct st_loop *st_loop_new(st_loop_prepare *prepare, uint32_t most)
{
    struct st_loop *loop = st_calloc(1, sizeof *loop);
    if (!loop)
        return NULL;
    loop->owner = getpid();
    loop->prepare = prepare;
    loop->most = most;
    loop->timer_ns = NO_TIMER;
    queue_init(&loop->running);
    queue_init(&loop->waiting);
    queue_init(&loop->inbox);
    pthread_mutex_init(&loop->lock, NULL);
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    loop->multi = curl_multi_init();
    loop->idle = st_calloc(most + 1, sizeof *loop->idle); /* one extra for a try that is ending */
    if (set_up(loop))
        return loop;
    forget(loop);
    return NULL;
}

static void wake_up(struct st_loop *loop)
{
    const uint64_t one = 1;
    while (write(loop->wake, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

bool st_loop_close(struct st_loop *loop)
{
    if (loop->owner != getpid())
        return false;
    pthread_mutex_lock(&loop->lock);
    loop->closing = true;
    pthread_mutex_unlock(&loop->lock);
    if (loop->started) {
        wake_up(loop);
        pthread_join(loop->thread, NULL);
    }
    forget(loop);
    return true;
}

struct st_loop *st_loop_of(_Atomic(struct st_loop *) *place)
{
    struct st_loop *there = atomic_load(place);
    if (there->owner == getpid())
        return there;
    struct st_loop *own = st_loop_new(there->prepare, there->most);
    if (!own || atomic_compare_exchange_strong(place, &there, own))
        return own;
    st_loop_close(own); /* another thread was faster */
    return there;
}

int st_loop_add(struct st_loop *loop, struct st_loop_job *job)
{
    int failed = 0;
    pthread_mutex_lock(&loop->lock);
    if (!loop->started) {
        failed = st_thread_start(&loop->thread, loop_thread, loop, "stoker-url");
        loop->started = !failed;
    }
    const bool first = queue_empty(&loop->inbox);
    if (!failed)
        queue_add(&loop->inbox, job);
    pthread_mutex_unlock(&loop->lock);
    if (!failed && first)
        wake_up(loop);
    return failed;
}
