/* Archives looked through by many threads: never another outcome than that of walking from the first
 * byte. */
#include "source/checksum/crc32c.h"
#include "source/tfrecord/frames.h"
#include "source/shards/trails.h"
#include "source/tar/scan.h"
#include "tap.h"
#include "tar_file.h"
#include "tree.h"

static struct stoker_error err;
static uint32_t state = 1;

enum { ALONE = 64 };

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % below;
}

/* ---- many threads ---------------------------------------------------------------------------- */

enum { ODD_LONG = 1, ODD_NESTED = 2, ODD_LINKS = 4, ODD_FAKES = 8, ODD_OLD = 16, ODD_ALL = 31 };

/* A header alone; what it says of a payload is its own business. */
static void put_header(FILE *file, const char *name, char type, uint64_t size, bool old)
{
    uint8_t block[512];
    tar_header(block, name, type, size);
    if (old) {
        memset(block + 257, 0, 8);
        tar_seal(block);
    }
    tar_put(file, block, sizeof block);
}

/* A payload that is a tar file, whole or without its end, or headers that lead anywhere. */
static size_t nested(uint8_t *into, size_t room, bool fakes)
{
    size_t used = 0;
    while (used + 4096 < room && draw(12)) {
        char name[32];
        const size_t size = draw(1500);
        snprintf(name, sizeof name, "in/%06u.txt", draw(1000000));
        tar_header(into + used, name, '0', fakes && !draw(3) ? draw(4000000) : size);
        memset(into + used + 512, 'n', size);
        memset(into + used + 512 + size, 0, 512);
        used += 512 + (fakes && !draw(2) ? 0 : (size + 511) / 512 * 512);
    }
    if (draw(2) && used + 1024 < room) {
        memset(into + used, 0, 1024);
        used += 1024;
    }
    return used;
}

static void put_odd_member(FILE *file, unsigned number, unsigned odd)
{
    static uint8_t payload[65536];
    char name[300];
    size_t size = draw(3000);
    memset(payload, (int)(number & 255), size);
    snprintf(name, sizeof name, "d/%06u.%s", number / 2, number % 2 ? "cls" : "bin");
    if ((odd & ODD_LONG) && !draw(3)) {
        snprintf(name, sizeof name, "long/%0150u.%s", number / 2, number % 2 ? "cls" : "bin");
        put_header(file, "././@LongLink", 'L', strlen(name) + 1, false);
        tar_put(file, name, strlen(name) + 1);
        tar_pad(file);
    }
    if ((odd & ODD_LINKS) && !draw(5))
        put_header(file, "folder.d/", draw(2) ? '5' : '2', draw(2) ? 777777 : 0, false);
    if ((odd & (ODD_NESTED | ODD_FAKES)) && !draw(2))
        size = nested(payload, sizeof payload, odd & ODD_FAKES && draw(2));
    put_header(file, name, '0', size, odd & ODD_OLD && !draw(200));
    tar_put(file, payload, size);
    tar_pad(file);
}

static void make_odd(const char *path, unsigned count, unsigned odd)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        abort();
    for (unsigned i = 0; i < count; i++)
        put_odd_member(file, i, odd);
    tar_end(file);
}

/* The index as a block; how it came about must not show in it. */
static struct st_shard_index scan(const struct st_shard_kind *kind, const struct st_held *file,
                                  uint32_t threads)
{
    struct st_window window = {.path = file->path, .file = file, .end = file->size};
    struct st_shard_builder builder = {.named = kind->named};
    struct st_shard_index index = {0};
    const struct st_shard_stamp stamp = {.size = file->size};
    if (kind->scan(&window, threads, &builder, &err) ||
        st_shard_build(&index, &builder, kind->number, &stamp, &err))
        index = (struct st_shard_index){0};
    st_shard_builder_free(&builder);
    st_window_free(&window);
    return index;
}

static bool same_by_many(const struct st_shard_kind *kind, const char *path)
{
    struct st_held file;
    if (st_held_open(&file, path, &err))
        abort();
    struct st_shard_index alone = scan(kind, &file, 1), many = scan(kind, &file, 8);
    const bool same =
        alone.size && alone.size == many.size && !memcmp(alone.bytes, many.bytes, alone.size);
    if (!same)
        note("%llu samples alone, %llu by many", (unsigned long long)alone.sample_count,
             (unsigned long long)many.sample_count);
    st_shard_index_free(&alone);
    st_shard_index_free(&many);
    st_held_close(&file);
    return same;
}

/* A format of its own: a letter, a length of three digits, and the payload, in which there are lies. */
static bool toy_looks_like(const uint8_t *head)
{
    return head[0] == '#' && strchr("0123456789", head[1]);
}

static void toy_begin(void *walk, struct st_window *window) { *(struct st_window **)walk = window; }

static int toy_next(void *walk, uint64_t place, struct st_trail_note *out)
{
    struct st_window *window = *(struct st_window **)walk;
    const uint8_t *head = st_window_has(window, place, 4) ? st_window_at(window, place, 4, NULL) : NULL;
    if (!head || !toy_looks_like(head))
        return STOKER_END;
    const char digits[] = {(char)head[1], (char)head[2], (char)head[3], '\0'};
    *out = (struct st_trail_note){
        .start = place, .end = place + 4 + (uint64_t)atoi(digits), .name = {(const uint8_t *)"toy", 3}};
    return 0;
}

static void toy_end(void *walk) { (void)walk; }

static const struct st_trail_kind toy = {.head = 4,
                                         .step = 1,
                                         .walk_size = sizeof(struct st_window *),
                                         .looks_like = toy_looks_like,
                                         .begin = toy_begin,
                                         .next = toy_next,
                                         .end = toy_end};

