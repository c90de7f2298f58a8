/* The files that keep which samples are known to decode: others may write to them, damage or delete them, and they are
 * never believed without the sample's checksum. */
#include "known_rows.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void in_turn(void)
{
    struct stoker_dataset *data = open_rows();
    known_of(data);
    st_dataset_drop(data);
    ok(!*found_in(at("kept"), ".stoker-known"), "no file without anything to put into it");
    data = open_rows();
    learn(known_of(data), 5, ROWS, 3, 1);
    st_dataset_drop(data);
    ok(*found_in(at("kept"), ".stoker-known"), "a dataset leaves what it learned");
    data = open_rows();
    const uint64_t found = count_known(known_of(data), ROWS, 1);
    ok(found == (ROWS - 5 + 2) / 3, "the next one knows it: %llu", (unsigned long long)found);
    learn(known_of(data), 5, 6, 1, 2);
    st_dataset_drop(data);
    data = open_rows();
    ok(st_known_has(known_of(data), 5, number(5, 2)),
       "a number that was learned again replaces the other");
    st_known_learn(known_of(data), 5, 0);
    st_known_learn(known_of(data), 8, 0);
    st_known_share(known_of(data));
    ok(!st_known_any(known_of(data), 5), "what was forgotten does not come back from the file");
    st_known_learn(known_of(data), 8, 12);
    st_dataset_drop(data);
    data = open_rows();
    ok(!st_known_any(known_of(data), 5) && st_known_has(known_of(data), 8, 12), "where it is gone, too");
    st_dataset_drop(data);
    unlink(found_in(at("kept"), ".stoker-known"));
}

static void side_by_side(void)
{
    struct stoker_dataset *a = open_rows(), *b = open_rows();
    struct st_known *left = known_of(a), *right = known_of(b);
    learn(left, 0, ROWS, 2, 1);
    learn(right, 1, ROWS, 2, 1);
    share_all(left);
    share_all(right);
    share_all(left);
    ok(count_known(left, ROWS, 1) == ROWS && count_known(right, ROWS, 1) == ROWS,
       "two datasets learn from each other");

    const char *file = found_in(at("kept"), ".stoker-known");
    const int fd = open(file, O_RDWR);
    static const uint8_t zeros[4096 * 3];
    ok(fd >= 0 && pwrite(fd, zeros, sizeof zeros, 32 + 4096 * 70) == (ssize_t)sizeof zeros,
       "pages are lost");
    close(fd);
    learn(left, 70 * 1024, 70 * 1024 + 1, 1, 2); /* one of a lost page */
    learn(left, 70 * 1024, 70 * 1024 + 1, 1, 1);
    share_all(left);
    struct stoker_dataset *c = open_rows();
    const uint64_t found = count_known(known_of(c), ROWS, 1);
    ok(found == ROWS, "whoever writes there puts back what it knows: %llu", (unsigned long long)found);
    st_dataset_drop(c);

    unlink(file);
    learn(right, 0, 1, 1, 2);
    learn(right, 0, 1, 1, 1);
    share_all(right);
    c = open_rows();
    ok(count_known(known_of(c), ROWS, 1) == ROWS, "a file that was deleted is written again, whole");
    st_dataset_drop(c);
    st_dataset_drop(a);
    st_dataset_drop(b);
    unlink(file);
}

/* A page that is not whole is read again when the file has changed, and what the file lacks is put back.
 */
static void repaired(void)
{
    struct stoker_dataset *data = open_rows();
    struct st_known *known = known_of(data);
    learn(known, 0, ROWS, 7, 1);
    share_all(known);
    const char *file = found_in(at("kept"), ".stoker-known");
    ok(*file && !truncate(file, 32 + 1001), "another process cuts the file");
    share_all(known);
    struct stoker_dataset *other = open_rows();
    ok(count_known(known_of(other), ROWS, 1) == (ROWS + 6) / 7, "what is missing is written again");
    st_dataset_drop(other);
    st_dataset_drop(data);
    unlink(file);
}

static void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file))
        abort();
}

