/* Tar files: reading at random, kept indexes, damage, and files that change while they are open. */
#include "source/reader/reader.h"
#include "source/tar/members.h"
#include "source/tar/scan.h"
#include "tap.h"
#include "tar_file.h"
#include "tar_read.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <zlib.h>

static long file_size(const char *path)
{
    struct stat info;
    return stat(path, &info) ? -1 : (long)info.st_size;
}

/* Another file in its place, or written again? */
static bool is_other(const char *path, const struct stat *before)
{
    struct stat now;
    return !stat(path, &now) &&
           (now.st_ino != before->st_ino || now.st_ctim.tv_sec != before->st_ctim.tv_sec ||
            now.st_ctim.tv_nsec != before->st_ctim.tv_nsec);
}

static void overwrite(const char *path, long offset, const void *bytes, size_t size)
{
    const int fd = open(path, O_WRONLY);
    if (fd < 0 || pwrite(fd, bytes, size, offset) != (ssize_t)size || close(fd))
        abort();
}

static void reads(void)
{
    char uri[9000];
    tar_samples(at("r-0.tar"), 50, 700);
    tar_samples(at("r-1.tar"), 30, 5000);
    snprintf(uri, sizeof uri, "tar:%s", at("r-{0..1}.tar"));
    struct stoker_dataset *data = open_tar(uri, "bin,cls", at("kept"));
    ok(data && st_dataset_count(data) == 80, "two archives: %s", err.message);
    if (!data)
        return;
    bool good = true;
    for (uint64_t i = 0; i < 80; i++) {
        const uint64_t k = i * 37 % 80;
        good = good && is_sample(data, k, (unsigned)(k < 50 ? k : k - 50), k < 50 ? 700 : 5000);
    }
    ok(good, "are read in any order");
    char name[300], want[300];
    snprintf(want, sizeof want, "%s: 00002", at("r-1.tar"));
    ok(st_dataset_name(data, 52, name, sizeof name) == strlen(want) && !strcmp(name, want), "%s", name);
    st_dataset_drop(data);

    struct st_extent extent = {0};
    data = open_tar(at("r-1.tar"), "cls", NULL);
    const bool located = data && !data->source->locate(data->self, 1, &extent, &err);
    ok(located && extent.length == 513,
       "only what is asked for is read: %llu bytes", (unsigned long long)extent.length);
    st_dataset_drop(data);
    data = open_tar(at("r-1.tar"), "__key__,__url__", NULL);
    struct st_piece pieces[2];
    ok(data && !read_pieces(data, 3, pieces) &&
           !strncmp((const char *)pieces[0].bytes.data, "00003", 5) &&
           pieces[1].bytes.size == strlen(at("r-1.tar")),
       "keys and paths are fields too");
    st_dataset_drop(data);
}

/* Whether opening used the kept index: one that was made to say something else shows. */
static void kept(void)
{
    const char *path = at("k.tar"), *index = at("k.tar.stoker-index");
    tar_samples(path, 20, 100);
    st_dataset_drop(open_tar(path, NULL, NULL));
    ok(file_size(index) < 0, "the index of an archive that changed a moment ago is not kept");
    set_time(path, 1000000000);
    st_dataset_drop(open_tar(path, NULL, NULL));
    ok(file_size(index) > 0, "that of an older one is, beside it");
    const long size = file_size(index);
    struct stat before;
    ok(!stat(index, &before), "it is there");
    struct stoker_dataset *data = open_tar(path, NULL, NULL);
    st_dataset_drop(data);
    ok(!is_other(index, &before), "and is used again, not written again");

    overwrite(index, size / 2, "\xff\x01\xff\x01", 4);
    stat(index, &before);
    data = open_tar(path, "bin,cls", NULL);
    ok(data && is_sample(data, 19, 19, 100) && is_other(index, &before), "a damaged index is made anew");
    st_dataset_drop(data);
    if (truncate(index, size - 8))
        abort();
    data = open_tar(path, "bin,cls", NULL);
    ok(data && is_sample(data, 7, 7, 100) && file_size(index) >= size, "one that was cut off too");
    st_dataset_drop(data);

    stat(index, &before);
    tar_samples(path, 21, 100);
    set_time(path, 1000000000);
    data = open_tar(path, "bin,cls", NULL);
    ok(data && st_dataset_count(data) == 21 && is_sample(data, 20, 20, 100), "another size: made anew");
    st_dataset_drop(data);
    set_time(path, 1000000001);
    stat(index, &before);
    st_dataset_drop(open_tar(path, NULL, NULL));
    ok(is_other(index, &before), "another time: made anew");
    overwrite(path, 0, "x", 1); /* the first name, without its sum */
    set_time(path, 1000000001);
    ok(!open_tar(path, NULL, NULL), "the same size and time, but other content: %s", err.message);
}

