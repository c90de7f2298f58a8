/* Probes: what they read of files of /proc and /sys, what is missing and why, and this machine's own. */
#include "base/fake_root.h"
#include "cli/cli.h"
#include "doctor/probe/mounts.h"
#include "doctor/probe/probes.h"
#include "tap.h"

#include <math.h>
#include <sched.h>
#include <unistd.h>

static struct dr_limits limits;
static struct dr_absent absent;
static double machine[DR_MACHINE_COUNT];
static const struct dr_watched nobody;
static uint64_t now_ns;

static void *begin(const struct dr_probe *probe)
{
    void *state = calloc(1, probe->state_size);
    dr_absent_free(&absent);
    memset(&limits, 0, sizeof limits);
    now_ns = 1000000000;
    if (!probe->open(state, root, &limits, &absent)) {
        probe->close(state);
        free(state);
        return NULL;
    }
    return state;
}

/* One tick, a second after the one before. */
static void tick(const struct dr_probe *probe, void *state, const struct dr_watched *watched)
{
    struct dr_tick at = {now_ns + 1000000000, now_ns, machine};
    for (int k = 0; k < DR_MACHINE_COUNT; k++)
        machine[k] = NAN;
    probe->sample(state, &at, watched);
    now_ns += 1000000000;
}

static void finish(const struct dr_probe *probe, void *state)
{
    probe->close(state);
    free(state);
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-6 * fabs(b) + 1e-9; }

static bool is_missing(const char *signal)
{
    for (uint32_t k = 0; k < absent.count; k++)
        if (!strcmp(absent.missing[k].signal, signal))
            return absent.missing[k].why[0] && absent.missing[k].remedy[0];
    return false;
}

static void check_nothing(void)
{
    ok(begin(&dr_probe_psi) == NULL && is_missing("psi.cpu") && is_missing("psi.io") &&
           is_missing("psi.memory"),
       "no PSI: three signals are missing, with reason and remedy");
    ok(begin(&dr_probe_cgroup) == NULL && is_missing("cpu.throttled"), "no cgroup");
    ok(begin(&dr_probe_net) == NULL && is_missing("net.received"), "no network");
    ok(begin(&dr_probe_shm) == NULL && is_missing("shm.free"), "no /dev/shm");
    ok(begin(&dr_probe_disk) == NULL && is_missing("disk.await"), "no disks");
    ok(begin(&dr_probe_nfs) == NULL && is_missing("nfs.rtt"), "no mountstats");
}

static void check_cpu(void)
{
    double row[DR_PROCESS_COUNT] = {[DR_P_ON_CPU] = 1.5, [DR_P_SYSTEM] = 0.25};
    const struct dr_process process = {.pid = getpid(), .table = {1, DR_PROCESS_COUNT, row}};
    const struct dr_watched one = {&process, &(uint32_t){1}, 1};
    const long hertz = sysconf(_SC_CLK_TCK);
    char text[128];
    put("/proc/cpuinfo", "processor : 0\nmodel name\t: Fast One\n");
    put("/sys/devices/system/cpu/online", "0-5,8,10-11\n");
    put("/sys/devices/system/node/node0/cpulist", "0-5\n");
    put("/sys/devices/system/node/node1/cpulist", "8,10-11\n");
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/a/cpu.max", "50000 100000\n");
    put("/proc/stat", "cpu 10 0 0 1000 50 0 0 0 0 0\ncpu0 1 1 1 1\n");
    void *state = begin(&dr_probe_cpu);
    ok(limits.cpus_machine == 9 && limits.nodes == 2 && !strcmp(limits.cpu_name, "Fast One"),
       "CPUs, nodes and the name of the CPU");
    ok(limits.cpus_quota == 0.5 && limits.cpus == 0.5, "half a CPU, by the group above");
    tick(&dr_probe_cpu, state, &one);
    ok(isnan(machine[DR_CPU_BUSY]) && near(machine[DR_CPU_OURS], 1.5) &&
           near(machine[DR_CPU_SYSTEM], 0.25),
       "the first tick knows no rate; the run's own come from its processes");
    snprintf(text, sizeof text, "cpu %ld 0 0 9000 70 0 0 %ld 0 0\n", 10 + 2 * hertz, hertz);
    put("/proc/stat", text);
    tick(&dr_probe_cpu, state, &nobody);
    ok(near(machine[DR_CPU_BUSY], 3) && near(machine[DR_CPU_STOLEN], 1) && isnan(machine[DR_CPU_OURS]),
       "3 CPUs busy, of which one is stolen; idle and iowait are not work");
    put("/proc/stat", "cpu 10 0 0 9000 70\n");
    tick(&dr_probe_cpu, state, &nobody);
    ok(isnan(machine[DR_CPU_STOLEN]), "a kernel that does not say what is stolen");
    finish(&dr_probe_cpu, state);
}