static void damaged(void)
{
    enum { COUNT = 3000, SIZE = 32 + 4 * COUNT };
    static uint8_t good[SIZE], bad[SIZE + 4];
    char path[4096];
    snprintf(path, sizeof path, "%s", at("d.tar.stoker-known")); /* at() has room for eight */
    tar_samples(at("d.tar"), COUNT, 10);
    struct stoker_dataset *data = open_tar(at("d.tar"), "bin,cls", NULL);
    learn(known_of(data), 0, COUNT, 1, 1);
    st_dataset_drop(data);
    FILE *file = fopen(path, "rb");
    ok(file && fread(good, 1, SIZE, file) == SIZE && getc(file) == EOF, "32 bytes and 4 per sample");
    if (file)
        fclose(file);
    ok(!memcmp(good, "STKNOWN1", 8) && good[8] == (COUNT & 255) && good[9] == COUNT >> 8 &&
           good[24] == ST_KNOWN_RULES && good[32 + 4 * 5] == (number(5, 1) & 255),
       "as it is documented");

    /* a byte to change, how much to keep of it, what of it is still known */
    const struct {
        int change;
        size_t size;
        uint64_t known;
        const char *what;
    } cases[] = {
        {-1, 0, 0, "an empty file"},
        {-1, 5, 0, "a part of the head"},
        {-1, 32, 0, "a head alone"},
        {-1, 32 + 4 * 100 + 3, 100, "a file cut inside of a number"},
        {-1, SIZE - 1, COUNT - 1, "a file without its last byte"},
        {-1, SIZE + 4, 0, "a file that is too long"},
        {0, SIZE, 0, "another kind of file"},
        {8, SIZE, 0, "another number of samples"},
        {17, SIZE, 0, "another dataset's"},
        {24, SIZE, 0, "what passed other rules"},
        {29, SIZE, 0, "a head with a wrong checksum"},
        {32 + 4 * 7 + 1, SIZE, COUNT - 1, "a number that has changed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(bad, good, SIZE);
        if (cases[i].change >= 0)
            bad[cases[i].change] ^= 0x10;
        write_file(path, bad, cases[i].size);
        data = open_tar(at("d.tar"), "bin,cls", NULL);
        struct st_known *known = known_of(data);
        const uint64_t found = count_known(known, COUNT, 1);
        learn(known, 0, COUNT, 1, 1);
        st_dataset_drop(data);
        data = open_tar(at("d.tar"), "bin,cls", NULL);
        ok(found == cases[i].known && count_known(known_of(data), COUNT, 1) == COUNT,
           "%s: %llu are known, and all once they are learned again", cases[i].what,
           (unsigned long long)found);
        st_dataset_drop(data);
    }
    uint32_t state = 1;
    memcpy(bad, good, 32);
    for (size_t i = 32; i < SIZE; i++)
        bad[i] = (uint8_t)((state = state * 1664525u + 1013904223u) >> 24);
    write_file(path, bad, SIZE);
    data = open_tar(at("d.tar"), "bin,cls", NULL);
    ok(count_known(known_of(data), COUNT, 1) == 0, "nothing is known because of garbage");
    st_dataset_drop(data);

    unlink(path);
    data = open_tar(at("d.tar"), "bin,cls", NULL);
    mkdir(path, 0777);
    learn(known_of(data), 0, 10, 1, 1);
    share_all(known_of(data));
    ok(count_known(known_of(data), COUNT, 1) == 10, "a folder in the place of the file");
    rmdir(path);
    if (mkfifo(path, 0666))
        abort();
    share_all(known_of(data));
    st_dataset_drop(data);
    data = open_tar(at("d.tar"), "bin,cls", NULL);
    ok(count_known(known_of(data), COUNT, 1) == 10, "a pipe there is replaced, and nobody waits for it");
    st_dataset_drop(data);
}

static void cannot_write(void)
{
    struct rlimit before;
    struct stoker_dataset *data = open_rows();
    struct st_known *known = known_of(data);
    learn(known, 0, ROWS, 1, 1);
    getrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 40, .rlim_max = before.rlim_max});
    share_all(known);
    setrlimit(RLIMIT_FSIZE, &before);
    ok(count_known(known, ROWS, 1) == ROWS, "a full disk: what is learned stays known here");
    st_dataset_drop(data);
    data = open_rows();
    ok(count_known(known_of(data), ROWS, 1) == ROWS, "and it is written once there is room");
    st_dataset_drop(data);

    const char *file = found_in(at("kept"), ".stoker-known");
    if (geteuid() == 0) {
        skip("a folder that cannot be written to", "root can write everywhere");
    } else {
        chmod(file, 0444);
        chmod(at("kept"), 0555);
        data = open_rows();
        known = known_of(data);
        const uint64_t found = count_known(known, ROWS, 1);
        learn(known, 0, 5, 1, 2);
        share_all(known);
        ok(found == ROWS && count_known(known, ROWS, 2) == 5, "a file that can only be read is read");
        st_dataset_drop(data);
        chmod(at("kept"), 0755);
    }
    unlink(file);
    data = open_rows();
    free(data->known_file);
    data->known_file = strdup("/proc/self/no-such-file");
    learn(known_of(data), 0, 5, 1, 2);
    share_all(known_of(data));
    ok(count_known(known_of(data), ROWS, 2) == 5, "a place where no file can be made");
    st_dataset_drop(data);
}

