/* Waits that ask whether they should end. */
#include "base/clock.h"
#include "base/interrupt.h"
#include "base/threads.h"

#include "tap.h"

#include <stdatomic.h>

#define MS_NS 1000000ull
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static pthread_t asking;

struct asked {
    atomic_uint times;
    unsigned ends_at; /* the question that is answered by true */
    bool locked;      /* the lock was held when it was asked */
};

static bool answer(void *context)
{
    struct asked *asked = context;
    if (pthread_mutex_trylock(&lock))
        asked->locked = true;
    else
        pthread_mutex_unlock(&lock);
    return atomic_fetch_add(&asked->times, 1) + 1 >= asked->ends_at;
}

static void wait_for_ever(void *ended)
{
    pthread_mutex_lock(&lock);
    while (!st_interrupt_wait(&never, &lock))
        ;
    pthread_mutex_unlock(&lock);
    atomic_fetch_add((atomic_uint *)ended, 1);
}

/* Returns at once in the thread that asks, and waits for ever in the others. */
static void wait_in_others(void *ended)
{
    if (!pthread_equal(pthread_self(), asking))
        wait_for_ever(ended);
}

static void nested(void *ended) { st_threads_run(3, wait_for_ever, ended); }

int main(void)
{
    struct asked asked = {.ends_at = 3};
    atomic_uint ended = 0;
    asking = pthread_self();
    ok(!st_interrupted() && !st_was_interrupted(), "nobody asks, and nothing comes");
    st_interrupt_set(answer, &asked);
    const uint64_t began = st_now_ns();
    wait_for_ever(&ended);
    ok(st_now_ns() - began >= 50 * MS_NS && atomic_load(&asked.times) == 3 && !asked.locked,
       "a wait asks again and again, without its lock, and ends");
    ok(st_interrupted() && st_was_interrupted() && atomic_load(&asked.times) == 3,
       "which is not asked again");

    asked = (struct asked){.ends_at = 3};
    atomic_store(&ended, 0);
    st_interrupt_set(answer, &asked);
    ok(!st_was_interrupted(), "it is forgotten when it is set anew");
    st_threads_run(4, wait_for_ever, &ended);
    ok(atomic_load(&ended) == 4 && st_was_interrupted(),
       "threads that work for one that asks end with it");
    asked = (struct asked){.ends_at = 3};
    atomic_store(&ended, 0);
    st_interrupt_set(answer, &asked);
    st_threads_run(3, wait_in_others, &ended);
    ok(atomic_load(&asked.times) == 3 && atomic_load(&ended) == 2, "also while that one only waits for them");
    asked = (struct asked){.ends_at = 3};
    atomic_store(&ended, 0);
    st_interrupt_set(answer, &asked);
    st_threads_run(2, nested, &ended);
    ok(atomic_load(&ended) == 6, "and those that work for them");
    st_interrupt_set(NULL, NULL);
    return done_testing();
}
