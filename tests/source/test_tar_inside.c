/* The index that a packed tar file holds itself: taken only where it says what walking through would
 * find. */
#include "source/checksum/crc32c.h"
#include "source/index/index.h"
#include "source/reader/reader.h"
#include "source/tar/scan.h"
#include "tap.h"
#include "tar_file.h"
#include "tree.h"

static struct stoker_error err;

/* What is wrong with an index, and goes unnoticed by its checksum. */
enum wrong {
    RIGHT,
    BAD_SUM,
    EARLY,
    LATE,
    SHIFTED,
    MERGED,
    DROPPED,
    NAMED,
    SUFFIXED,
    BEYOND,
    LOST,
    KIND,
    EMPTY,
    WRONGS
};

enum { SAMPLES = 12, PAYLOAD = 700 };

static void pack_header(FILE *file, const char *name, uint64_t size)
{
    uint8_t block[512];
    tar_header(block, name, '0', size);
    memcpy(block + 108,
           "0000000\0"
           "0000000",
           16);
    tar_seal(block);
    tar_put(file, block, sizeof block);
}

static void pack_member(FILE *file, const char *name, const void *data, size_t size)
{
    pack_header(file, name, size);
    tar_put(file, data, size);
    tar_pad(file);
}

struct packing {
    struct st_shard_builder builder;
    uint32_t crcs[2 * SAMPLES];
};

static void pack_part(FILE *file, struct packing *p, unsigned number, const char *suffix,
                      const void *data, size_t size)
{
    char name[64];
    snprintf(name, sizeof name, "%05u.%s", number, suffix);
    const uint64_t start = (uint64_t)ftell(file);
    pack_member(file, name, data, size);
    p->crcs[p->builder.part_count] = st_crc32c(data, size);
    if (!st_shard_add(&p->builder, start, start + 512 + size,
                      (struct st_bytes){(const uint8_t *)suffix, strlen(suffix)}))
        abort();
}

static void pack_samples(FILE *file, struct packing *p)
{
    uint8_t payload[PAYLOAD];
    for (unsigned i = 0; i < SAMPLES; i++) {
        char key[16], label[16];
        snprintf(key, sizeof key, "%05u", i);
        if (!st_shard_begin(&p->builder, (struct st_bytes){(const uint8_t *)key, 5}))
            abort();
        memset(payload, (int)i, sizeof payload);
        pack_part(file, p, i, "bin", payload, sizeof payload);
        pack_part(file, p, i, "cls", label, (size_t)snprintf(label, sizeof label, "%u", i));
    }
}

static void spoil(struct packing *p, enum wrong wrong, struct st_shard_stamp *stamp)
{
    struct st_shard_builder *b = &p->builder;
    const uint64_t last = b->part_count - 1;
    if (wrong == EARLY)
        stamp->size -= 512;
    if (wrong == LATE)
        stamp->size += 512;
    if (wrong == SHIFTED)
        b->parts[7].start += 512;
    if (wrong == MERGED) { /* two members as one, which still covers all */
        b->parts[6].end = b->parts[7].end;
        memmove(b->parts + 7, b->parts + 8, (last - 7) * sizeof *b->parts);
        for (uint64_t i = 4; i < b->sample_count; i++)
            b->firsts[i]--;
        b->part_count--;
    }
    if (wrong == DROPPED)
        b->part_count -= 2, b->sample_count--;
    if (wrong == NAMED)
        b->text[b->keys[5]] = 'x';
    if (wrong == SUFFIXED)
        b->text[b->suffixes[1]] = 'x';
    if (wrong == BEYOND)
        b->parts[last].end += 1 << 20;
    if (wrong == LOST)
        b->parts[last].end = ST_SHARD_LOST;
    if (wrong == EMPTY)
        b->part_count = b->sample_count = 0;
}

/* As `stoker pack` writes them. One sum is wrong: whoever reads that sample without an error has not
 * taken the index. */
static void make_packed(const char *path, enum wrong wrong)
{
    struct packing p = {.builder = {.named = true}};
    struct st_shard_index plain, index;
    FILE *file = fopen(path, "wb");
    if (!file)
        abort();
    pack_samples(file, &p);
    struct st_shard_stamp stamp = {.size = (uint64_t)ftell(file)};
    p.crcs[2 * 3] ^= 1;
    spoil(&p, wrong, &stamp);
    if (st_shard_build(&plain, &p.builder, st_shard_kind_tar.number + (wrong == KIND), &stamp, &err) ||
        st_shard_index_sum(&index, &plain, p.crcs, &err))
        abort();
    uint8_t *bytes = (uint8_t *)(uintptr_t)index.bytes;
    st_index_seal(bytes, index.size);
    bytes[index.size / 2] ^= wrong == BAD_SUM;
    pack_member(file, "__index__", bytes, index.size);
    tar_end(file);
    st_shard_builder_free(&p.builder);
    st_shard_index_free(&plain);
    st_shard_index_free(&index);
}

static bool taken(const char *path)
{
    struct st_held file;
    struct st_shard_index index = {0};
    if (st_held_open(&file, path, &err))
        abort();
    struct st_window window = {.path = path, .file = &file, .end = file.size};
    const bool good = st_tar_inside(&window, &index);
    st_shard_index_free(&index);
    st_window_free(&window);
    st_held_close(&file);
    return good;
}

