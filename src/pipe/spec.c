/* spec.c - parses the text of a pipeline into its ops and their parameters
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/spec.h"

#include <ctype.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = ST_HELD_MAX, DEPTH_MAX = 6, WORD_MAX = 48 };

struct parser {
    const char *text, *at;
    uint32_t numbered; /* steps so far, including nested ones */
    uint32_t depth;
    const char *op; /* whose parameters are being parsed; NULL: none */
    struct stoker_error *err;
};

static int parse_list(struct parser *p, struct st_steps *out);

static int complain(struct parser *p, const char *what, const char *detail)
{
    return st_fail(p->err, STOKER_EINVAL, "pipeline, character %zu: %s%s%s%s",
                   (size_t)(p->at - p->text) + 1, p->op ? p->op : "", p->op ? ": " : "", what, detail);
}

static void skip_space(struct parser *p)
{
    while (isspace((unsigned char)*p->at))
        p->at++;
}

static bool accept(struct parser *p, char c)
{
    skip_space(p);
    if (*p->at != c)
        return false;
    p->at++;
    return true;
}

/* A name or a word: letters, digits, underscores. */
static int parse_word(struct parser *p, char out[WORD_MAX], const char *what)
{
    size_t length = 0;
    skip_space(p);
    while (isalnum((unsigned char)p->at[length]) || p->at[length] == '_')
        length++;
    if (length == 0 || length >= WORD_MAX)
        return complain(p, "expected ", what);
    memcpy(out, p->at, length);
    out[length] = '\0';
    p->at += length;
    return 0;
}

static int no_number(struct parser *p, const char *name)
{
    char text[200];
    const int given = (int)strcspn(p->at, ",;)]} \t\n");
    snprintf(text, sizeof text, "expected a number for %s%s%.*s%s", name, given ? ", not '" : "",
             given < 64 ? given : 64, p->at, given ? "'" : "");
    return complain(p, text, "");
}

/* Parses a number with a decimal point regardless of the process's locale. */
static int parse_number(struct parser *p, const char *name, double *out)
{
    char digits[64], *end;
    skip_space(p);
    const size_t length = strspn(p->at, "+-.0123456789eE");
    if (length == 0 || length >= sizeof digits)
        return no_number(p, name);
    memcpy(digits, p->at, length);
    digits[length] = '\0';

    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c)
        return st_fail(p->err, STOKER_ENOMEM, "pipeline: no memory to read a number");
    *out = strtod_l(digits, &end, c);
    freelocale(c);
    if (*end || !isfinite(*out))
        return no_number(p, name);
    p->at += length;
    return 0;
}

static int check_range(struct parser *p, const struct st_param *param, double value)
{
    char text[200];
    if (param->min < param->max && !(value >= param->min && value <= param->max)) {
        snprintf(text, sizeof text, "%s=%.10g is out of range (%.10g to %.10g)", param->name, value,
                 param->min, param->max);
        return complain(p, text, "");
    }
    if (param->type == ST_PARAM_INT && (value != floor(value) || fabs(value) > INT32_MAX)) {
        snprintf(text, sizeof text, "%s=%.10g is not an integer", param->name, value);
        return complain(p, text, "");
    }
    return 0;
}

static int parse_choice(struct parser *p, const struct st_param *param, int32_t *out)
{
    char word[WORD_MAX], text[400] = "";
    const char *const *words = param->words;
    const int rc = parse_word(p, word, "a word");
    if (rc)
        return rc;
    for (int32_t k = 0; words[k]; k++)
        if (!strcmp(words[k], word)) {
            *out = k;
            return 0;
        }
    for (int32_t k = 0; words[k]; k++) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s", k ? ", " : "", words[k]);
    }
    p->at -= strlen(word);
    return st_fail(p->err, STOKER_EINVAL, "pipeline, character %zu: %s: %s=%s is not one of: %s",
                   (size_t)(p->at - p->text) + 1, p->op, param->name, word, text);
}

static int parse_numbers(struct parser *p, const struct st_param *param, struct st_list *out)
{
    *out = (struct st_list){0};
    skip_space(p);
    if (param->words && isalpha((unsigned char)*p->at)) {
        int32_t word;
        const int rc = parse_choice(p, param, &word);
        out->word = rc ? 0 : (uint32_t)word + 1;
        return rc;
    }
    const bool many = accept(p, '[');
    if (many && accept(p, ']'))
        return complain(p, "empty list for ", param->name);
    do {
        double value;
        if (out->count == sizeof out->value / sizeof out->value[0])
            return complain(p, "too many numbers for ", param->name);
        int rc = parse_number(p, param->name, &value);
        if (rc || (rc = check_range(p, param, value)))
            return rc;
        out->value[out->count++] = value;
    } while (many && accept(p, ','));
    return many && !accept(p, ']') ? complain(p, "expected ']' after the list for ", param->name) : 0;
}

