/* RUN/samples: what is written is read again, rows are merged, and no damage does harm. */
#include "doctor/record/samples.h"
#include "doctor/record/samples_file.h"
#include "tap.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/stoker-samples-XXXXXX", path[64];

/* Values from which a mean can be told: the machine's k-th is tick + k, a process's 100 * id + tick. */
static void tick(struct dr_samples *samples, uint32_t number, uint32_t from, uint32_t to)
{
    double machine[DR_MACHINE_COUNT], row[4][DR_PROCESS_COUNT];
    struct dr_process process[4] = {0};
    uint32_t ids[4];
    static const struct dr_threads threads[] = {{"main", 1, 2.5}, {"pool", 17, 0.25}};
    for (int k = 0; k < DR_MACHINE_COUNT; k++)
        machine[k] = number + k;
    machine[DR_SHM_FREE] = NAN;
    machine[DR_PSI_IO] = number % 2 ? 7 : NAN;
    for (uint32_t id = from; id < to; id++) {
        const uint32_t at = id - from;
        for (int k = 0; k < DR_PROCESS_COUNT; k++)
            row[at][k] = 100 * id + number;
        ids[at] = id;
        process[at] = (struct dr_process){.pid = 1000 + (int)id,
                                          .parent = 1,
                                          .threads = threads,
                                          .thread_names = 2,
                                          .table = {1, DR_PROCESS_COUNT, row[at]}};
        snprintf(process[at].name, sizeof process[at].name, "worker %u", id);
    }
    const struct dr_tick now = {(number + 1) * UINT64_C(100000000), number * UINT64_C(100000000),
                                machine};
    dr_samples_tick(samples, &now, &(struct dr_watched){process, ids, to - from});
}

static bool near(double a, double b) { return fabs(a - b) < 1e-3 * (fabs(b) + 1); }

static bool whole_row(const struct dr_table *table, uint32_t row, double value)
{
    for (uint32_t k = 0; k < table->signals; k++)
        if (!near(dr_at(table, row, k), value))
            return false;
    return true;
}

static void check_round_trip(void)
{
    struct stoker_error err;
    struct dr_samples *samples = NULL;
    struct dr_limits limits = {.cpus = 7.5, .shm = 64, .file_system = "ext4", .cpu_name = "a CPU"};
    struct dr_run run = {0};
    ok(dr_samples_open(&samples, folder, 0, 12345, &err) == 0, "a file is made");
    dr_samples_limits(samples, &limits);
    dr_samples_missing(samples, &(struct dr_missing){"psi.cpu", "there is no PSI", "boot with psi=1"});
    ok(!dr_samples_read(&run, folder, &err) && !run.finished && run.machine.ticks == 0 &&
           isnan(run.limits.cpus),
       "an empty run can be read, and nothing of it is known");
    free(run.memory);
    for (uint32_t k = 0; k < 10; k++)
        tick(samples, k, 1, 1 + (k < 3 ? 1 : k < 7 ? 3 : 2));
    ok(dr_samples_flush(samples, 0.5, &err) == 0, "it is appended to");
    run = (struct dr_run){0};
    ok(!dr_samples_read(&run, folder, &err), "a live run can be read");
    ok(!run.finished && run.machine.ticks == 10 && run.processes == 3 && run.started == 12345 &&
           near(run.own_cpu_seconds, 0.5) && run.end_ns == 1000000000,
       "all of it is there");
    ok(run.limits.cpus == 7.5 && run.limits.shm == 64 && !strcmp(run.limits.file_system, "ext4") &&
           !strcmp(run.limits.cpu_name, "a CPU"),
       "limits");
    ok(run.missing_count == 1 && !strcmp(run.missing[0].signal, "psi.cpu") &&
           !strcmp(run.missing[0].remedy, "boot with psi=1"),
       "missing signals");
    ok(run.tick_ns[4] == 500000000 && near(dr_at(&run.machine, 4, DR_CPU_OURS), 4 + DR_CPU_OURS) &&
           isnan(dr_at(&run.machine, 4, DR_SHM_FREE)),
       "the machine's values; unknown stays unknown");
    const struct dr_process *second = &run.process[1], *third = &run.process[2];
    ok(second->pid == 1002 && second->first_tick == 3 && second->table.ticks == 7 &&
           whole_row(&second->table, 2, 205) && third->table.ticks == 4,
       "processes come and end");
    ok(second->thread_names == 2 && !strcmp(second->threads[1].name, "pool") &&
           second->threads[1].most == 17 && second->threads[1].cpu_seconds == 0.25,
       "threads by name");
    ok(!strcmp(third->name, "worker 3") && third->role == DR_OTHER && third->worker == -1, "names");
    free(run.memory);
    ok(!dr_samples_finish(samples, 77, 143, 0.75, &err), "the end is written");
    run = (struct dr_run){0};
    ok(!dr_samples_read(&run, folder, &err) && run.finished && run.exit_code == 143 && run.end_ns == 77,
       "the end of the run");
    free(run.memory);
    dr_samples_close(samples);
}