/* The sums of members are learned by reading, kept, and tell of damage that nothing else shows. */
static void sums(void)
{
    const char *path = at("m.tar"), *index = at("m.tar.stoker-index");
    const long each = 512 + 5120 + 1024;
    struct st_piece pieces[2];
    tar_samples(path, 40, 5000);
    set_time(path, 1000000000);
    struct stoker_dataset *data = open_tar(path, "bin,cls", NULL);
    const long without = file_size(index);
    bool good = data != NULL;
    for (unsigned i = 0; i < 39; i++)
        good = good && is_sample(data, i, i, 5000);
    ok(good && file_size(index) == without, "sums are not kept one by one");
    ok(is_sample(data, 39, 39, 5000) && file_size(index) == without + 80 * 4,
       "but when there is one for each of 80 members, while the archive is open");
    struct stat before;
    stat(index, &before);
    st_dataset_drop(data);
    ok(!is_other(index, &before), "and not once more at the end");
    if (unlink(index))
        abort();
    data = open_tar(path, "bin,cls", NULL);
    good = data && is_sample(data, 3, 3, 5000) && file_size(index) == without;
    st_dataset_drop(data);
    ok(good && file_size(index) == without + 80 * 4, "what is known of a part of them is kept at the end");
    data = open_tar(path, "bin,cls", NULL);
    for (unsigned i = 0; i < 40; i++)
        good = good && is_sample(data, i, i, 5000);
    st_dataset_drop(data);
    ok(good, "and completed the next time");
    const long damaged =
        (file_size(path) - 4096) / 14 / each; /* not among the pieces that the stamp sums up */
    overwrite(path, damaged * each + 1000, "!", 1);
    set_time(path, 1000000000);
    data = open_tar(path, "bin,cls", NULL);
    ok(data && read_pieces(data, (uint64_t)damaged, pieces) == STOKER_ECORRUPT &&
           strstr(err.message, "checksum"),
       "a byte that changed shows: %s", err.message);
    ok(data && is_sample(data, (uint64_t)damaged + 1, (unsigned)damaged + 1, 5000),
       "the others are as they were");
    st_dataset_drop(data);
}

static void kept_elsewhere(void)
{
    tar_samples(at("e.tar"), 20, 100);
    set_time(at("e.tar"), 1000000000);
    st_dataset_drop(open_tar(at("e.tar"), NULL, at("elsewhere")));
    ok(file_size(at("e.tar.stoker-index")) < 0, "with a folder for indexes, none beside the archive");
    struct stat info;
    ok(!stat(at("elsewhere"), &info) && S_ISDIR(info.st_mode), "the folder is made");
    if (!geteuid()) {
        skip("a folder that cannot be written", "root may write everywhere");
    } else {
        mkdir(at("locked"), 0777);
        tar_samples(at("locked/x.tar"), 3, 10);
        set_time(at("locked/x.tar"), 1000000000);
        chmod(at("locked"), 0555);
        struct stoker_dataset *data = open_tar(at("locked/x.tar"), NULL, NULL);
        ok(data != NULL, "a folder that cannot be written is no error");
        st_dataset_drop(data);
        chmod(at("locked"), 0777);
    }
}