static int parse_value(struct parser *p, const struct st_param *param, uint8_t *self)
{
    static const char *const truth[] = {"false", "true", NULL};
    void *field = self + param->offset;
    double number;
    int32_t choice;
    int rc;

    switch (param->type) {
    case ST_PARAM_LIST:
        return parse_numbers(p, param, field);
    case ST_PARAM_WORD:
        return parse_choice(p, param, field);
    case ST_PARAM_BOOL:
        rc = parse_choice(p, &(struct st_param){.name = param->name, .words = truth}, &choice);
        if (!rc)
            *(bool *)field = choice;
        return rc;
    default:
        rc = parse_number(p, param->name, &number);
        if (rc || (rc = check_range(p, param, number)))
            return rc;
        if (param->type == ST_PARAM_INT)
            *(int32_t *)field = (int32_t)number;
        else
            *(double *)field = number;
        return 0;
    }
}

static void set_defaults(const struct st_op *op, uint8_t *self)
{
    for (const struct st_param *param = op->params; param && param->name; param++) {
        void *field = self + param->offset;
        switch (param->type) {
        case ST_PARAM_INT:
        case ST_PARAM_WORD: *(int32_t *)field = (int32_t)param->def; break;
        case ST_PARAM_FLOAT: *(double *)field = param->def; break;
        case ST_PARAM_BOOL: *(bool *)field = param->def != 0; break;
        case ST_PARAM_LIST: break; /* none given */
        }
    }
}

static int parse_arguments(struct parser *p, const struct st_op *op, uint8_t *self)
{
    uint64_t given = 0;
    set_defaults(op, self);
    if (accept(p, '(') && !accept(p, ')')) {
        do {
            char name[WORD_MAX];
            int rc = parse_word(p, name, "the name of a parameter");
            if (rc)
                return rc;
            const struct st_param *param = op->params;
            while (param && param->name && strcmp(param->name, name))
                param++;
            if (!param || !param->name)
                return complain(p, "there is no parameter ", name);
            const uint64_t bit = 1ull << (param - op->params);
            if (given & bit)
                return complain(p, "parameter given twice: ", name);
            given |= bit;
            if (!accept(p, '='))
                return complain(p, "expected '=' after ", name);
            if ((rc = parse_value(p, param, self)))
                return rc;
        } while (accept(p, ','));
        if (!accept(p, ')'))
            return complain(p, "expected ',' or ')' after a parameter", "");
    }
    for (const struct st_param *param = op->params; param && param->name; param++)
        if (param->required && !(given & 1ull << (param - op->params)))
            return st_fail(p->err, STOKER_EINVAL, "pipeline: %s requires %s=", op->name, param->name);
    return 0;
}

static int unknown_op(struct parser *p, const char *name)
{
    char known[1100] = "";
    for (const struct st_op *const *op = st_ops; *op; op++) {
        const size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", (*op)->name);
    }
    p->at -= strlen(name);
    return st_fail(p->err, STOKER_EINVAL, "pipeline, character %zu: unknown op %s. Known ops: %s",
                   (size_t)(p->at - p->text) + 1, name, known);
}

static int parse_op(struct parser *p, struct st_step *step)
{
    char name[WORD_MAX];
    int rc = parse_word(p, name, "the name of an op");
    if (rc)
        return rc;
    step->op = st_op_find(name);
    if (!step->op)
        return unknown_op(p, name);
    if (p->numbered == STEPS_MAX)
        return complain(p, "too many ops", "");
    step->number = p->numbered++;
    step->self = st_calloc(1, step->op->self_size);
    if (!step->self)
        return st_fail(p->err, STOKER_ENOMEM, "pipeline: no memory for %s", name);
    p->op = step->op->name;
    rc = parse_arguments(p, step->op, step->self);
    p->op = NULL;
    if (rc)
        return rc;
    if (!accept(p, '{'))
        return step->op->holds ? complain(p, "expected '{' after ", name) : 0;
    if (!step->op->holds)
        return complain(p, name, " cannot contain other ops");
    if (++p->depth > DEPTH_MAX)
        return complain(p, "ops are nested too deeply", "");
    rc = parse_list(p, &step->inner);
    p->depth--;
    return rc || accept(p, '}') ? rc : complain(p, "expected '}'", "");
}

static int parse_list(struct parser *p, struct st_steps *out)
{
    for (;;) {
        skip_space(p);
        if (!*p->at || *p->at == '}')
            return 0;
        struct st_step *grown = st_grow(out->step, out->count + 1, sizeof *grown);
        if (!grown)
            return st_fail(p->err, STOKER_ENOMEM, "pipeline: no memory for its ops");
        out->step = grown;
        memset(&grown[out->count], 0, sizeof *grown);
        const int rc = parse_op(p, &grown[out->count++]); /* counted first, so that it is freed */
        if (rc)
            return rc;
        skip_space(p);
        if (!accept(p, ';') && *p->at && *p->at != '}')
            return complain(p, "expected ';' between ops", "");
    }
}

int st_spec_parse(struct st_steps *out, const char *text, struct stoker_error *err)
{
    struct parser p = {.text = text, .at = text, .err = err};
    *out = (struct st_steps){0};
    int rc = parse_list(&p, out);
    if (!rc && *p.at)
        rc = complain(&p, "unexpected '}'", "");
    if (rc)
        st_steps_free(out);
    return rc;
}

void st_steps_free(struct st_steps *steps)
{
    for (uint32_t k = 0; k < steps->count; k++) {
        const struct st_step *step = &steps->step[k];
        st_steps_free(&steps->step[k].inner);
        if (step->self && step->op->drop)
            step->op->drop(step->self);
        free(steps->step[k].self);
    }
    free(steps->step);
    *steps = (struct st_steps){0};
}
