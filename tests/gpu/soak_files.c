/* soak_files.c - writes archives of random JPEG files, for the soak of a GPU's JPEG hardware
 *
 *   soak_files FOLDER GOOD DAMAGED SEED
 *
 * makes tar files of up to 4096 images each: FOLDER/good-00.tar, ... with GOOD images of every kind that
 * libjpeg encodes, and FOLDER/damaged-00.tar, ... with DAMAGED more. An image depends on the seed and
 * its number only. Its name says how it was made.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg_encode.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { SHARD = 4096, BLOCK = 512, MARGIN = 256 };
enum { SOF0 = 0xC0, SOF1 = 0xC1, SOF2 = 0xC2, SOS = 0xDA, DQT = 0xDB, COM = 0xFE };

/* ---- random numbers ------------------------------------------------------------------------------- */

static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}
static int below(uint64_t *state, int end) { return (int)(next(state) % (uint64_t)end); }
static bool in_percent(uint64_t *state, int percent) { return below(state, 100) < percent; }

/* ---- pictures ------------------------------------------------------------------------------------- */

enum style { NOISE, FLAT, CHECKS, GRADIENT, SHAPES, STYLES };
static const char *const style_name[] = {"noise", "flat", "checks", "gradient", "shapes"};

struct picture {
    enum style style;
    uint64_t seed;
    uint8_t colour[2][4];
    int period; /* of checks and shapes, in pixels */
    int slope[2][4];
};

static struct picture draw_picture(uint64_t *state)
{
    static const int period[] = {1, 2, 3, 8, 16, 29};
    struct picture picture = {.style = (enum style)below(state, STYLES),
                              .seed = next(state),
                              .period = period[below(state, 6)]};
    for (int k = 0; k < 8; k++) {
        const uint8_t value = (uint8_t)below(state, 256);
        picture.colour[k / 4][k % 4] = picture.style == CHECKS ? (uint8_t)(value & 1 ? 255 : 0) : value;
        picture.slope[k / 4][k % 4] = below(state, 1025) - 512;
    }
    return picture;
}

static uint8_t value_at(const struct picture *picture, uint64_t noise, int x, int y, int c)
{
    const int check = (x / picture->period + y / picture->period) & 1;
    const int wave = (x * x / (picture->period + 7) + y * y / 11 + 40 * c) & 255;
    switch (picture->style) {
    case NOISE:
        return (uint8_t)(noise >> 8 * c);
    case GRADIENT:
        return (uint8_t)(picture->colour[0][c] +
                         (x * picture->slope[0][c] + y * picture->slope[1][c]) / 128);
    case SHAPES:
        return (uint8_t)((picture->colour[check][c] + wave + (int)(noise >> 8 * c & 15)) / 2);
    default:
        return picture->colour[picture->style == CHECKS ? check : 0][c];
    }
}

static void paint(const struct jpeg_kind *kind, uint8_t *row, int y)
{
    const struct picture *picture = kind->picture;
    uint64_t state = picture->seed + (uint64_t)y * 0x10001;
    for (int x = 0; x < kind->width; x++) {
        const uint64_t noise = next(&state);
        for (int c = 0; c < kind->components; c++)
            row[x * kind->components + c] = value_at(picture, noise, x, y, c);
    }
}

/* ---- kinds of files ------------------------------------------------------------------------------- */

