/* jpeg_bench.c - our JPEG decoder beside libjpeg-turbo, on the same files, in one interleaved run
 *
 *     cc -O2 -D_GNU_SOURCE -Iinclude -Isrc bench/jpeg_bench.c -o jpeg_bench \
 *         BUILD/libst_codec.a BUILD/libst_base.a $(pkg-config --libs libjpeg) -lm
 *     jpeg_bench [--restart N] [--progressive 1] [--rounds N] [--limit N] FILE.jpg or FOLDER...
 *
 * For each file in turn: the whole image by libjpeg-turbo (Pillow's settings), the whole by us, and by us
 * the box of a RandomResizedCrop: alone, noting marks, and from the marks of the whole image, as in later
 * epochs. With --restart the files are first rewritten, without loss, with
 * optimised tables and a restart marker every N MCUs, or with --progressive as progressive ones. Prints microseconds an image, the best round of each
 * file counting, and how often a file was not ours.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/clock.h"
#include "codec/jpeg/baseline.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

enum contestant { LIBJPEG, WHOLE, REGION, NOTING, MARKED, CONTESTANTS };
enum { FILES_MAX = 100000 };

struct file {
    struct st_bytes bytes;
    uint32_t width, height;
    struct st_region box;
    struct st_jpeg_marks marks;
    uint64_t best[CONTESTANTS]; /* nanoseconds */
};

static struct file *files;
static uint32_t file_count, file_limit = FILES_MAX, restart, progressive, rounds = 5;
static uint64_t random_state = 88172645463325252u;

static double uniform(double low, double high)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return low + (high - low) * (double)(random_state >> 11) / 9007199254740992.0;
}

/* torchvision's RandomResizedCrop(scale=(0.08, 1), ratio=(3/4, 4/3)). */
static struct st_region draw_box(uint32_t width, uint32_t height)
{
    for (int attempt = 0; attempt < 10; attempt++) {
        const double area = uniform(0.08, 1) * width * height,
                     ratio = exp(uniform(log(3. / 4), log(4. / 3)));
        const uint32_t w = (uint32_t)lround(sqrt(area * ratio)),
                       h = (uint32_t)lround(sqrt(area / ratio));
        if (w > 0 && w <= width && h > 0 && h <= height)
            return (struct st_region){(uint32_t)uniform(0, width - w + 1),
                                      (uint32_t)uniform(0, height - h + 1), w, h};
    }
    const uint32_t side = width < height ? width : height;
    return (struct st_region){(width - side) / 2, (height - side) / 2, side, side};
}

/* ---- files ------------------------------------------------------------------------------------- */

static struct st_bytes rewrite(struct st_bytes in)
{
    struct jpeg_decompress_struct from;
    struct jpeg_compress_struct to;
    struct jpeg_error_mgr errors; /* the default one exits: the files here are sound */
    unsigned char *out = NULL;
    unsigned long size = 0;
    from.err = to.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&from);
    jpeg_create_compress(&to);
    jpeg_mem_src(&from, in.data, in.size);
    jpeg_read_header(&from, TRUE);
    jvirt_barray_ptr *coefs = jpeg_read_coefficients(&from);
    jpeg_copy_critical_parameters(&from, &to);
    to.restart_interval = restart;
    to.optimize_coding = TRUE;
    if (progressive)
        jpeg_simple_progression(&to);
    jpeg_mem_dest(&to, &out, &size);
    jpeg_write_coefficients(&to, coefs);
    jpeg_finish_compress(&to);
    jpeg_destroy_compress(&to);
    jpeg_destroy_decompress(&from);
    free((void *)(uintptr_t)in.data);
    return (struct st_bytes){out, size};
}

static void add_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(1);
    }
    const long size = ftell(f);
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
    rewind(f);
    if (size <= 0 || !data || fread(data, 1, (size_t)size, f) != (size_t)size)
        exit(1);
    fclose(f);
    struct file *file = &files[file_count++];
    file->bytes = (struct st_bytes){data, (size_t)size};
    if (restart || progressive)
        file->bytes = rewrite(file->bytes);
    for (int k = 0; k < CONTESTANTS; k++)
        file->best[k] = UINT64_MAX;
}

static void add(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder) {
        if (file_count < file_limit)
            add_file(path);
        return;
    }
    for (struct dirent *entry; (entry = readdir(folder)) && file_count < file_limit;) {
        char name[4096];
        const char *dot = strrchr(entry->d_name, '.');
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            add(name);
        else if (dot && (!strcasecmp(dot, ".jpg") || !strcasecmp(dot, ".jpeg")))
            add_file(name);
    }
    closedir(folder);
}

/* ---- contestants ------------------------------------------------------------------------------- */