/* What goes on on CPUs that the run may not use is not its affair. */
static void check_affinity(void)
{
    double row[DR_PROCESS_COUNT] = {[DR_P_ON_CPU] = 0.5, [DR_P_SYSTEM] = 0};
    const struct dr_process process = {.pid = getpid(), .table = {1, DR_PROCESS_COUNT, row}};
    const struct dr_watched one = {&process, &(uint32_t){1}, 1};
    const long hertz = sysconf(_SC_CLK_TCK);
    cpu_set_t before, single;
    int cpu = 0;
    if (sched_getaffinity(0, sizeof before, &before)) {
        skip("bound to one CPU", "the affinity of this process is not known");
        return;
    }
    while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &before))
        cpu++;
    CPU_ZERO(&single);
    CPU_SET(cpu, &single);
    if (sched_setaffinity(0, sizeof single, &single)) {
        skip("bound to one CPU", "the affinity of this process cannot be changed");
        return;
    }
    char text[256];
    put("/sys/devices/system/cpu/online", "0-1023\n");
    snprintf(text, sizeof text, "cpu 100 0 0 1000\ncpu%d 10 0 0 500\ncpu%d 90 0 0 500\nintr 1\n", cpu, cpu + 1);
    put("/proc/stat", text);
    void *state = begin(&dr_probe_cpu);
    tick(&dr_probe_cpu, state, &one);
    ok(limits.cpus_affinity == 1 && isnan(machine[DR_CPU_ALLOWED]), "bound to one CPU");
    snprintf(text, sizeof text, "cpu %ld 0 0 1000\ncpu%d %ld 0 0 500\ncpu%d %ld 0 0 500\nintr 1\n",
             100 + 10 * hertz, cpu, 10 + hertz, cpu + 1, 90 + 9 * hertz);
    put("/proc/stat", text);
    tick(&dr_probe_cpu, state, &one);
    ok(near(machine[DR_CPU_BUSY], 10) && near(machine[DR_CPU_ALLOWED], 1),
       "10 CPUs of the machine are busy, of those that the run may use one");
    finish(&dr_probe_cpu, state);
    sched_setaffinity(0, sizeof before, &before);
}

static void check_cgroup(void)
{
    put("/sys/fs/cgroup/a/cpu.stat",
        "usage_usec 5\nnr_periods 100\nnr_throttled 10\nthrottled_usec 1000000\n");
    void *state = begin(&dr_probe_cgroup);
    tick(&dr_probe_cgroup, state, &nobody);
    put("/sys/fs/cgroup/a/cpu.stat",
        "usage_usec 9\nnr_periods 110\nnr_throttled 12\nthrottled_usec 1150000\n");
    tick(&dr_probe_cgroup, state, &nobody);
    ok(near(machine[DR_CPU_THROTTLED], 0.15), "v2: throttled 15 %% of the time (%g)",
       machine[DR_CPU_THROTTLED]);
    put("/sys/fs/cgroup/a/cpu.stat",
        "usage_usec 9\nnr_periods 120\nnr_throttled 15\nthrottled_usec 8150000\n");
    tick(&dr_probe_cgroup, state, &nobody);
    ok(near(machine[DR_CPU_THROTTLED], 0.3), "7 s in one second are of many CPUs: 3 of 10 periods (%g)",
       machine[DR_CPU_THROTTLED]);
    finish(&dr_probe_cgroup, state);
    put("/proc/self/cgroup", "4:cpu:/box\n");
    put("/sys/fs/cgroup/cpu/box/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n");
    state = begin(&dr_probe_cgroup);
    tick(&dr_probe_cgroup, state, &nobody);
    put("/sys/fs/cgroup/cpu/box/cpu.stat", "nr_periods 10\nnr_throttled 10\nthrottled_time 500000000\n");
    tick(&dr_probe_cgroup, state, &nobody);
    ok(near(machine[DR_CPU_THROTTLED], 0.5), "v1: half of the time");
    finish(&dr_probe_cgroup, state);
}

