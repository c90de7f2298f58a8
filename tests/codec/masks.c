/* masks.c - what src/codec/mask makes of masks, for compare_masks.py, and how long it takes
 *
 * A line of standard input is one mask; a line of standard output is its pixels as JSON, or an error:
 *
 *     polygon WIDTH HEIGHT X Y X Y ...
 *     text WIDTH HEIGHT TEXT           compressed run lengths
 *     counts WIDTH HEIGHT COUNT ...
 *     time REPETITIONS                 from here on, also how many seconds one drawing took
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/mask/polygon.h"
#include "codec/mask/rle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct work {
    uint32_t width, height;
    struct st_arena arena, scratch; /* the second is for the drawing alone */
    unsigned repetitions;           /* 0: nothing is measured */
    double seconds;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Draws what the word says, for as often as it is to be measured. */
static int draw(struct work *work, const struct st_polygon *polygon, const struct st_rle *rle,
                struct st_bytes text, const struct st_view *plane, struct stoker_error *err)
{
    struct st_turns turns = {0};
    int rc = 0;
    const double began = now();
    for (unsigned k = 0; k < (work->repetitions ? work->repetitions : 1) && !rc; k++) {
        struct st_rle read;
        if (work->repetitions) {
            st_arena_reset(&work->scratch);
            turns = (struct st_turns){0};
            memset(plane->data, 0, (size_t)work->width * work->height);
        }
        if (text.data)
            rc = st_rle_read(&read, text, work->width, work->height, &work->scratch, err);
        if (!rc)
            rc = polygon ? st_polygon_draw(polygon, plane, (struct st_brush){1}, &turns, &work->scratch, err)
                         : st_rle_draw(text.data ? &read : rle, plane, (struct st_brush){1}, &work->scratch, err);
    }
    work->seconds = (now() - began) / (work->repetitions ? work->repetitions : 1);
    return rc;
}

static void put(const struct work *work, const uint8_t *pixels)
{
    printf("{\"seconds\": %.9f, \"pixels\": \"", work->seconds);
    for (size_t i = 0; i < (size_t)work->width * work->height && !work->repetitions; i++)
        putchar('0' + pixels[i]);
    puts("\"}");
}

static int read_counts(struct work *work, char **words, uint64_t room, struct st_rle *out,
                       struct stoker_error *err)
{
    uint32_t *counts = st_arena_take(&work->arena, room * sizeof *counts);
    *out = (struct st_rle){work->width, work->height, counts, 0};
    for (char *word; counts && (word = strtok_r(NULL, " \n", words)); out->count++)
        counts[out->count] = (uint32_t)strtoul(word, NULL, 10);
    return counts ? st_rle_check(out, err) : STOKER_ENOMEM;
}

static int read_polygon(struct work *work, char **words, uint64_t room, struct st_polygon *out)
{
    double *xy = st_arena_take(&work->arena, room * sizeof *xy);
    uint64_t count = 0;
    for (char *word; xy && (word = strtok_r(NULL, " \n", words)); count++)
        xy[count] = strtod(word, NULL);
    *out = (struct st_polygon){xy, count / 2};
    return xy ? 0 : STOKER_ENOMEM;
}

static void do_line(struct work *work, char *line)
{
    struct stoker_error err = {0};
    struct st_polygon polygon;
    struct st_rle rle = {0};
    struct st_bytes text = {0};
    const uint64_t room = strlen(line) + 1;
    char *words, *kind = strtok_r(line, " \n", &words);
    work->width = (uint32_t)strtoul(strtok_r(NULL, " \n", &words), NULL, 10);
    if (!strcmp(kind, "time")) {
        work->repetitions = work->width;
        return;
    }
    work->height = (uint32_t)strtoul(strtok_r(NULL, " \n", &words), NULL, 10);
    const bool is_polygon = !strcmp(kind, "polygon");
    int rc;
    if (is_polygon) {
        rc = read_polygon(work, &words, room, &polygon);
    } else if (!strcmp(kind, "text")) {
        const char *word = strtok_r(NULL, " \n", &words);
        text = (struct st_bytes){(const uint8_t *)(word ? word : ""), word ? strlen(word) : 0};
        rc = st_rle_read(&rle, text, work->width, work->height, &work->arena, &err);
    } else {
        rc = read_counts(work, &words, room, &rle, &err);
    }
    uint8_t *pixels = rc ? NULL : calloc(work->width, work->height);
    const struct st_view plane = {pixels, work->width, (int32_t)work->width, (int32_t)work->height, 1};
    if (pixels)
        rc = draw(work, is_polygon ? &polygon : NULL, &rle, text, &plane, &err);
    if (rc || !pixels)
        printf("{\"code\": %d, \"error\": \"%s\"}\n", rc, err.message);
    else
        put(work, pixels);
    free(pixels);
}

int main(void)
{
    struct work work = {0};
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 1) {
        do_line(&work, line);
        st_arena_reset(&work.arena);
        st_arena_reset(&work.scratch);
    }
    st_arena_free(&work.arena);
    st_arena_free(&work.scratch);
    free(line);
    return 0;
}