static void cut_off(void)
{
    tar_samples(at("c.tar"), 10, 1000); /* a sample has 512 + 1024 + 512 + 512 bytes */
    const long each = 2560;
    if (truncate(at("c.tar"), 5 * each + 700))
        abort();
    struct st_piece pieces[2];
    struct stoker_dataset *data = open_tar(at("c.tar"), "bin,cls", NULL);
    ok(data && st_dataset_count(data) == 6, "an archive cut off in a payload has the samples before");
    ok(data && is_sample(data, 4, 4, 1000), "they are read");
    ok(data && read_pieces(data, 5, pieces) == STOKER_ECORRUPT && strstr(err.message, "truncated"),
       "the last one says why not: %s", err.message);
    st_dataset_drop(data);
    data = open_tar(at("c.tar"), "bin", NULL);
    ok(data && read_pieces(data, 5, pieces) == STOKER_ECORRUPT && strstr(err.message, "truncated"), "%s",
       err.message);
    st_dataset_drop(data);
    if (truncate(at("c.tar"), 5 * each + 200))
        abort();
    data = open_tar(at("c.tar"), "bin,cls", NULL);
    ok(data && st_dataset_count(data) == 6 && is_sample(data, 4, 4, 1000) &&
           read_pieces(data, 5, pieces) == STOKER_ECORRUPT && strstr(err.message, "byte 12800"),
       "cut off in a header: %s", err.message);
    st_dataset_drop(data);
    tar_samples(at("d.tar"), 10, 1000);
    overwrite(at("d.tar"), 3 * each + 20, "damage", 6);
    data = open_tar(at("d.tar"), "bin,cls", NULL);
    ok(data && st_dataset_count(data) == 4 && is_sample(data, 2, 2, 1000) &&
           read_pieces(data, 3, pieces) == STOKER_ECORRUPT && strstr(err.message, "byte 7680"),
       "a damaged header: %s", err.message);
    st_dataset_drop(data);
}

static void no_tar(void)
{
    tree_file(at("empty.tar"), 0, 0);
    ok(!open_tar(at("empty.tar"), NULL, NULL) && err.code == STOKER_ECORRUPT, "an empty file: %s",
       err.message);
    tree_file(at("other.tar"), 5000, 3);
    ok(!open_tar(at("other.tar"), NULL, NULL) && err.code == STOKER_ECORRUPT, "another file: %s",
       err.message);
    tree_file(at("short.tar"), 100, 3);
    ok(!open_tar(at("short.tar"), NULL, NULL) && err.code == STOKER_ECORRUPT, "a short one: %s",
       err.message);
    ok(!open_tar(at("none.tar"), NULL, NULL) && strstr(err.message, strerror(ENOENT)), "none: %s",
       err.message);
    ok(!open_tar(at("none-{0..3.tar"), NULL, NULL), "a brace: %s", err.message);
    mkdir(at("folder.tar"), 0777);
    ok(!open_tar(at("folder.tar"), NULL, NULL) && strstr(err.message, "no class folder"),
       "a folder is one, whatever its name: %s", err.message);
    char uri[4200];
    snprintf(uri, sizeof uri, "tar:%s", at("folder.tar"));
    ok(!open_tar(uri, NULL, NULL) && strstr(err.message, "contains no tar files"), "and no tar file: %s",
       err.message);
}