static void check_psi(void)
{
    static const char *const kinds[] = {"/proc/pressure/cpu", "/proc/pressure/io",
                                        "/proc/pressure/memory"};
    for (int k = 0; k < 3; k++)
        put(kinds[k],
            "some avg10=99.00 avg60=0.00 avg300=0.00 total=1000000\nfull avg10=0.00 total=7\n");
    void *state = begin(&dr_probe_psi);
    tick(&dr_probe_psi, state, &nobody);
    put(kinds[1], "some avg10=99.00 avg60=0.00 avg300=0.00 total=1250000\n");
    put(kinds[2], "some avg10=99.00 avg60=0.00 avg300=0.00 total=4000000\n");
    tick(&dr_probe_psi, state, &nobody);
    ok(machine[DR_PSI_CPU] == 0 && near(machine[DR_PSI_IO], 0.25) && machine[DR_PSI_MEMORY] == 1,
       "pressure: by the change of its total, at most 1");
    finish(&dr_probe_psi, state);
}

static void check_memory(void)
{
    put("/proc/meminfo", "MemTotal: 8000 kB\nMemFree: 1 kB\nMemAvailable: 4000 kB\nCached: 2000 kB\n");
    put("/proc/vmstat", "pgpgin 1\nworkingset_refault_anon 3\nworkingset_refault_file 100\n");
    put("/proc/self/cgroup", "0::/a/b\n");
    void *state = begin(&dr_probe_memory);
    tick(&dr_probe_memory, state, &nobody);
    put("/proc/vmstat", "pgpgin 1\nworkingset_refault_anon 3\nworkingset_refault_file 150\n");
    tick(&dr_probe_memory, state, &nobody);
    ok(limits.memory == 8000 * 1024 && machine[DR_MEMORY_AVAILABLE] == 4000 * 1024 &&
           machine[DR_MEMORY_CACHE] == 2000 * 1024 && near(machine[DR_REFAULTS], 50),
       "the machine's memory");
    finish(&dr_probe_memory, state);
    put("/sys/fs/cgroup/a/memory.max", "1048576\n");
    put("/sys/fs/cgroup/a/memory.current", "1000000\n");
    put("/sys/fs/cgroup/a/memory.stat",
        "anon 1\nfile 300000\ninactive_file 200000\nactive_file 100000\nworkingset_refault_file 10\n");
    state = begin(&dr_probe_memory);
    tick(&dr_probe_memory, state, &nobody);
    ok(limits.memory == 1048576 && limits.memory_machine == 8000 * 1024 &&
           machine[DR_MEMORY_CACHE] == 300000 &&
           machine[DR_MEMORY_AVAILABLE] == 1048576 - 1000000 + 300000,
       "a cgroup's limit: its page cache can be had again");
    finish(&dr_probe_memory, state);
}