static void only_right_ones(void)
{
    static const char *const what[WRONGS] = {"as it should be",
                                             "damaged",
                                             "that ends early",
                                             "that ends late",
                                             "with a part elsewhere",
                                             "with two members as one",
                                             "without the last sample",
                                             "with another key",
                                             "with another suffix",
                                             "with a part behind the end",
                                             "with a part that is lost",
                                             "of another kind",
                                             "of nothing"};
    const char *path = at("inside.tar");
    for (enum wrong wrong = RIGHT; wrong < WRONGS; wrong++) {
        make_packed(path, wrong);
        ok(taken(path) == (wrong == RIGHT), "an index %s is %staken", what[wrong], wrong ? "not " : "");
    }
}

static void replace_end(const char *path, const char *name, const void *data, size_t size)
{
    FILE *file = fopen(path, "r+b");
    if (!file || fseek(file, -1024, SEEK_END))
        abort();
    pack_member(file, name, data, size);
    tar_end(file);
}

static void only_at_the_end(void)
{
    const char *path = at("end.tar"), *outer = at("outer.tar");
    static uint8_t bytes[65536];
    make_packed(path, RIGHT);
    replace_end(path, "99999.bin", "more", 4);
    ok(!taken(path), "an index behind which a member was added is not taken");
    make_packed(path, RIGHT);
    struct stat info;
    if (stat(path, &info) || truncate(path, info.st_size - 512))
        abort();
    ok(!taken(path), "nor that of an archive without its end");
    make_packed(path, RIGHT);
    FILE *file = fopen(path, "rb");
    const size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (!file || fclose(file))
        abort();
    make_packed(outer, RIGHT);
    replace_end(outer, "nested.tar", bytes, size);
    ok(!taken(outer), "nor that of an archive in the archive");
    file = fopen(outer, "wb"); /* the nested one ends where the outer one does */
    if (!file)
        abort();
    pack_header(file, "nested.tar", size - 1024);
    tar_put(file, bytes, size);
    fclose(file);
    ok(!taken(outer), "not even where both end at once");
    tar_samples(path, 5, 100);
    ok(!taken(path), "archives of others have none");
    make_packed(path, RIGHT);
    file = fopen(path, "r+b");
    if (!file || fseek(file, -1024, SEEK_END))
        abort();
    tar_put(file, "x", 1);
    fclose(file);
    ok(!taken(path), "the end must be one");
}

static struct stoker_dataset *open_tar(const char *path, const char *index_dir)
{
    const struct stoker_dataset_options opt = {
        .size = sizeof opt, .fields = "bin,cls", .index_dir = index_dir, .threads = 2};
    struct stoker_dataset *data = NULL;
    return st_dataset_open(&data, path, &opt, &err) ? NULL : data;
}

static int read_one(struct stoker_dataset *data, uint64_t sample, int64_t *label)
{
    static struct st_buffer buffer, scratch;
    struct st_piece pieces[2];
    struct st_bytes raw;
    int rc = st_read_sample(data, sample, &buffer, &raw, &err);
    if (!rc)
        rc = data->source->split(data->self, sample, raw, &scratch, pieces, &err);
    *label = rc ? -1 : pieces[1].whole;
    st_buffer_free(&buffer);
    st_buffer_free(&scratch);
    return rc;
}

static void set_time(const char *path, long seconds)
{
    const struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    if (utimensat(AT_FDCWD, path, times, 0))
        abort();
}

/* Whether all samples can be read, and the fourth only if the index inside was not taken. */
static bool opens(const char *path, const char *index_dir, bool by_inside)
{
    struct stoker_dataset *data = open_tar(path, index_dir);
    bool good = data && st_dataset_count(data) == SAMPLES;
    for (uint64_t i = 0; good && i < SAMPLES; i++) {
        int64_t label;
        const int rc = read_one(data, i, &label);
        good = i == 3 && by_inside ? rc == STOKER_ECORRUPT && strstr(err.message, "checksum")
                                   : !rc && label == (int64_t)i;
    }
    if (!good)
        note("%s", err.message);
    st_dataset_drop(data);
    return good;
}

static void opening(void)
{
    const char *path = at("open.tar"), *index = at("open.tar.stoker-index");
    make_packed(path, RIGHT);
    ok(opens(path, NULL, true), "an archive without a kept index is opened by its own");
    set_time(path, 1000000000);
    ok(opens(path, NULL, true) && !access(index, R_OK), "which is then kept beside it");
    ok(opens(path, NULL, true), "and used again");
    set_time(path, 1000000001);
    ok(opens(path, NULL, true), "one whose kept index is stale too");
    make_packed(path, NAMED);
    set_time(path, 1000000002);
    ok(opens(path, NULL, false), "where its own is wrong, it is walked through");
    make_packed(path, BAD_SUM);
    ok(opens(path, at("kept"), false), "where its own is damaged, too");
}

int main(void)
{
    tree_make();
    only_right_ones();
    only_at_the_end();
    opening();
    tree_remove();
    return done_testing();
}