/* Sizes that lie: what they reach over is read by nobody, and no memory is asked for. */
static void lies(void)
{
    uint8_t block[512];
    static const struct {
        const char *size, *what;
    } sizes[] = {{"77777777777", "8 GiB"}, {"-0000000001", "below zero"}, {"0000000x000", "no number"}};
    for (int i = 0; i < 4; i++) {
        const char *path = at("lie%d.tar", i);
        FILE *file = fopen(path, "wb");
        if (!file)
            abort();
        tar_member(file, "a.bin", "a", 1);
        tar_header(block, "b.bin", '0', 1);
        if (i < 3)
            memcpy(block + 124, sizes[i].size, 11);
        else
            memset(block + 124, 0x80, 1), memset(block + 125, 0xff, 11);
        tar_seal(block);
        fwrite(block, 1, 512, file);
        tar_end(file);
        struct st_piece piece;
        struct stoker_dataset *data = open_tar(path, "bin", NULL);
        ok(data && st_dataset_count(data) == 2 && !read_pieces(data, 0, &piece) &&
               read_pieces(data, 1, &piece) == STOKER_ECORRUPT,
           "a size %s: %s", i < 3 ? sizes[i].what : "of 2^88", err.message);
        st_dataset_drop(data);
    }
    tar_header(block, "long", 'x', 3000000);
    FILE *file = fopen(at("pax.tar"), "wb");
    if (!file)
        abort();
    tar_member(file, "a.bin", "a", 1);
    fwrite(block, 1, 512, file);
    for (int i = 0; i < 3000000; i++)
        putc('1', file);
    tar_end(file);
    struct stoker_dataset *data = open_tar(at("pax.tar"), "bin", NULL);
    ok(data && st_dataset_count(data) == 2, "a PAX header of three megabytes is not read: %s",
       err.message);
    st_dataset_drop(data);
}

static void replaced(void)
{
    struct st_piece pieces[2];
    tar_samples(at("w.tar"), 10, 1000);
    tar_samples(at("w.new"), 10, 3000);
    struct stoker_dataset *data = open_tar(at("w.tar"), "bin,cls", NULL);
    if (!data || rename(at("w.new"), at("w.tar")))
        abort();
    ok(is_sample(data, 5, 5, 1000), "another file in its place: the one that was opened is read on");
    st_dataset_drop(data);

    tar_samples(at("w.tar"), 10, 1000);
    data = open_tar(at("w.tar"), "bin,cls", NULL);
    tar_samples(at("w.tar"), 10, 1500); /* in place */
    ok(data && read_pieces(data, 5, pieces) == STOKER_ECORRUPT && strstr(err.message, "changed"),
       "written over: %s", err.message);
    if (truncate(at("w.tar"), 3000))
        abort();
    ok(data && read_pieces(data, 5, pieces) == STOKER_EIO, "cut short: %s", err.message);
    st_dataset_drop(data);
}

/* A read that fails says why by its status too: that of an address without memory is EIO, which may pass. */
static void unreadable(void)
{
    char name[] = "/proc/self/mem";
    struct st_held file = {.fd = open(name, O_RDONLY | O_CLOEXEC), .size = 4096, .path = name};
    struct st_window window = {.path = name, .file = &file, .end = file.size};
    struct st_tar_walk walk = {.window = &window};
    struct st_tar_member member;
    const int rc = st_tar_next(&walk, &member, &err);
    ok(rc == STOKER_ETRANSIENT && err.code == rc, "a read that fails keeps its status (%s)", err.message);
    st_tar_walk_free(&walk);
    st_window_free(&window);
    close(file.fd);
}

static bool imports(const char *text, uint64_t *samples)
{
    static uint8_t bytes[40000];
    FILE *file = fopen(at("i.tar"), "rb");
    const size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (!file || fclose(file))
        abort();
    struct st_window window = {.path = "i.tar", .memory = bytes, .end = size};
    struct st_shard_builder builder = {.named = true};
    const bool taken = st_shard_kind_tar.import(
        &window, (struct st_bytes){(const uint8_t *)text, strlen(text)}, &builder);
    *samples = builder.sample_count;
    st_shard_builder_free(&builder);
    return taken;
}

static void other_indexes(void)
{
    uint64_t samples;
    tar_samples(at("i.tar"), 3, 600); /* members at 0, 1536, 2560, ... */
    const char *right = "v1.2 3\nbin 512 600 00000.bin cls 2048 1 00000.cls\nbin 3072 600 00001.bin cls "
                        "4608 1 00001.cls\n"
                        "bin 5632 600 00002.bin cls 7168 1 00002.cls\n";
    ok(imports(right, &samples) && samples == 3, "DALI's index of a tar file is taken");
    char wrong[400];
    strcpy(wrong, right);
    memcpy(strstr(wrong, "3072 600"), "3072 601", 8);
    ok(!imports(wrong, &samples), "not with a wrong size");
    strcpy(wrong, right);
    memcpy(strstr(wrong, "00001.cls"), "00001.txt", 9);
    ok(!imports(wrong, &samples), "nor with a wrong name");
    strcpy(wrong, right);
    *strstr(wrong, "bin 5632") = '\0';
    wrong[5] = '2';
    ok(!imports(wrong, &samples), "nor when a sample is missing");
}