static void check_net_and_shm(void)
{
    put("/proc/net/dev",
        "Inter-| Receive\n face |bytes packets\n    lo: 500 1 0\n  eth0: 1000 2 0\n  eth1:2000 1\n");
    void *state = begin(&dr_probe_net);
    tick(&dr_probe_net, state, &nobody);
    put("/proc/net/dev",
        "Inter-| Receive\n face |bytes packets\n    lo: 700 1 0\n  eth0: 1400 2 0\n  eth1:2001 1\n");
    tick(&dr_probe_net, state, &nobody);
    ok(near(machine[DR_NET_RECEIVED], 401) && near(machine[DR_NET_LOOPBACK], 200),
       "received, and on loopback");
    finish(&dr_probe_net, state);
    put("/dev/shm/x", "");
    state = begin(&dr_probe_shm);
    tick(&dr_probe_shm, state, &nobody);
    ok(limits.shm > 0 && machine[DR_SHM_FREE] <= limits.shm && machine[DR_SHM_USED] >= 0, "/dev/shm");
    finish(&dr_probe_shm, state);
}

static void link_to(const char *target, const char *path)
{
    char name[512];
    put(path, "");
    snprintf(name, sizeof name, "%s%s", root, path);
    unlink(name);
    if (symlink(target, name))
        perror(name);
}

/* As Linux writes it, shortened: two exports, one of them mounted twice; the server's own file system; a disk. */
static void put_mountstats(unsigned reads, unsigned kib, unsigned round_trips, unsigned total)
{
    char text[4096];
    static const char *const nfs =
        "device %s mounted on %s with fstype nfs4 statvers=1.1\n"
        "\topts:\trw,vers=4.2,rsize=1048576,wsize=1048576,namlen=255,hard,proto=tcp,timeo=600\n"
        "\tage:\t8112\n"
        "\tevents:\t5 180 0 0 3 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
        "\tbytes:\t4194304 0 0 0 4194304 0 1024 0\n"
        "\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n"
        "\txprt:\ttcp 0 0 2 0 6 221 221 0 240 0 3 19 2\n"
        "\tper-op statistics\n"
        "\t        NULL: 1 1 0 44 24 5 0 6 0\n"
        "\t        READ: %u %u 0 21000 %u 40 %u %u 0\n"
        "\t       WRITE: 90 90 0 9 9 9 90000 90000 0\n"
        "\t     READDIR: 90 90 0 9 9 9 90000 90000 0\n"
        "\t   READ_PLUS: 0 0 0 0 0 0 0 0 0\n\n";
    int used = snprintf(text, sizeof text, "device /dev/vda1 mounted on / with fstype ext4\n");
    used += snprintf(text + used, sizeof text - (size_t)used, "device nfsd mounted on /proc/fs/nfsd with fstype nfsd\n");
    for (int k = 0; k < 2; k++)
        used += snprintf(text + used, sizeof text - (size_t)used, nfs, "server:/export", k ? "/again" : "/data",
                         reads, reads, kib * 1024, round_trips, total);
    snprintf(text + used, sizeof text - (size_t)used, nfs, "other:/home", "/home", 7U, 7U, 7U, 7U, 7U);
    put("/proc/self/mountstats", text);
}

static void check_nfs(void)
{
    put("/proc/self/mountstats", "device /dev/vda1 mounted on / with fstype ext4\n"
                                 "device proc mounted on /proc with fstype proc\n");
    void *state = begin(&dr_probe_nfs);
    tick(&dr_probe_nfs, state, &nobody);
    ok(isnan(machine[DR_NFS_READS]) && !absent.count, "without an NFS mount there is nothing to see, nor to miss");
    finish(&dr_probe_nfs, state);
    put_mountstats(100, 1000, 500, 800);
    state = begin(&dr_probe_nfs);
    tick(&dr_probe_nfs, state, &nobody);
    ok(isnan(machine[DR_NFS_READS]), "the first tick knows no rate");
    put_mountstats(150, 2000, 1100, 1800);
    tick(&dr_probe_nfs, state, &nobody);
    ok(near(machine[DR_NFS_READS], 50) && near(machine[DR_NFS_READ], 1000 * 1024) &&
           near(machine[DR_NFS_RTT], 0.012) && near(machine[DR_NFS_TIME], 0.02),
       "50 reads per second of 12 ms each, 20 ms with the wait to be sent (%g, %g)", machine[DR_NFS_READS],
       machine[DR_NFS_RTT]);
    tick(&dr_probe_nfs, state, &nobody);
    ok(machine[DR_NFS_READS] == 0 && isnan(machine[DR_NFS_RTT]), "no request has no round trip");
    put("/proc/self/mountstats", "device a:/b mounted on /c with fstype nfs statvers=1.1\n\tREAD: 3 3 0\n\tREAD: x");
    tick(&dr_probe_nfs, state, &nobody);
    ok(isnan(machine[DR_NFS_READS]), "a cut file: the counter fell, which is no rate");
    finish(&dr_probe_nfs, state);
}

