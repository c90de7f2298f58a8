/* The command's processes: found among others, sampled, threads by name; on made-up files and on real
 * ones. */
#include "base/clock.h"
#include "base/fake_root.h"
#include "doctor/record/watched.h"
#include "tap.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

static void process(int pid, int parent, char state, long on_ms, long queue_ms)
{
    char path[96], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    snprintf(text, sizeof text,
             "%d (odd) name) %c %d 1 1 0 -1 0 5 0 7 0 3 1 0 0 20 0 1 0 900 4096 100 "
             "1 1 1 1 1 1 0 0 0 0 0 0 17 3 0 0 0\n",
             pid, state, parent);
    put(path, text);
    snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", pid, pid);
    snprintf(text, sizeof text, "%ld000000 %ld000000 12\n", on_ms, queue_ms);
    put(path, text);
    snprintf(path, sizeof path, "/proc/%d/task/%d/comm", pid, pid);
    put(path, "main\n");
    snprintf(path, sizeof path, "/proc/%d/io", pid);
    snprintf(text, sizeof text, "rchar: %ld\nsyscr: 4\nread_bytes: %ld\n", 1000 * on_ms, 10 * on_ms);
    put(path, text);
    snprintf(path, sizeof path, "/proc/%d/syscall", pid); /* in state D it waits for a lock of a file */
    snprintf(text, sizeof text, "%ld 0x3 0x%x 0x0 0x0 0x0 0x0 0x7ffd 0x7f00\n", (long)SYS_fcntl,
             state == 'D' ? (unsigned)F_SETLKW : (unsigned)F_GETFL);
    put(path, text);
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", pid);
    put(path, "00400000-7ff [rollup]\nRss: 9 kB\nPrivate_Clean:  3 kB\nPrivate_Dirty: 5 kB\n");
}

/* As /proc/PID/syscall shows them: number, six arguments, stack pointer, program counter. */
static enum dr_wait wait_of(long call, unsigned long second)
{
    char text[128];
    snprintf(text, sizeof text, "%ld 0x3 0x%lx 0x0 0x0 0x0 0x0 0x7ffd 0x7f00\n", call, second);
    return dr_wait_of(text);
}

static void check_waits(void)
{
#ifdef SYS_flock
    ok(wait_of(SYS_flock, 2) == DR_WAIT_LOCK, "flock");
#endif
#ifdef SYS_fcntl
    ok(wait_of(SYS_fcntl, F_SETLKW) == DR_WAIT_LOCK && wait_of(SYS_fcntl, F_SETFL) == DR_WAIT_NONE,
       "fcntl that waits for a lock");
#endif
#ifdef SYS_futex
    ok(wait_of(SYS_futex, 0x109) == DR_WAIT_LOCK && wait_of(SYS_futex, 0x0) == DR_WAIT_LOCK &&
           wait_of(SYS_futex, 0x189) == DR_WAIT_NONE && wait_of(SYS_futex, 0x80) == DR_WAIT_NONE,
       "futexes of several processes, not those of threads");
#endif
#ifdef SYS_recvfrom
    ok(wait_of(SYS_recvfrom, 0x4000) == DR_WAIT_SOCKET, "recv");
#endif
#ifdef SYS_clock_nanosleep
    char pause[96];
    snprintf(pause, sizeof pause, "%d 0x0 0x0 0x7ff0 0x0 0x0 0x0 0x7ffd 0x7f00\n", SYS_clock_nanosleep);
    ok(dr_wait_of(pause) == DR_WAIT_PAUSE && wait_of(SYS_clock_nanosleep, 1) == DR_WAIT_NONE,
       "usleep, and time.sleep of Python");
#endif
    int holder = 0;
    ok(dr_is_database_lock("3: POSIX  ADVISORY  WRITE 77 08:02:99 1073741825 1073741825\n4: x", &holder) &&
           holder == 77 && dr_is_database_lock("1: POSIX  ADVISORY  WRITE 5 08:02:99 120 120\n", &holder),
       "locks for writing of SQLite");
    ok(!dr_is_database_lock("1: POSIX  ADVISORY  READ 5 08:02:99 1073741826 1073742335\n", &holder) &&
           !dr_is_database_lock("1: FLOCK  ADVISORY  WRITE 5 08:02:99 0 EOF\n", &holder) &&
           !dr_is_database_lock("1: POSIX  ADVISORY  WRITE 5 08:02:99 0 EOF\n", &holder) &&
           !dr_is_database_lock("1: -> POSIX  ADVISORY  WRITE 5 08:02:99 120 120\n", &holder) &&
           !dr_is_database_lock("", &holder),
       "and others");
    ok(wait_of(SYS_read, 0x4000) == DR_WAIT_NONE && dr_wait_of("running\n") == DR_WAIT_NONE &&
           dr_wait_of("-1 0x7ffd 0x7f00\n") == DR_WAIT_NONE && dr_wait_of("") == DR_WAIT_NONE,
       "anything else");
}