/* One in so many payloads ends with a header of its own. */
static uint64_t make_toy(const char *path, unsigned count, unsigned lies)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        abort();
    for (unsigned i = 0; i < count; i++) {
        const unsigned size = 10 + draw(900);
        fprintf(file, "#%03u%*s%s", size, (int)size - 4, "", lies && !draw(lies) ? "#321" : "....");
    }
    fclose(file);
    return count;
}

/* How many of the members behind the first 64 the threads have found; 0 where one is not what it is. */
static uint64_t found_by_threads(const char *path, uint64_t *members)
{
    struct st_held file;
    struct st_trail_note real, noted;
    if (st_held_open(&file, path, &err))
        abort();
    struct st_window window = {.path = path, .file = &file, .end = file.size};
    struct st_window *walk = &window;
    struct st_trails *trails = NULL;
    uint64_t found = 0, place = 0;
    bool good = true;
    for (*members = 0; !toy_next(&walk, place, &real); (*members)++) {
        if (*members == ALONE)
            trails = st_trails_find(&toy, &window, place, *members, 8);
        if (st_trails_take(trails, &place, &noted)) {
            found++;
            good = good && noted.start == real.start && noted.end == real.end && place == real.end &&
                   noted.name.size == 3 && !memcmp(noted.name.data, "toy", 3);
        }
        place = real.end;
    }
    *members -= ALONE;
    st_trails_free(trails);
    st_window_free(&window);
    st_held_close(&file);
    return good ? found : 0;
}

static void trails(void)
{
    const char *path = at("toy");
    uint64_t members, found;
    make_toy(path, 5000, 0);
    found = found_by_threads(path, &members);
    ok(members == 5000 - ALONE && found == members, "all members are found by threads");
    make_toy(path, 5000, 2);
    found = found_by_threads(path, &members);
    ok(members == 5000 - ALONE && found > members * 9 / 10 && found < members,
       "%llu of %llu where there are lies, and these are not taken", (unsigned long long)found,
       (unsigned long long)members);
    make_toy(path, 1000, 0);
    ok(!found_by_threads(path, &members), "a few are left to the walker");
}

static void put_record(FILE *file, const void *data, uint64_t size)
{
    uint32_t sums[2] = {st_crc32c(&size, 8), st_crc32c(data, size)};
    for (int i = 0; i < 2; i++)
        sums[i] = (sums[i] >> 15 | sums[i] << 17) + 0xa282ead8u;
    tar_put(file, &size, 8);
    tar_put(file, &sums[0], 4);
    tar_put(file, data, size);
    tar_put(file, &sums[1], 4);
}

/* Records of which some hold the head of a record. */
static void records_by_many(void)
{
    static uint8_t payload[4096];
    const char *path = at("many.tfrecord");
    FILE *file = fopen(path, "wb");
    if (!file)
        abort();
    for (unsigned i = 0; i < 5000; i++) {
        const uint64_t claimed = draw(3000);
        const uint32_t sum = st_crc32c(&claimed, 8);
        const uint32_t masked = (sum >> 15 | sum << 17) + 0xa282ead8u;
        memset(payload, (int)i, sizeof payload);
        memcpy(payload + 40, &claimed, draw(2) ? 8 : 0);
        memcpy(payload + 48, &masked, 4);
        put_record(file, payload, 100 + draw(3000));
    }
    fclose(file);
    ok(same_by_many(&st_shard_kind_record, path), "records by many threads as by one");
    bool good = true;
    for (int round = 0; round < 6 && good; round++) {
        struct stat info;
        if (stat(path, &info))
            abort();
        const off_t place = (off_t)(info.st_size - 1 - draw((uint32_t)info.st_size / 20));
        const int fd = open(path, O_RDWR);
        if (fd < 0 || (round % 2 ? ftruncate(fd, place) : pwrite(fd, "damage", 6, place) != 6) ||
            close(fd))
            abort();
        good = same_by_many(&st_shard_kind_record, path);
    }
    ok(good, "so where they are damaged or cut off");
}

static void by_many(void)
{
    static const struct {
        unsigned odd;
        const char *what;
    } kinds[] = {{0, "plain members"},
                 {ODD_LONG, "members of two headers"},
                 {ODD_NESTED, "tar files in it"},
                 {ODD_LINKS, "folders and links that state a size"},
                 {ODD_FAKES, "payloads of headers that lie"},
                 {ODD_ALL, "all of that, and old headers"}};
    const char *path = at("many.tar");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        make_odd(path, 4000, kinds[i].odd);
        ok(same_by_many(&st_shard_kind_tar, path), "by many threads as by one: %s", kinds[i].what);
    }
    const uint32_t rounds = 3 * share_of(4); /* there are three kinds of damage */
    bool good = true;
    for (uint32_t round = 0; round < rounds && good; round++) {
        make_odd(path, 3000, ODD_ALL);
        struct stat info;
        if (stat(path, &info))
            abort();
        const off_t place = (off_t)draw((uint32_t)info.st_size);
        const int fd = open(path, O_RDWR);
        if (fd < 0 || (round % 3 == 0 && ftruncate(fd, place)) ||
            (round % 3 == 1 && pwrite(fd, "damage", 6, place) != 6) ||
            (round % 3 == 2 && pwrite(fd, (uint8_t[1024]){0}, 1024, place / 512 * 512) != 1024) ||
            close(fd))
            abort();
        good = same_by_many(&st_shard_kind_tar, path);
    }
    ok(good, "so with archives that are cut off, damaged, or end in the middle");
}

int main(void)
{
    tree_make();
    trails();
    by_many();
    records_by_many();
    tree_remove();
    return done_testing();
}