static void check_disk(void)
{
    struct stat about;
    struct dr_mount mount;
    char text[512], data[64];
    snprintf(data, sizeof data, "%s/data", root);
    put("/data", "x");
    stat(data, &about);
    const unsigned major_number = (unsigned)(about.st_dev >> 8 & 0xfff),
                   minor_number = (unsigned)((about.st_dev & 0xff) | (about.st_dev >> 12 & 0xfff00));
    snprintf(text, sizeof text,
             "22 1 %u:%u / / rw - xfs /dev/sdb1 rw\n23 1 0:99 / /nfs rw - nfs4 server:/x rw\n",
             major_number, minor_number);
    put("/proc/self/mountinfo", text);
    snprintf(text, sizeof text, "/sys/dev/block/%u:%u", major_number, minor_number);
    link_to("../../devices/pci/block/sdb/sdb1", text);
    ok(dr_mount_of(root, 0, 99, &mount) && !mount.has_disk && dr_mount_on_network(&mount) &&
           !strcmp(mount.source, "server:/x"),
       "NFS is no disk of this machine");
    link_to(data, "/proc/77/fd/5");
    link_to(data, "/proc/77/fd/1");
    const struct dr_process process = {.pid = 77};
    const struct dr_watched one = {&process, &(uint32_t){1}, 1};
    snprintf(text, sizeof text,
             "  8 0 sda 9 9 9 9 9 9 9 9 0 9 9\n %u %u sdb1 100 0 1000 50 0 0 0 0 0 100 0\n",
             major_number, minor_number);
    put("/proc/diskstats", text);
    void *state = begin(&dr_probe_disk);
    tick(&dr_probe_disk, state, &one);
    ok(!strcmp(limits.disk_name, "sdb1") && !strcmp(limits.file_system, "xfs"),
       "the disk of an open file: %s on %s", limits.file_system, limits.disk_name);
    snprintf(text, sizeof text,
             "  8 0 sda 99 9 9999 9 9 9 9 9 0 9 9\n %u %u sdb1 110 0 3000 100 0 0 0 0 0 600 0\n",
             major_number, minor_number);
    put("/proc/diskstats", text);
    tick(&dr_probe_disk, state, &one);
    ok(near(machine[DR_DISK_READ], 2000 * 512) && near(machine[DR_DISK_READS], 10) &&
           near(machine[DR_DISK_AWAIT], 0.005) && near(machine[DR_DISK_BUSY], 0.5),
       "its numbers, not those of others");
    tick(&dr_probe_disk, state, &one);
    ok(machine[DR_DISK_READS] == 0 && isnan(machine[DR_DISK_AWAIT]), "no request has no latency");
    finish(&dr_probe_disk, state);
}

/* The kernel returns such a file page by page. */
static void check_long_file(void)
{
    const size_t room = 1 << 20;
    char *text = malloc(room);
    int file = dr_file_open("", "/proc/self/maps");
    ok(text && dr_file_whole(file, text, room) && strstr(text, "[stack]"), "a file of several pages is read to its end");
    dr_file_close(&file);
    free(text);
}

static void check_this_machine(void)
{
    root[0] = '\0';
    for (int k = 0; dr_probes[k]; k++) {
        void *state = begin(dr_probes[k]);
        if (!state) {
            ok(absent.count > 0, "%s: not here, and it says why: %s", dr_probes[k]->name,
               absent.count ? absent.missing[0].why : "");
            continue;
        }
        tick(dr_probes[k], state, &nobody);
        tick(dr_probes[k], state, &nobody);
        bool sound = true;
        for (int at = 0; at < DR_MACHINE_COUNT; at++)
            sound &= isnan(machine[at]) || (isfinite(machine[at]) && machine[at] >= 0);
        ok(sound, "%s of this machine", dr_probes[k]->name);
        finish(dr_probes[k], state);
    }
}