static void check_made_up(void)
{
    struct stoker_error err = {0};
    struct dr_absent absent = {0};
    struct dr_tree *tree = NULL;
    process(50, 1, 'S', 0, 0);
    process(100, 10, 'S', 100, 0); /* the command, started by 10 */
    process(90, 110, 'S', 0, 0);   /* comes before its parent in /proc */
    process(110, 100, 'S', 0, 0);
    process(120, 10, 'S', 0, 0); /* an orphan that came to 10 */
    process(130, 10, 'S', 0, 0); /* that one is ignored */
    process(140, 100, 'Z', 0, 0);
    ok(!dr_tree_open(&tree, root, 100, 10, 130, &absent, &err), "a tree");
    dr_tree_sample(tree, SECOND);
    const struct dr_watched *now = dr_tree_now(tree);
    bool found[200] = {false};
    for (uint32_t k = 0; k < now->processes; k++)
        found[now->process[k].pid] = true;
    ok(now->processes == 4 && found[100] && found[110] && found[90] && found[120],
       "children, their children, orphans; no strangers, no dead (%u)", now->processes);
    ok(!strcmp(now->process[0].name, "odd) name"), "a name with a bracket in it");
    process(100, 10, 'D', 600, 250);
    dr_tree_sample(tree, 2 * SECOND);
    const struct dr_process *command = &now->process[0];
    const struct dr_table *row = &command->table;
    ok(command->pid == 100 && fabs(dr_at(row, 0, DR_P_ON_CPU) - 0.5) < 1e-6 &&
           fabs(dr_at(row, 0, DR_P_RUN_QUEUE) - 0.25) < 1e-6 && dr_at(row, 0, DR_P_MAIN_DISK) == 1,
       "half of a second on a CPU, a quarter waiting for one, in state D");
    ok(dr_at(row, 0, DR_P_MAIN_LOCK) == 1 && dr_at(row, 0, DR_P_MAIN_SOCKET) == 0 &&
           dr_at(&now->process[1].table, 0, DR_P_MAIN_LOCK) == 0,
       "one waits for a lock, another does not");
    ok(dr_at(row, 0, DR_P_READ_ASKED) == 500000 && dr_at(row, 0, DR_P_READ_STORAGE) == 5000 &&
           dr_at(row, 0, DR_P_RSS) == 100.0 * (double)sysconf(_SC_PAGESIZE),
       "reads and memory");
    ok(command->thread_names == 1 && !strcmp(command->threads[0].name, "main") &&
           fabs(command->threads[0].cpu_seconds - 0.6) < 1e-6,
       "CPU seconds by thread name, from the beginning");
    double private[200];
    for (uint32_t k = 0; k < now->processes; k++)
        private[now->process[k].pid] = dr_at(&now->process[k].table, 0, DR_P_PRIVATE);
    ok(private[90] == 8 * 1024 && isnan(private[110]) && isnan(private[100]),
       "private memory of a process without children");
#ifdef SYS_clock_nanosleep
    char pause[96];
    snprintf(pause, sizeof pause, "%d 0x0 0x0 0x7ff0 0x0 0x0 0x0 0x7ffd 0x7f00\n", SYS_clock_nanosleep);
    put("/proc/90/syscall", pause);
    put("/proc/locks", "1: POSIX  ADVISORY  WRITE 110 08:02:99 1073741825 1073741825\n"
                       "2: POSIX  ADVISORY  WRITE 50 08:02:98 0 EOF\n");
    dr_tree_sample(tree, 2 * SECOND + SECOND / 2);
    double waits[200];
    for (uint32_t k = 0; k < now->processes; k++)
        waits[now->process[k].pid] = dr_at(&now->process[k].table, 0, DR_P_MAIN_LOCK);
    ok(waits[90] == 1 && waits[110] == 0, "a pause while another process of the run writes to a database");
    put("/proc/locks", "1: POSIX  ADVISORY  WRITE 90 08:02:99 1073741825 1073741825\n");
    dr_tree_sample(tree, 2 * SECOND + 3 * SECOND / 4);
    for (uint32_t k = 0; k < now->processes; k++)
        waits[now->process[k].pid] = dr_at(&now->process[k].table, 0, DR_P_MAIN_LOCK);
    ok(waits[90] == 0, "and one of the process that writes");
#endif
    process(110, 100, 'Z', 0, 0);
    dr_tree_sample(tree, 3 * SECOND);
    ok(now->processes == 3 && now->id[0] < now->id[1] && now->id[1] < now->id[2],
       "one that ended is gone");
    dr_tree_close(tree);
    dr_absent_free(&absent);
}

