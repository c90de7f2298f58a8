/* test_driver.c - a driver that is absent, broken, too old, without GPUs, or inherited by a fork
 *
 * What the driver is, is settled once in a process; so each case is a process of its own: this program
 * with an argument, and the folder of its libcuda.so.1 in LD_LIBRARY_PATH.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "consumer.h"
#include "fake_cuda.h"
#include "tap.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* -- in the child -- */

static const char *status_name(int status)
{
    return status == STOKER_OK             ? "OK"
           : status == STOKER_EUNSUPPORTED ? "EUNSUPPORTED"
           : status == STOKER_EFORK        ? "EFORK"
                                           : "another status";
}

static int tell(void)
{
    const struct st_device_want want = finished_rows(0);
    struct stoker_error err = {0};
    struct st_device *device;
    const int status = st_device_cuda.open(&device, &want, &err);
    printf("%s: %s\n", status_name(status), err.message);
    if (!status)
        st_device_cuda.close(device);
    return 0;
}

static int tell_in_fork(bool used_by_us)
{
    const struct st_device_want want = finished_rows(0);
    struct stoker_error err = {0};
    struct st_device *device = NULL;
    int status;
    if (used_by_us) {
        if (st_device_cuda.open(&device, &want, &err))
            return 1;
    } else { /* by torch, say */
        int (*init)(unsigned);
        *(void **)&init = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuInit");
        init(0);
    }
    const pid_t child = fork();
    if (!child) {
        tell();
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, &status, 0);
    if (device)
        st_device_cuda.close(device);
    return status;
}

static int play(const char *which)
{
    struct fake_cuda *fake = NULL;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!strcmp(which, "look"))
        return puts(library ? "there is a driver" : "there is none") < 0;
    if (library)
        fake = dlsym(library, "fake_cuda");
    if (!strcmp(which, "old"))
        fake->version = 11080;
    if (!strcmp(which, "none"))
        fake->devices = 0;
    return !strncmp(which, "fork", 4) ? tell_in_fork(!strcmp(which, "fork-ours")) : tell();
}

/* -- in the parent -- */

static char self[PATH_MAX], said[2000];

static const char *ask(const char *folder, const char *which)
{
    char command[3 * PATH_MAX];
    const char *emulator = getenv("MESON_EXE_WRAPPER"); /* set where this is another architecture's program */
    /* Looking for leaks takes seconds a process on some machines, and the other tests do it. */
    snprintf(command, sizeof command,
             "ASAN_OPTIONS=detect_leaks=0 CUDA_VISIBLE_DEVICES=7 LD_LIBRARY_PATH='%s' %s '%s' %s", folder,
             emulator ? emulator : "", self, which);
    FILE *child = popen(command, "r");
    const size_t got = child ? fread(said, 1, sizeof said - 1, child) : 0;
    said[got] = '\0';
    said[strcspn(said, "\n")] = '\0';
    const int status = child ? pclose(child) : -1;
    return status ? "the process failed" : said;
}

static void check(const char *answer, const char *begin, const char *part)
{
    ok(!strncmp(answer, begin, strlen(begin)) && strstr(answer, part), "%s", answer);
}

int main(int argc, char **argv)
{
    char fake[PATH_MAX], broken[PATH_MAX + 32], name[PATH_MAX + 64];
    if (argc > 1)
        return play(argv[1]);
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length < 0 ? 0 : length] = '\0';
    strcpy(fake, self);
    dirname(fake);

    snprintf(broken, sizeof broken, "%s/broken.%d", fake, (int)getpid());
    snprintf(name, sizeof name, "%s/libcuda.so.1", broken);
    if (mkdir(broken, 0700) || close(open(name, O_CREAT | O_WRONLY, 0600)))
        return 1;
    check(ask(broken, "broken"), "EUNSUPPORTED: no NVIDIA driver: ",
          "install the driver, or use device=None");
    unlink(name);
    rmdir(broken);
    if (!strcmp(ask(broken, "look"), "there is a driver"))
        skip("the driver is absent", "this machine has one");
    else
        check(ask(broken, "absent"), "EUNSUPPORTED: no NVIDIA driver: libcuda.so.1: ",
              "cannot open shared object file");

    check(ask(fake, "fine"), "OK: ", "");
    check(ask(fake, "old"),
          "EUNSUPPORTED: the NVIDIA driver is too old: it supports CUDA 11.8, but 12.0 is required",
          "update the driver");
    check(ask(fake, "none"), "EUNSUPPORTED: the NVIDIA driver finds no GPU (CUDA_VISIBLE_DEVICES=7)",
          "device=None");
    check(ask(fake, "fork-theirs"), "EFORK: cuda: ", "'spawn'");
    check(ask(fake, "fork-ours"), "EFORK: cuda", "'spawn'");
    return done_testing();
}