static void by_libjpeg(struct file *file, struct st_arena *arena)
{
    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr errors;
    c.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&c);
    jpeg_mem_src(&c, file->bytes.data, file->bytes.size);
    jpeg_read_header(&c, TRUE);
    c.out_color_space = JCS_RGB;
    jpeg_start_decompress(&c);
    file->width = c.output_width;
    file->height = c.output_height;
    uint8_t *rgb = st_arena_take(arena, (uint64_t)c.output_width * c.output_height * 3);
    while (rgb && c.output_scanline < c.output_height) {
        JSAMPROW row = rgb + (size_t)c.output_scanline * c.output_width * 3;
        jpeg_read_scanlines(&c, &row, 1);
    }
    jpeg_finish_decompress(&c);
    jpeg_destroy_decompress(&c);
}

static uint64_t not_ours[ST_JPEG_REASON_COUNT];

static void by_us(struct st_jpeg *decoder, const struct file *file, struct st_region region,
                  struct st_jpeg_marks *marks, struct st_arena *arena)
{
    struct st_view view;
    not_ours[st_jpeg_decode(decoder, file->bytes, region, NULL, marks, arena, &view)]++;
}

static struct st_region whole_of(const struct file *file)
{
    return (struct st_region){0, 0, file->width, file->height};
}

/* Each contestant has its own decoder: one that has just decoded the same file would have its tables. */
static void measure(struct file *file, struct st_jpeg *decoder[CONTESTANTS], struct st_arena *arena)
{
    for (int k = 0; k < CONTESTANTS; k++) {
        st_arena_reset(arena);
        const uint64_t start = st_now_ns();
        struct st_jpeg_marks none = {0};
        if (k == LIBJPEG)
            by_libjpeg(file, arena);
        else
            by_us(decoder[k], file, k == WHOLE ? whole_of(file) : file->box,
                  k == NOTING ? &none : k == MARKED ? &file->marks : NULL, arena);
        const uint64_t taken = st_now_ns() - start;
        if (file->box.width == 0) {
            file->box = draw_box(file->width, file->height);
            by_us(decoder[LIBJPEG], file, whole_of(file), &file->marks, arena);
        }
        file->best[k] = taken < file->best[k] ? taken : file->best[k];
    }
}

static void report(void)
{
    static const char *const name[CONTESTANTS] = {
        [LIBJPEG] = "libjpeg-turbo, whole",
        [WHOLE] = "ours, whole",
        [REGION] = "ours, region",
        [NOTING] = "noting marks",
        [MARKED] = "from marks",
    };
    double sum[CONTESTANTS] = {0}, bytes = 0;
    for (uint32_t f = 0; f < file_count; f++) {
        bytes += (double)files[f].bytes.size;
        for (int k = 0; k < CONTESTANTS; k++)
            sum[k] += (double)files[f].best[k] / 1e3 / file_count;
    }
    printf("%u files, %.0f bytes each\n", file_count, bytes / file_count);
    for (int k = 0; k < CONTESTANTS; k++)
        printf("%-24s %8.1f us  %5.2f\n", name[k], sum[k], sum[0] / sum[k]);
    for (int reason = 1; reason < ST_JPEG_REASON_COUNT; reason++)
        if (not_ours[reason])
            printf("not ours: %s, %.1f %%\n", st_jpeg_reason_name((enum st_jpeg_reason)reason),
                   100. * (double)not_ours[reason] / (4. * rounds * file_count + file_count));
}

int main(int argc, char **argv)
{
    files = calloc(FILES_MAX, sizeof *files);
    struct st_jpeg *decoder[CONTESTANTS];
    struct st_arena arena = {0};
    for (int k = 0; k < CONTESTANTS; k++)
        if (!(decoder[k] = st_jpeg_new()) || !files)
            return 1;
    for (int i = 1; i < argc; i++) {
        uint32_t *option = !strcmp(argv[i], "--restart")       ? &restart
                           : !strcmp(argv[i], "--progressive") ? &progressive
                           : !strcmp(argv[i], "--rounds")      ? &rounds
                           : !strcmp(argv[i], "--limit")       ? &file_limit
                                                               : NULL;
        if (option && i + 1 < argc)
            *option = (uint32_t)strtoul(argv[++i], NULL, 10);
        else
            add(argv[i]);
    }
    if (file_count == 0 || rounds == 0) {
        fprintf(stderr,
                "usage: jpeg_bench [--restart N] [--progressive 1] [--rounds N] [--limit N] "
                "FILE.jpg or FOLDER...\n");
        return 2;
    }
    for (uint32_t round = 0; round < rounds; round++)
        for (uint32_t f = 0; f < file_count; f++)
            measure(&files[f], decoder, &arena);
    report();
    return 0;
}