/* A process that has had `faults` page faults and has `kib` of private memory. */
static void worker(int pid, int parent, int faults, int kib)
{
    char path[96], text[512];
    process(pid, parent, 'S', 0, 0);
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    snprintf(text, sizeof text,
             "%d (worker) S %d 1 1 0 -1 0 %d 0 7 0 3 1 0 0 20 0 1 0 900 4096 100 "
             "1 1 1 1 1 1 0 0 0 0 0 0 17 3 0 0 0\n",
             pid, parent, faults);
    put(path, text);
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", pid);
    snprintf(text, sizeof text, "Private_Clean: 0 kB\nPrivate_Dirty: %d kB\n", kib);
    put(path, text);
}

/* A run of 14 seconds, ten ticks per second. */
static void check_growth(void)
{
    struct stoker_error err = {0};
    struct dr_absent absent = {0};
    struct dr_tree *tree = NULL;
    double first = NAN, last = NAN, other = NAN;
    int grows = 0, stays = 0, changed = 0;
    process(300, 10, 'S', 0, 0);
    worker(310, 300, 0, 1000);
    worker(320, 300, 0, 1000);
    ok(!dr_tree_open(&tree, root, 300, 10, 0, &absent, &err), "a run with two workers");
    for (int tick = 0; tick < 140; tick++) {
        worker(310, 300, 300 * tick, 1000 + 1200 * tick);
        worker(320, 300, tick, 1000 + 1200 * tick); /* too few faults for this growth: it is not counted again */
        dr_tree_sample(tree, SECOND + (uint64_t)tick * SECOND / 10);
        const struct dr_watched *now = dr_tree_now(tree);
        for (uint32_t k = 0; k < now->processes; k++) {
            const double private = dr_at(&now->process[k].table, 0, DR_P_PRIVATE);
            if (isnan(private))
                continue;
            if (now->process[k].pid == 310) {
                first = isnan(first) ? private : first;
                last = private;
                grows++;
            } else if (now->process[k].pid == 320) {
                changed += stays++ && private != other;
                other = private;
            }
        }
    }
    ok(grows >= 4 && grows <= 8 && last > first + 30e6, "the private memory of a worker is counted %d times in 14 s",
       grows);
    ok(stays >= 5 && !changed, "without page faults it is known to be the same (%d)", stays);
    dr_tree_close(tree);
    dr_absent_free(&absent);
}

static void *spin(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "spinner");
    for (volatile unsigned k = 0;; k++)
        ;
    return NULL;
}

static void check_real(void)
{
    struct stoker_error err = {0};
    struct dr_absent absent = {0};
    struct dr_tree *tree = NULL;
    const pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, spin, NULL);
        for (;;)
            pause();
    }
    if (dr_tree_open(&tree, "", child, getpid(), 0, &absent, &err))
        return;
    bool named = false, ran = false;
    for (int k = 0; k < 1000 && !(named && ran); k++) {
        usleep(50000);
        dr_tree_sample(tree, st_now_ns());
        const struct dr_watched *now = dr_tree_now(tree);
        for (uint32_t at = 0; now->processes == 1 && at < now->process[0].thread_names; at++)
            named |= !strcmp(now->process[0].threads[at].name, "spinner") &&
                     now->process[0].threads[at].cpu_seconds > 0;
        ran |= now->processes == 1 && dr_at(&now->process[0].table, 0, DR_P_ON_CPU) > 0.01 &&
               dr_at(&now->process[0].table, 0, DR_P_THREADS) >= 2; /* a sanitizer has one of its own */
    }
    ok(named && ran, "a thread that spins is seen by its name");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    dr_tree_sample(tree, st_now_ns());
    ok(dr_tree_now(tree)->processes == 0, "and its end");
    dr_tree_close(tree);
    dr_absent_free(&absent);
}

int main(void)
{
    if (!mkdtemp(root))
        return 1;
    check_waits();
    check_made_up();
    check_growth();
    if (emulated())
        skip("a thread that spins is seen by its name", "the emulator's own threads are seen");
    else
        check_real();
    return done_testing() | remove_root();
}