struct variant {
    const char *name;
    int weight;
    struct jpeg_kind kind;
};
static const struct variant variants[] = {
    {"444", 20, {.components = 3}},
    {"422", 20, {.components = 3, .h = {2}}},
    {"440", 16, {.components = 3, .v = {2}}},
    {"420", 21, {.components = 3, .h = {2}, .v = {2}}},
    {"tables", 3, {.components = 3, .h = {2}, .v = {2}, .tables = true}},
    {"411", 1, {.components = 3, .h = {4}}},
    {"410", 1, {.components = 3, .h = {4}, .v = {2}}},
    {"unequal", 1, {.components = 3, .h = {2, 2, 1}, .v = {2, 1, 1}}},
    {"inverted", 1, {.components = 3, .h = {1, 2, 2}}},
    {"444x2", 1, {.components = 3, .h = {2, 2, 2}}},
    {"grey", 4, {.components = 1}},
    {"grey_factors", 1, {.components = 1, .h = {2}, .v = {2}}},
    {"cmyk", 1, {.components = 4}},
    {"ycck", 1, {.components = 4, .space = JCS_YCCK}},
    {"rgb", 1, {.components = 3, .space = JCS_RGB}},
    {"progressive", 1, {.components = 3, .h = {2}, .v = {2}, .progressive = true}},
    {"scans", 1, {.components = 3, .separate = true}},
    {"arithmetic", 1, {.components = 3, .arithmetic = true}},
    {"wide", 1, {.components = 3, .wide = true}},
    {"plain", 1, {.components = 3, .h = {2}, .plain = true}},
    {"adobe", 1, {.components = 3, .h = {2}, .v = {2}, .plain = true, .adobe = 2}},
    {"adobe_rgb", 1, {.components = 3, .plain = true, .adobe = 1}},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

static const struct variant *draw_variant(uint64_t *state)
{
    int at = below(state, 100), k = 0;
    while (k < VARIANTS - 1 && at >= variants[k].weight)
        at -= variants[k++].weight;
    return &variants[k];
}

/* Mostly small, so that many files take little time. */
static int draw_side(uint64_t *state, int size_class)
{
    return 1 + below(state, size_class < 10   ? 9
                            : size_class < 70 ? 64
                            : size_class < 95 ? 200
                            : size_class < 99 ? 500
                                              : 1300);
}

static struct jpeg_kind draw_kind(uint64_t *state, const struct variant *variant)
{
    struct jpeg_kind kind = variant->kind;
    const int size_class = below(state, 100);
    kind.width = draw_side(state, size_class);
    kind.height = draw_side(state, size_class);
    kind.quality = 1 + below(state, 100);
    if (in_percent(state, 30))
        kind.restart = 1 + below(state, in_percent(state, 50) ? 4 : 60);
    kind.optimized = !kind.arithmetic && in_percent(state, 30);
    return kind;
}

/* ---- changes of a file -----------------------------------------------------------------------------
 */

struct file {
    uint8_t *data;
    size_t size; /* there is room for MARGIN bytes more */
};

static size_t place_in(uint64_t *state, const struct file *file) { return next(state) % file->size; }

/* The marker after the one at `at`. */
static size_t next_marker(const struct file *file, size_t at)
{
    return at + 2 + ((size_t)file->data[at + 2] << 8 | file->data[at + 3]);
}

/* Where the first segment with a marker from `low` to `high` begins; the scan's if there is none. */
static size_t find_segment(const struct file *file, uint8_t low, uint8_t high)
{
    size_t at = 2;
    while (file->data[at + 1] != SOS && (file->data[at + 1] < low || file->data[at + 1] > high))
        at = next_marker(file, at);
    return at;
}

static size_t scan_of(const struct file *file)
{
    return next_marker(file, find_segment(file, SOS, SOS));
}

static void make_room(struct file *file, size_t at, size_t count)
{
    memmove(file->data + at + count, file->data + at, file->size - at);
    file->size += count;
}

/* ---- what is allowed, and unusual ------------------------------------------------------------------
 */

static void rename_components(uint64_t *state, struct file *file)
{
    const size_t frame = find_segment(file, SOF0, SOF1), scan = find_segment(file, SOS, SOS);
    const size_t count = file->data[frame + 9];
    const uint8_t first = (uint8_t)below(state, 'R' - 4); /* never R, G, B */
    if (frame == scan || file->data[scan + 4] != count) /* several scans */
        return;
    for (size_t k = 0; k < count; k++)
        file->data[frame + 10 + 3 * k] = file->data[scan + 5 + 2 * k] = (uint8_t)(first + k);
}

static void fill(uint64_t *state, struct file *file)
{
    const size_t at =
        in_percent(state, 50) ? find_segment(file, DQT, DQT) : find_segment(file, SOS, SOS);
    const size_t count = 1 + (size_t)below(state, 5);
    make_room(file, at, count);
    memset(file->data + at, 0xFF, count);
}

static void comment(uint64_t *state, struct file *file)
{
    const size_t at = find_segment(file, DQT, DQT), count = 4 + (size_t)below(state, 200);
    make_room(file, at, count);
    for (size_t k = 4; k < count; k++)
        file->data[at + k] = (uint8_t)below(state, 256);
    memcpy(file->data + at, (uint8_t[]){0xFF, COM, 0, (uint8_t)(count - 2)}, 4);
}

/* Bytes behind the end. */
static void append(uint64_t *state, struct file *file)
{
    for (int k = 1 + below(state, MARGIN); k > 0; k--)
        file->data[file->size++] = (uint8_t)below(state, 256);
}

/* ---- damage --------------------------------------------------------------------------------------- */

static void cut(uint64_t *state, struct file *file) { file->size = 1 + place_in(state, file); }

static void flip_bits(uint64_t *state, struct file *file)
{
    const size_t scan = scan_of(file);
    for (int k = 1 + below(state, 12); k > 0 && scan < file->size; k--)
        file->data[scan + next(state) % (file->size - scan)] ^= (uint8_t)(1 << below(state, 8));
}

static void change_bytes(uint64_t *state, struct file *file)
{
    for (int k = 1 + below(state, 4); k > 0; k--)
        file->data[place_in(state, file)] = (uint8_t)below(state, 256);
}

/* A segment's length becomes another; one of a table or of the frame, mostly. */
static void change_length(uint64_t *state, struct file *file)
{
    size_t at = 2;
    for (int k = below(state, 6); k > 0 && file->data[at + 1] != SOS; k--)
        at = next_marker(file, at);
    file->data[at + 3] = (uint8_t)(file->data[at + 3] + 1 + below(state, 255));
}

static void remove_bytes(uint64_t *state, struct file *file)
{
    const size_t at = place_in(state, file), most = file->size - at;
    const size_t count = 1 + next(state) % (most < 40 ? most : 40);
    memmove(file->data + at, file->data + at + count, most - count);
    file->size -= count == file->size ? 0 : count;
}

static void insert_bytes(uint64_t *state, struct file *file)
{
    const size_t at = place_in(state, file), count = 1 + (size_t)below(state, MARGIN);
    make_room(file, at, count);
    for (size_t k = 0; k < count; k++)
        file->data[at + k] = (uint8_t)below(state, 256);
}

/* A restart marker, or another, where none belongs; or a fill byte. */
static void put_marker(uint64_t *state, struct file *file)
{
    static const uint8_t marker[] = {0xD0, 0xD3, 0xD7, 0xD8, 0xD9, 0xDA, 0xFE, 0xFF, 0x00, 0xC4, 0xDC};
    const size_t scan = scan_of(file);
    if (scan + 2 > file->size)
        return;
    const size_t at = scan + next(state) % (file->size - scan - 1);
    file->data[at] = 0xFF;
    file->data[at + 1] = marker[below(state, sizeof marker)];
}

static void lose_end(uint64_t *state, struct file *file)
{
    file->size -= file->size > 2 ? 1 + (size_t)below(state, 2) : 0;
}

/* The frame's height, width or sampling factors, or the precision. */
static void change_frame(uint64_t *state, struct file *file)
{
    static const int field[] = {4, 6, 8, 9, 11, 14};
    const size_t at = find_segment(file, SOF0, SOF2);
    if (file->data[at + 1] != SOS)
        file->data[at + (size_t)field[below(state, file->data[at + 9] > 1 ? 6 : 5)]] ^=
            (uint8_t)(1 << below(state, 7));
}

/* Larger steps of quantisation: coefficients around and beyond the usual range, in a file without
 * faults. */
static void amplify(uint64_t *state, struct file *file)
{
    const size_t at = find_segment(file, DQT, DQT), end = next_marker(file, at);
    const int factor = 2 + below(state, 6);
    if (file->data[at + 1] == SOS || file->data[at + 4] >> 4)
        return;
    for (size_t k = at + 5; k < end && (k - at - 4) % 65; k++) /* the first table */
        file->data[k] = (uint8_t)(file->data[k] * factor < 255 ? file->data[k] * factor : 255);
}

struct change {
    const char *name;
    void (*apply)(uint64_t *state, struct file *file);
};
static const struct change damages[] = {
    {"truncated", cut},        {"flipped", flip_bits},    {"bytes", change_bytes},
    {"length", change_length}, {"removed", remove_bytes}, {"inserted", insert_bytes},
    {"marker", put_marker},    {"no-end", lose_end},      {"frame", change_frame},
    {"loud", amplify},
};
static const struct change oddities[] = {
    {"ids", rename_components}, {"fill", fill}, {"comment", comment}, {"appended", append}};
enum { DAMAGES = sizeof damages / sizeof *damages, ODDITIES = sizeof oddities / sizeof *oddities };

static struct change draw_change(uint64_t *state, bool damaged)
{
    const struct change none = {"", NULL};
    if (damaged)
        return damages[below(state, DAMAGES)];
    return in_percent(state, 12) ? oddities[below(state, ODDITIES)] : none;
}

/* ---- archives ------------------------------------------------------------------------------------- */

static void put_octal(char *at, size_t digits, uint64_t value)
{
    for (at[digits] = 0; digits > 0; value >>= 3)
        at[--digits] = (char)('0' + (value & 7));
}

static bool put_member(FILE *to, const char *name, const struct file *file)
{
    static const uint8_t zeros[2 * BLOCK];
    char head[BLOCK] = {0};
    unsigned sum = 0;
    snprintf(head, 100, "%s", name);
    put_octal(head + 100, 7, 0644);
    put_octal(head + 108, 7, 0);
    put_octal(head + 116, 7, 0);
    put_octal(head + 124, 11, file->size);
    put_octal(head + 136, 11, 1000000000);
    memset(head + 148, ' ', 8);
    head[156] = '0';
    memcpy(head + 257, "ustar", 6);
    memcpy(head + 263, "00", 2);
    for (int k = 0; k < BLOCK; k++)
        sum += (unsigned char)head[k];
    put_octal(head + 148, 6, sum);
    const size_t padding = -file->size % BLOCK;
    return fwrite(head, BLOCK, 1, to) == 1 && fwrite(file->data, 1, file->size, to) == file->size &&
           fwrite(zeros, 1, padding, to) == padding;
}

static uint64_t seed;

static bool put_image(FILE *to, uint64_t number, bool damaged)
{
    uint64_t state = seed * 0x100000001B3u + number;
    const struct variant *variant = draw_variant(&state);
    const struct picture picture = draw_picture(&state);
    struct jpeg_kind kind = draw_kind(&state, variant);
    char name[100];
    struct file file;
    kind.paint = paint;
    kind.picture = &picture;
    uint8_t *made = jpeg_make(&kind, &file.size);
    file.data = realloc(made, file.size + MARGIN);
    if (!file.data) {
        free(made);
        return false;
    }
    const struct change change = draw_change(&state, damaged);
    if (change.apply)
        change.apply(&state, &file);
    snprintf(name, sizeof name, "%07llu-%s-%dx%d-q%d-r%d%s-%s%s%s.jpg", (unsigned long long)number,
             variant->name, kind.width, kind.height, kind.quality, kind.restart,
             kind.optimized ? "-optimized" : "", style_name[picture.style], change.apply ? "-" : "",
             change.name);
    const bool good = put_member(to, name, &file);
    free(file.data);
    return good;
}

/* Images `from` to `end` in one archive. */
static bool put_archive(const char *path, uint64_t from, uint64_t end, bool damaged)
{
    static const uint8_t zeros[2 * BLOCK];
    FILE *to = fopen(path, "wb");
    bool good = to != NULL;
    for (; good && from < end; from++)
        good = put_image(to, from, damaged);
    good = good && fwrite(zeros, sizeof zeros, 1, to) == 1;
    if (to && fclose(to))
        good = false;
    if (!good)
        perror(path);
    return good;
}

static const char *folder;
static uint64_t good_count, all_count;
static atomic_uint_fast64_t next_shard;
static atomic_bool failed;

static uint64_t shards_of(uint64_t files) { return (files + SHARD - 1) / SHARD; }

static void *write_shards(void *nothing)
{
    const uint64_t good_shards = shards_of(good_count),
                   all = good_shards + shards_of(all_count - good_count);
    char path[4096];
    for (uint64_t shard; (shard = atomic_fetch_add(&next_shard, 1)) < all && !failed;) {
        const bool damaged = shard >= good_shards;
        const uint64_t place = damaged ? shard - good_shards : shard;
        const uint64_t from = (damaged ? good_count : 0) + place * SHARD,
                       limit = damaged ? all_count : good_count;
        snprintf(path, sizeof path, "%s/%s-%02llu.tar", folder, damaged ? "damaged" : "good",
                 (unsigned long long)place);
        if (!put_archive(path, from, from + SHARD < limit ? from + SHARD : limit, damaged))
            failed = true;
    }
    return nothing;
}

int main(int argc, char **argv)
{
    enum { THREADS_MOST = 64 };
    pthread_t thread[THREADS_MOST];
    long wanted = sysconf(_SC_NPROCESSORS_ONLN), started = 0;
    if (argc != 5) {
        fputs("usage: soak_files FOLDER GOOD DAMAGED SEED\n", stderr);
        return 2;
    }
    folder = argv[1];
    good_count = strtoull(argv[2], NULL, 10);
    all_count = good_count + strtoull(argv[3], NULL, 10);
    seed = strtoull(argv[4], NULL, 10);
    wanted = wanted < 1 ? 1 : wanted < THREADS_MOST ? wanted : THREADS_MOST;
    while (started < wanted - 1 && !pthread_create(&thread[started], NULL, write_shards, NULL))
        started++;
    write_shards(NULL);
    while (started > 0)
        pthread_join(thread[--started], NULL);
    return failed ? 1 : 0;
}