static void forked(void)
{
    struct stoker_dataset *data = open_rows();
    struct st_known *known = known_of(data);
    int status = -1;
    learn(known, 0, 100, 1, 1);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        learn(known, 100, 200, 1, 1);
        share_all(known);
        _exit(count_known(known, ROWS, 1) != 200);
    }
    if (waitpid(child, &status, 0) != child)
        status = -1;
    share_all(known);
    ok(status == 0 && count_known(known, ROWS, 1) == 200, "parent and child learn from each other");
    st_dataset_drop(data);
    unlink(found_in(at("kept"), ".stoker-known"));
}

/* ---- where it is kept --------------------------------------------------------------------------- */

/* Opens, learns three of them, closes. */
static bool visit(const char *uri, const char *index_dir)
{
    struct stoker_dataset *data = open_tar(uri, "bin,cls", index_dir);
    if (!data)
        return ok(false, "%s", err.message);
    const bool known = count_known(known_of(data), 3, 1) == 3;
    learn(known_of(data), 0, 3, 1, 1);
    st_dataset_drop(data);
    return known;
}

static void places(void)
{
    mkdir(at("p"), 0777);
    mkdir(at("i"), 0777);
    tar_samples(at("p/a.tar"), 10, 10);
    tar_samples(at("p/b.tar"), 10, 10);
    visit(at("p/a.tar"), NULL);
    ok(!access(at("p/a.tar.stoker-known"), F_OK), "one archive: beside it");
    visit(at("p/{a,b}.tar"), NULL);
    unlink(at("p/a.tar.stoker-known"));
    const char *list = found_in(at("p"), ".stoker-known");
    ok(strstr(list, "/a.tar.") != NULL, "several: beside the first, named by all of them: %s", list);
    ok(visit(at("p"), NULL) && visit(at("p/*.tar"), NULL),
       "a folder of archives is still one, and the same ones by a pattern are the same dataset");
    visit(at("p/{b,a}.tar"), NULL);
    ok(!rename(at("p"), at("q")) && visit(at("q"), NULL) && visit(at("q/{b,a}.tar"), NULL),
       "they are still known when their folder has moved");
    ok(!visit(at("q/b.tar"), at("i")) && access(at("q/b.tar.stoker-known"), F_OK) &&
           *found_in(at("i"), ".stoker-known"),
       "with index_dir: there, and not beside the archive");
    if (chdir(at("q")))
        abort();
    ok(visit("b.tar", "../i"), "however its path is written");
    visit("b.tar", NULL);
    ok(chdir("/") == 0 && visit(at("q/b.tar"), NULL), "next to an archive with a relative path, too");
    tar_samples(at("q/b.tar"), 20, 10);
    ok(!visit(at("q/b.tar"), NULL) && visit(at("q/b.tar"), NULL),
       "an archive of another length begins anew");
    tree_file(at("f/x/0.jpg"), 100, 1);
    struct stoker_dataset *data = open_tar(at("f"), NULL, NULL);
    ok(data && !data->known_file, "a folder without index_dir: in memory");
    st_dataset_drop(data);
    data = open_tar(at("f"), NULL, at("i"));
    ok(data && data->known_file && !strncmp(data->known_file, at("i/"), strlen(at("i/"))),
       "with it: there");
    st_dataset_drop(data);
}

int main(void)
{
    tree_make();
    write_rows(at("rows.npy"), ROWS);
    in_turn();
    side_by_side();
    repaired();
    damaged();
    cannot_write();
    forked();
    places();
    tree_remove();
    return done_testing();
}