static uint64_t backwards(void *context, uint64_t ticket) { return *(uint64_t *)context - 1 - ticket; }

/* All samples of tar_samples(..., 50, 700) by the reader's threads. */
static bool by_reader(const char *path, enum st_reader_backend backend, const char **used)
{
    struct stoker_dataset *data = open_tar(path, "bin,cls", NULL);
    uint64_t count = data ? st_dataset_count(data) : 0;
    struct st_reader *reader;
    if (count != 50 || st_reader_open(&reader, data, backend, 8, &err))
        return false;
    bool good = !st_reader_start(reader, count, backwards, &count, &err);
    for (uint64_t ticket = 0; ticket < count && good; ticket++) {
        struct st_bytes raw;
        struct st_piece pieces[2];
        const uint64_t sample = count - 1 - ticket;
        good = !st_reader_get(reader, ticket, &raw, &err) &&
               !data->source->split(data->self, sample, raw, &scratch, pieces, &err) &&
               pieces[0].bytes.size == 700 && pieces[0].bytes.data[699] == sample &&
               pieces[1].whole == (int64_t)sample;
        st_reader_done(reader, ticket);
    }
    struct st_reader_stats stats;
    st_reader_stats(reader, &stats);
    *used = stats.backend;
    st_reader_close(reader);
    st_dataset_drop(data);
    return good;
}

static void by_all_readers(void)
{
    static const enum st_reader_backend backends[] = {ST_READER_AUTO, ST_READER_POOL, ST_READER_INLINE};
    const char *used = "none";
    tar_samples(at("read.tar"), 50, 700);
    for (int i = 0; i < 3; i++) {
        const bool read = by_reader(at("read.tar"), backends[i], &used);
        ok(read, "50 samples by the reader: %s", used);
    }
    FILE *plain = fopen(at("read.tar"), "rb");
    gzFile packed = gzopen(at("read.tar.gz"), "wb");
    for (int c; plain && packed && (c = getc(plain)) != EOF;)
        gzputc(packed, c);
    if (!plain || !packed || fclose(plain) || gzclose(packed) != Z_OK)
        abort();
    ok(by_reader(at("read.tar.gz"), ST_READER_AUTO, &used) && !strcmp(used, "memory"),
       "packed as a whole: from memory");
}

/* More archives than may be held open are opened for each read. */
static void many(void)
{
    struct rlimit before, few = {.rlim_cur = 64};
    struct st_piece pieces[2];
    for (int i = 0; i < 30; i++)
        tar_samples(at("many-%02d.tar", i), 2, 100 + (size_t)i);
    getrlimit(RLIMIT_NOFILE, &before);
    few.rlim_max = before.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &few))
        abort();
    struct stoker_dataset *data = open_tar(at("many-*.tar"), "bin,cls", NULL);
    bool good = data && st_dataset_count(data) == 60;
    for (unsigned i = 0; i < 60 && good; i++)
        good = is_sample(data, i, i % 2, 100 + i / 2);
    ok(good, "30 archives, and 64 files that may be open: %s", err.message);
    tar_samples(at("many-07.tar"), 2, 5000);
    ok(data && read_pieces(data, 14, pieces) == STOKER_ECORRUPT, "one that was replaced meanwhile: %s",
       err.message);
    st_dataset_drop(data);
    setrlimit(RLIMIT_NOFILE, &before);
}

int main(void)
{
    tree_make();
    many();
    by_all_readers();
    other_indexes();
    reads();
    kept();
    sums();
    kept_elsewhere();
    cut_off();
    no_tar();
    lies();
    replaced();
    unreadable();
    tree_remove();
    st_buffer_free(&buffer);
    st_buffer_free(&scratch);
    return done_testing();
}
