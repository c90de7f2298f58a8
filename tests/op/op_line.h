/* op_line.h - a few ops one after the other, for tests
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_OP_LINE_H
#define ST_TESTS_OP_LINE_H

#include "op/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX = 16 };

struct op_line {
    const struct st_op *op[LINE_MAX];
    void *self[LINE_MAX];
    uint32_t count;
    struct st_shape shape;
    struct st_finish_spec spec;
};

static inline void line_set(void *self, const struct st_param *param, const char *text)
{
    void *to = (char *)self + param->offset;
    int32_t word = -1;
    for (int32_t i = 0; param->words && param->words[i]; i++)
        if (strcmp(param->words[i], text) == 0)
            word = i;
    if (param->type == ST_PARAM_WORD) {
        *(int32_t *)to = word;
    } else if (param->type == ST_PARAM_LIST) {
        struct st_list *list = to;
        *list = (struct st_list){.word = (uint32_t)(word + 1)};
        char *end = (char *)text;
        while (!list->word && *text && list->count < sizeof list->value / sizeof *list->value) {
            list->value[list->count++] = strtod(text, &end);
            text = *end == ',' ? end + 1 : end;
        }
    } else if (param->type == ST_PARAM_INT) {
        *(int32_t *)to = atoi(text);
    } else if (param->type == ST_PARAM_BOOL) {
        *(bool *)to = atoi(text) != 0;
    } else {
        *(double *)to = strtod(text, NULL);
    }
}

/* Adds "name key=value key=1,2,3"; false for a name or key that does not exist. */
static inline bool line_add(struct op_line *line, const char *text)
{
    char copy[512], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", text);
    const char *name = strtok_r(copy, " ", &rest);
    const struct st_op *op = name ? st_op_find(name) : NULL;
    if (!op || line->count == LINE_MAX)
        return false;
    void *self = calloc(1, op->self_size + 1);
    line->op[line->count] = op;
    line->self[line->count++] = self;
    for (const struct st_param *param = op->params; param->name; param++) {
        if (param->type == ST_PARAM_FLOAT)
            *(double *)((char *)self + param->offset) = param->def;
        else if (param->type == ST_PARAM_INT || param->type == ST_PARAM_WORD)
            *(int32_t *)((char *)self + param->offset) = (int32_t)param->def;
        else if (param->type == ST_PARAM_BOOL)
            *(bool *)((char *)self + param->offset) = param->def != 0;
    }
    for (char *pair; (pair = strtok_r(NULL, " ", &rest));) {
        char *value = strchr(pair, '=');
        if (!value)
            return false;
        *value++ = '\0';
        const struct st_param *param = op->params;
        while (param->name && strcmp(param->name, pair) != 0)
            param++;
        if (!param->name)
            return false;
        line_set(self, param, value);
    }
    return true;
}

/* Random bytes, to be freed. */
static inline struct st_view noise(int32_t width, int32_t height, int32_t channels, uint64_t seed)
{
    const size_t row = (size_t)width * (size_t)channels;
    struct st_view v = {malloc(row * (size_t)height + 64), (ptrdiff_t)row, width, height, channels};
    struct st_rng rng;
    st_rng_init(&rng, seed, 0, 0, 0);
    for (size_t i = 0; i < row * (size_t)height; i++)
        v.data[i] = (uint8_t)st_rng_u32(&rng);
    return v;
}

/* Several ops with ';' between them. */
static inline bool line_open(struct op_line *line, const char *text)
{
    char copy[512], *rest = NULL;
    bool fine = true;
    *line = (struct op_line){0};
    snprintf(copy, sizeof copy, "%s", text);
    for (char *op = strtok_r(copy, ";", &rest); op; op = strtok_r(NULL, ";", &rest))
        fine = fine && line_add(line, op);
    return fine;
}

static inline int line_plan(struct op_line *line, int32_t width, int32_t height, int32_t channels,
                            struct stoker_error *err)
{
    line->shape = (struct st_shape){.width = width, .height = height, .channels = channels};
    line->spec = (struct st_finish_spec){.dtype = STOKER_DTYPE_U8};
    for (uint32_t i = 0; i < line->count; i++)
        if (line->op[i]->plan) {
            const int rc = line->op[i]->plan(line->self[i], &line->shape, &line->spec, err);
            if (rc < 0)
                return rc;
        }
    return STOKER_OK;
}

/* All ops but erasing. */
static inline int line_run(const struct op_line *line, struct st_image *image, uint64_t seed,
                           struct stoker_error *err)
{
    int rc = STOKER_OK;
    for (uint32_t i = 0; rc >= 0 && i < line->count; i++) {
        struct st_rng rng;
        st_rng_init(&rng, seed, 0, 0, i);
        if (line->op[i]->run)
            rc = line->op[i]->run(line->self[i], &rng, image, err);
    }
    return rc;
}

/* Into `data`, whatever is left, and erasing. */
static inline int line_finish(const struct op_line *line, struct st_image *image,
                              enum stoker_dtype dtype, enum stoker_layout layout, void *data,
                              uint64_t seed, struct stoker_error *err)
{
    struct st_finish finish;
    int rc = st_finish_init(&finish, &line->spec, dtype, layout, line->shape.channels, err);
    if (rc < 0)
        return rc;
    const struct st_place place = {data, st_image_width(image), st_image_height(image)};
    const struct st_erase_into into = {&line->spec, &finish, place.width, place.height, &image->work->arena};
    rc = st_image_finish(image, &finish, &place, err);
    for (uint32_t i = 0; rc >= 0 && i < line->count; i++) {
        struct st_rng rng;
        struct st_erase erase;
        st_rng_init(&rng, seed, 0, 0, i);
        if (line->op[i]->erase && (rc = line->op[i]->erase(line->self[i], &rng, &into, &erase, err)) >= 0)
            st_erase_write(&erase, &finish, &place);
    }
    return rc;
}

static inline void line_free(struct op_line *line)
{
    for (uint32_t i = 0; i < line->count; i++)
        free(line->self[i]);
    line->count = 0;
}

static inline struct st_work work_make(enum st_cpu_level level)
{
    return (struct st_work){
        .kernels = st_kernels_for(level), .colour = st_colour_rows_for(level), .level = level, .pillow = 13};
}

static inline void work_free(struct st_work *work)
{
    st_arena_free(&work->arena);
    st_decoder_close(&work->decoder);
}

/* Runs the ops on pixels; the result is uint8 NHWC, to be freed. */
static inline struct st_view run_on(struct st_work *work, const struct st_view *in, const char *text,
                                    uint64_t seed, int *status, struct stoker_error *err)
{
    struct op_line line;
    struct st_image image;
    struct st_view out = {0};
    st_arena_reset(&work->arena);
    *status = line_open(&line, text) ? line_plan(&line, -1, -1, in->channels, err) : -100;
    st_image_wrap(&image, work, *in);
    if (*status >= 0)
        *status = line_run(&line, &image, seed, err);
    if (*status >= 0) {
        out = (struct st_view){.width = st_image_width(&image),
                               .height = st_image_height(&image),
                               .channels = st_image_channels(&image)};
        out.stride = (ptrdiff_t)out.width * out.channels;
        out.data = malloc((size_t)out.stride * (size_t)out.height + 64);
        *status = line_finish(&line, &image, STOKER_DTYPE_U8, STOKER_LAYOUT_NHWC, out.data, seed, err);
    }
    line_free(&line);
    return out;
}

#endif
