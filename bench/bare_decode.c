/* bare_decode.c - the yardstick: libjpeg-turbo decodes whole images from memory, and nothing else
 *
 *     cc -O2 -D_GNU_SOURCE bare_decode.c -o bare_decode $(pkg-config --cflags --libs libjpeg) -lpthread
 *     ./bare_decode THREADS SECONDS FILE...
 *
 * Prints images a second. Settings are those of Pillow: accurate integer DCT, fancy upsampling.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <jpeglib.h>

struct file {
    unsigned char *data;
    unsigned long size;
};

static struct file *files;
static int file_count;
static double seconds;
static atomic_int next_thread;
static atomic_ulong decoded;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool load(const char *path, struct file *out)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    bool good = !fseek(f, 0, SEEK_END);
    const long size = good ? ftell(f) : -1;
    out->data = size > 0 ? malloc((size_t)size) : NULL;
    out->size = (unsigned long)size;
    good = out->data && !fseek(f, 0, SEEK_SET) && fread(out->data, 1, (size_t)size, f) == (size_t)size;
    fclose(f);
    return good;
}

/* Decodes to RGB rows of `room`, which grows as needed. */
static void decode(const struct file *file, unsigned char **room, size_t *room_size)
{
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors; /* the default one exits: the files here are sound */
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, file->data, file->size);
    jpeg_read_header(&jpeg, TRUE);
    if (jpeg.num_components == 3)
        jpeg.out_color_space = JCS_RGB;
    jpeg_start_decompress(&jpeg);
    const size_t stride = (size_t)jpeg.output_width * (size_t)jpeg.output_components;
    if (stride * jpeg.output_height > *room_size) {
        *room_size = stride * jpeg.output_height;
        free(*room);
        *room = malloc(*room_size);
        if (!*room)
            exit(1);
    }
    while (jpeg.output_scanline < jpeg.output_height) {
        JSAMPROW row = *room + stride * jpeg.output_scanline;
        jpeg_read_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_decompress(&jpeg);
    jpeg_destroy_decompress(&jpeg);
}

static void *work(void *unused)
{
    (void)unused;
    unsigned char *room = NULL;
    size_t room_size = 0;
    unsigned long done = 0;
    int at = atomic_fetch_add(&next_thread, 1) * 37 % file_count; /* threads begin at different files */
    for (const double end = now() + seconds; now() < end; done++) {
        decode(&files[at], &room, &room_size);
        at = (at + 1) % file_count;
    }
    atomic_fetch_add(&decoded, done);
    free(room);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: bare_decode THREADS SECONDS FILE...\n");
        return 2;
    }
    const int threads = atoi(argv[1]);
    seconds = atof(argv[2]);
    file_count = argc - 3;
    files = calloc((size_t)file_count, sizeof *files);
    pthread_t *thread = calloc(threads > 0 ? (size_t)threads : 1, sizeof *thread);
    if (!files || !thread || threads < 1)
        return 1;
    for (int i = 0; i < file_count; i++)
        if (!load(argv[3 + i], &files[i])) {
            fprintf(stderr, "%s cannot be read\n", argv[3 + i]);
            return 1;
        }
    const double start = now();
    for (int i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, work, NULL))
            return 1;
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    printf("%.1f\n", (double)decoded / (now() - start));
    return 0;
}