static void check_numbers(void)
{
    double first = 0, second = 0, third = 0;
    const char *text = dr_text_next(" 18446744073709551615 -17\t0x", &first);
    text = dr_text_next(dr_text_next(text, &second), &third);
    ok(first == 18446744073709551615.0 && second == -17 && third == 0 && text && !strcmp(text, "x"),
       "whole numbers, one after the other");
    ok(!dr_text_next(" -", &first) && !dr_text_next("", &first) && !dr_text_next("\n1", &first) &&
           !dr_text_next(NULL, &first),
       "no number in this line");
}

/* The first line of /proc/stat, and from which share of the CPUs on others are mentioned. */
static void test_others(void)
{
    char text[128];
    double stolen = 0;
    const double hertz = (double)sysconf(_SC_CLK_TCK);
    ok(busy_cpu_seconds("cpu  10 2 3 400 50 1 2 6 5 5\ncpu0 9", &stolen) * hertz == 24 &&
           stolen * hertz == 6,
       "work is all but idle and iowait, with what the host withholds");
    ok(busy_cpu_seconds("cpu  10 2 3 400\n", &stolen) * hertz == 15 && isnan(stolen),
       "old kernels count less");
    ok(isnan(busy_cpu_seconds("intr 1 2 3", NULL)) && isnan(busy_cpu_seconds("cpu  10 2\n", NULL)),
       "any other text says nothing");
    const bool allowed[] = {false, true, false, true};
    const char *const each = "cpu  9 9 9 9\ncpu0 1 1 1 100\ncpu1 10 2 3 400\ncpu2 7 7 7 7\ncpu3 20 0 0 9\nintr 1\n";
    ok(allowed_cpu_seconds(each, allowed, 4, 2) * hertz == 35, "the CPUs that may be used, by their lines");
    ok(isnan(allowed_cpu_seconds(each, allowed, 4, 3)) && isnan(allowed_cpu_seconds(each, allowed, 3, 2)) &&
           isnan(allowed_cpu_seconds("cpu  1 1 1 1\n", allowed, 4, 2)) &&
           isnan(allowed_cpu_seconds("cpu  1 1 1 1\ncpu1 1 1 1 1\ncpu3 2", allowed, 4, 2)),
       "not known unless all of them are there");
    ok(others_text(text, sizeof text, &(struct others){1.5, 4, 4}) && strstr(text, "1.5 of the 4 CPUs"), "%s",
       text);
    ok(!others_text(text, sizeof text, &(struct others){0.9, 4, 4}) &&
           !others_text(text, sizeof text, &(struct others){NAN, 4, 4}),
       "a few percent, and what is unknown, are not mentioned");
    ok(!others_text(text, sizeof text, &(struct others){3, 16, 2}) &&
           others_text(text, sizeof text, &(struct others){15, 16, 2}),
       "a quota of 2 CPUs leaves 14 to others");
    const struct others others = cpus_of_others();
    ok((isnan(others.used) || others.used >= 0) && others.allowed >= 1 && others.paid <= others.allowed,
       "others of this machine: %.2f", others.used);
}

int main(void)
{
    test_others();
    if (!mkdtemp(root))
        return 1;
    char made[sizeof root];
    memcpy(made, root, sizeof made);
    check_nothing();
    check_cpu();
    check_affinity();
    check_cgroup();
    check_psi();
    check_memory();
    check_net_and_shm();
    check_nfs();
    check_disk();
    ok(near(dr_link_bytes(4, 16), 16 * 1969e6) && isnan(dr_link_bytes(-1, 16)), "a link's speed");
    check_numbers();
    check_long_file();
    check_this_machine();
    dr_absent_free(&absent);
    memcpy(root, made, sizeof made);
    return done_testing() | remove_root();
}