static void check_merging(void)
{
    struct stoker_error err;
    struct dr_samples *samples = NULL;
    struct dr_run run = {0};
    const uint32_t all = 3 * DR_TICKS_MOST;
    if (dr_samples_open(&samples, folder, 0, 1, &err))
        return;
    for (uint32_t k = 0; k < all; k++) {
        tick(samples, k, 1, k >= 5 && k < 9 ? 3 : 2);
        if (k % 1000 == 0)
            dr_samples_flush(samples, 0, &err);
    }
    dr_samples_finish(samples, all * UINT64_C(100000000), 0, 0, &err);
    dr_samples_close(samples);
    ok(!dr_samples_read(&run, folder, &err), "a long run is read");
    ok(run.machine.ticks == all / 4 && run.tick_ns[0] == 400000000 &&
           run.tick_ns[run.machine.ticks - 1] == all * UINT64_C(100000000),
       "%u ticks became %u rows of four", all, run.machine.ticks);
    bool means = true, known = true, processes = true;
    for (uint32_t k = 0; k < run.machine.ticks; k++) {
        means &= near(dr_at(&run.machine, k, DR_CPU_BUSY), 4 * k + 1.5);
        known &=
            near(dr_at(&run.machine, k, DR_PSI_IO), 7) && isnan(dr_at(&run.machine, k, DR_SHM_FREE));
        processes &= whole_row(&run.process[0].table, k, 100 + 4 * k + 1.5);
    }
    ok(means, "a row is the mean of its ticks");
    ok(known, "what was unknown in one of two is the other's; unknown in both stays so");
    ok(processes, "the same for a process");
    ok(run.processes == 2 && run.process[1].first_tick == 1 && run.process[1].table.ticks == 2 &&
           whole_row(&run.process[1].table, 0, 205.75) && whole_row(&run.process[1].table, 1, 208),
       "one that was there in ticks 5 to 8 has rows 1 and 2, with means of what there was of it");
    free(run.memory);
}

static void check_many_processes(void)
{
    struct stoker_error err;
    struct dr_samples *samples = NULL;
    struct dr_run run = {0};
    if (dr_samples_open(&samples, folder, 0, 1, &err))
        return;
    tick(samples, 0, 1, 3);
    tick(samples, 1, 1, 3);
    for (uint32_t k = 2; k < 2 * DR_PROCESSES_MOST; k++)
        tick(samples, k, 1 + k, 2 + k);
    dr_samples_finish(samples, 0, 0, 0, &err);
    dr_samples_close(samples);
    ok(!dr_samples_read(&run, folder, &err) && run.processes >= DR_PROCESSES_MOST &&
           run.process[0].table.ticks == 2,
       "many short processes do not drive out longer ones");
    free(run.memory);
}

static size_t load(char *data, size_t room)
{
    FILE *file = fopen(path, "rb");
    const size_t size = file ? fread(data, 1, room, file) : 0;
    if (file)
        fclose(file);
    return size;
}

static void store(const char *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file))
        perror(path);
}

/* Every value that a reader would look at, so that a sanitizer sees one that is not there. */
static double look(const struct dr_run *run)
{
    double sum = 0;
    for (uint32_t k = 0; k < run->processes; k++) {
        const struct dr_process *process = &run->process[k];
        for (uint32_t row = 0; row < process->table.ticks; row++)
            sum += dr_at(&process->table, row, DR_PROCESS_COUNT - 1) > 0;
        for (uint32_t at = 0; at < process->thread_names; at++)
            sum += (double)strlen(process->threads[at].name);
        sum += process->first_tick + process->table.ticks <= run->machine.ticks ? 0 : NAN;
    }
    for (uint32_t k = 0; k < run->missing_count; k++)
        sum += (double)(strlen(run->missing[k].signal) + strlen(run->missing[k].why) +
                        strlen(run->missing[k].remedy));
    for (uint32_t k = 0; k < run->machine.ticks; k++)
        sum += (double)run->tick_ns[k];
    return sum;
}

static void check_damage(void)
{
    static char whole[1 << 16], damaged[1 << 16];
    struct stoker_error err;
    struct dr_samples *samples = NULL;
    if (dr_samples_open(&samples, folder, 0, 1, &err))
        return;
    dr_samples_missing(samples, &(struct dr_missing){"psi.cpu", "there is no PSI", "boot with psi=1"});
    for (uint32_t k = 0; k < 4; k++)
        tick(samples, k, 1, 3);
    dr_samples_finish(samples, 5, 0, 0, &err);
    dr_samples_close(samples);
    const size_t size = load(whole, sizeof whole);
    bool sound = size > 100, sentences = true;
    for (size_t cut = 0; cut < size; cut += 1 + cut / 64) {
        struct dr_run run = {0};
        store(whole, cut);
        const int rc = dr_samples_read(&run, folder, &err);
        sound &= cut < 8 ? rc != 0 : rc == 0 && !run.finished;
        sentences &= !rc || strstr(err.message, path);
        if (!rc)
            sound &= !isnan(look(&run));
        free(run.memory);
    }
    ok(sound, "a file that is cut off anywhere is read up to there");
    uint32_t seed = 1;
    for (unsigned k = 0; k < share_of(3000); k++) {
        struct dr_run run = {0};
        memcpy(damaged, whole, size);
        for (int hits = 0; hits < 3; hits++) {
            seed = seed * 1664525 + 1013904223;
            damaged[(seed >> 8) % size] = seed >> 30 ? (char)(seed >> 4) : '\xff';
        }
        store(damaged, size);
        const int rc = dr_samples_read(&run, folder, &err);
        sentences &= !rc || strstr(err.message, path);
        if (!rc)
            sound &= !isnan(look(&run));
        free(run.memory);
    }
    ok(sound && sentences, "a damaged file is read soundly, or refused by a sentence that names it");
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/" DR_SAMPLES_NAME, folder);
    check_round_trip();
    check_merging();
    check_many_processes();
    check_damage();
    struct stoker_error err;
    struct dr_run run = {0};
    unlink(path);
    const int rc = dr_samples_read(&run, folder, &err);
    ok(rc == STOKER_ENOTFOUND && strstr(err.message, path), "no file: %s", err.message);
    rmdir(folder);
    return done_testing();
}
