/* Concat, Subset and Mix. */
#include "pieces.h"
#include "tap.h"
#include "tree.h"

#include <math.h>
#include <stdlib.h>

enum { PART_MAX = 3000 };

/* A part in memory whose sample i has the label first + i and that number as its bytes. */
static struct stoker_dataset *part(int64_t first, uint64_t count)
{
    static int64_t numbers[8][PART_MAX];
    static struct stoker_item items[PART_MAX];
    static int turn;
    int64_t *own = numbers[turn++ % 8];
    struct stoker_dataset *data = NULL;
    for (uint64_t i = 0; i < count; i++) {
        own[i] = first + (int64_t)i;
        items[i] = (struct stoker_item){&own[i], sizeof own[i], own[i]};
    }
    st_dataset_from_memory(&data, items, count, NULL);
    return data;
}

/* What a sample's fields say; -1 when the image and the label do not agree. */
static int64_t number_of(struct stoker_dataset *data, uint64_t sample)
{
    struct st_buffer buffer = {0}, scratch = {0};
    struct st_bytes raw;
    struct st_piece pieces[ST_FIELDS_MAX];
    int64_t number = -2;
    if (!st_read_sample(data, sample, &buffer, &raw, NULL) &&
        !data->source->split(data->self, sample, raw, &scratch, pieces, NULL) &&
        pieces[0].bytes.size == 8) {
        memcpy(&number, pieces[0].bytes.data, 8);
        number = pieces[1].whole == number && st_dataset_label(data, sample) == number ? number : -1;
    }
    st_buffer_free(&buffer);
    st_buffer_free(&scratch);
    return number;
}

static void concat(void)
{
    struct stoker_dataset *parts[] = {part(0, 0), part(0, 5),  part(5, 0),
                                      part(5, 1), part(6, 94), part(0, 0)};
    struct stoker_dataset *data = NULL, *twice = NULL;
    struct stoker_error err;
    char name[40];
    ok(!st_dataset_concat(&data, parts, 6, &err) && st_dataset_count(data) == 100,
       "six parts, three of them empty");
    for (int i = 0; i < 6; i++)
        st_dataset_drop(parts[i]);
    bool same = true;
    for (uint64_t i = 0; i < 100; i++)
        same = same && number_of(data, i) == (int64_t)i;
    ok(same, "stand one behind the other, and outlive their handles");
    ok(st_dataset_name(data, 6, name, sizeof name) && !strcmp(name, "sample 0"),
       "names are those of the parts");
    parts[0] = parts[1] = data;
    ok(!st_dataset_concat(&twice, parts, 2, &err) && number_of(twice, 150) == 50,
       "the same one twice, and nested");
    st_dataset_drop(twice);
    st_dataset_drop(data);
    ok(st_dataset_concat(&data, parts, 0, &err) == STOKER_EINVAL, "none: %s", err.message);
}

/* The first image as bytes; the others, and the label, as they were. */
static void encoded(void)
{
    struct stoker_dataset *all = part(0, 100), *some = NULL, *data = NULL, *again = NULL;
    const uint64_t indices[] = {7, 3};
    struct stoker_error err;
    uint32_t count = 0;
    ok(!st_dataset_encoded(&data, all, &err) && st_dataset_count(data) == 100, "as many samples");
    const struct st_field *fields = data->source->fields(data->self, &count);
    ok(count == 2 && fields[0].kind == ST_FIELD_BYTES && fields[1].kind == ST_FIELD_INT,
       "the image is bytes, the label a number");
    ok(!st_dataset_subset(&some, data, indices, 2, &err) && number_of(some, 0) == 7 &&
           number_of(data, 99) == 99,
       "the same bytes, also in a subset");
    ok(st_dataset_encoded(&again, data, &err) == STOKER_EUNSUPPORTED && !again, "without an image: %s",
       err.message);
    st_dataset_drop(some);
    st_dataset_drop(data);
    const uint8_t rows[2 * 3 * 4] = {1};
    const struct stoker_pixels given = {.size = sizeof given,
                                        .data = rows,
                                        .count = 2,
                                        .height = 3,
                                        .width = 4,
                                        .channels = 1,
                                        .stride = {12, 4, 1, 1}};
    struct stoker_dataset *pixels = NULL;
    ok(!st_dataset_from_pixels(&pixels, &given, &err) &&
           st_dataset_encoded(&again, pixels, &err) == STOKER_EUNSUPPORTED && !again,
       "nor are pixels encoded");
    st_dataset_drop(pixels);
    st_dataset_drop(all);
}

static void subset(void)
{
    const uint64_t indices[] = {7, 7, 0, 99}, wrong[] = {3, 100};
    struct stoker_dataset *all = part(0, 100), *some = NULL, *none = NULL;
    struct stoker_error err;
    ok(!st_dataset_subset(&some, all, indices, 4, &err) && st_dataset_count(some) == 4,
       "four of a hundred");
    ok(number_of(some, 0) == 7 && number_of(some, 1) == 7 && number_of(some, 2) == 0 &&
           number_of(some, 3) == 99,
       "as named");
    ok(!st_dataset_subset(&none, all, NULL, 0, &err) && st_dataset_count(none) == 0,
       "none of a hundred");
    st_dataset_drop(none);
    ok(st_dataset_subset(&none, all, wrong, 2, &err) == STOKER_EINVAL &&
           strstr(err.message, "index 100 at position 1"),
       "one too far: %s", err.message);
    st_dataset_drop(all);
    ok(number_of(some, 3) == 99, "it holds what it is made of");
    st_dataset_drop(some);
}

/* Files and memory in one dataset are read, not located. */
static void mixed_stores(void)
{
    const char *path = at("a.jpg");
    const int64_t label = 3;
    struct stoker_dataset *parts[] = {part(0, 2), NULL}, *data = NULL;
    struct stoker_error err;
    struct st_reader *reader = NULL;
    tree_file(path, 1000, 1);
    st_dataset_from_files(&parts[1], &path, &label, 1, &err);
    ok(!st_dataset_concat(&data, parts, 2, &err) && data->source->read, "memory and a file");
    struct st_buffer buffer = {0};
    struct st_bytes bytes = {0};
    ok(number_of(data, 1) == 1 && !st_read_sample(data, 2, &buffer, &bytes, &err) &&
           tree_file_is(bytes.data, bytes.size, 1000, 1) && st_dataset_label(data, 2) == 3,
       "are both read");
    ok(!st_reader_open(&reader, data, ST_READER_AUTO, 4, &err), "also by a reader");
    st_reader_close(reader);
    st_buffer_free(&buffer);
    for (int i = 0; i < 2; i++)
        st_dataset_drop(parts[i]);
    st_dataset_drop(data);
}

static void different_fields(const char *arrays)
{
    struct stoker_dataset *parts[] = {part(0, 2), NULL}, *data = NULL;
    struct stoker_dataset_options opt = {.size = sizeof opt, .fields = "labels,images"};
    struct stoker_error err;
    char uri[4096];
    snprintf(uri, sizeof uri, "npz:%s/npz/stored.npz", arrays);
    ok(!st_dataset_open(&parts[1], uri, &opt, &err), "arrays in another order");
    ok(st_dataset_concat(&data, parts, 2, &err) == STOKER_EINVAL, "do not go with images: %s",
       err.message);
    st_dataset_drop(parts[1]);
    opt.fields = "images";
    ok(!st_dataset_open(&parts[1], uri, &opt, &err) &&
           st_dataset_concat(&data, parts, 2, &err) == STOKER_EINVAL,
       "nor one field with two: %s", err.message);
    st_dataset_drop(parts[1]);
    opt.fields = NULL;
    uint32_t count;
    ok(!st_dataset_open(&parts[1], uri, &opt, &err) && !st_dataset_concat(&data, parts, 2, &err),
       "images as pixels and labels do");
    ok(data && data->source->fields(data->self, &count)[0].ndim == -1,
       "and what an image is shows in each sample");
    for (int i = 0; i < 2; i++)
        st_dataset_drop(parts[i]);
    st_dataset_drop(data);
}

/* Whether all runs of positions have each part's share, within `slack`, and no sample comes again too
 * early. */
static void check_mix(const double *weights, const uint64_t *sizes, uint32_t count, double slack,
                      const char *what)
{
    struct stoker_dataset *parts[8], *data = NULL;
    struct stoker_error err;
    uint64_t drawn[8] = {0};
    static uint8_t times[8][PART_MAX];
    double sum = 0;
    bool fair = true, in_turn = true, complete = true;
    memset(times, 0, sizeof times);
    for (uint32_t k = 0; k < count; k++) {
        parts[k] = part((int64_t)k * PART_MAX, sizes[k]);
        sum += weights[k];
    }
    if (!ok(!st_dataset_mix(&data, parts, weights, count, 0, 42, &err), "mix %s", what))
        note("%s", err.message);
    const uint64_t length = st_dataset_count(data);
    for (uint64_t i = 0; i < length; i++) {
        const int64_t number = number_of(data, i);
        const uint32_t k = (uint32_t)(number / PART_MAX);
        const uint64_t pass = drawn[k]++ / sizes[k];
        in_turn = in_turn && number >= 0 && times[k][number % PART_MAX]++ == (uint8_t)pass;
        for (uint32_t j = 0; j < count; j++)
            fair = fair && fabs((double)drawn[j] - (double)(i + 1) * weights[j] / sum) <= slack;
    }
    uint32_t exactly = 0;
    for (uint32_t k = 0; k < count; k++) {
        complete = complete && (weights[k] == 0 ? drawn[k] == 0 : drawn[k] >= sizes[k]);
        exactly += drawn[k] == sizes[k];
    }
    ok(fair, "%s: each part has its share of any beginning", what);
    ok(in_turn, "%s: no sample again before all others", what);
    ok(complete && exactly, "%s: an epoch of %llu has all, and one part no more than once", what,
       (unsigned long long)length);
    for (uint32_t k = 0; k < count; k++)
        st_dataset_drop(parts[k]);
    st_dataset_drop(data);
}

static void mix(void)
{
    check_mix((double[]){1}, (uint64_t[]){10}, 1, 0, "of one");
    check_mix((double[]){1, 1}, (uint64_t[]){100, 100}, 2, 1, "of two halves");
    check_mix((double[]){0.7, 0.2, 0.1}, (uint64_t[]){1500, 10, 1}, 3, 2, "of three");
    check_mix((double[]){1, 0, 3, 0}, (uint64_t[]){30, 7, 40, 0}, 4, 1, "with weights of 0");
    check_mix((double[]){3, 1, 4, 1, 5, 9}, (uint64_t[]){50, 60, 70, 80, 90, 100}, 6, 4, "of six");

    struct stoker_dataset *parts[] = {part(0, 1000), part(2000, 100)}, *a = NULL, *b = NULL, *c = NULL;
    struct stoker_error err;
    ok(!st_dataset_mix(&a, parts, (double[]){1, 1}, 2, 600, 1, &err) && st_dataset_count(a) == 600 &&
           !st_dataset_mix(&b, parts, (double[]){2, 2}, 2, 700, 1, &err) &&
           !st_dataset_mix(&c, parts, (double[]){1, 1}, 2, 600, 2, &err),
       "a length of one's own");
    uint64_t same = 0, other = 0;
    for (uint64_t i = 0; i < 600; i++) {
        same += number_of(a, i) == number_of(b, i);
        other += number_of(a, i) != number_of(c, i);
    }
    ok(same == 600, "the same seed: the same, whatever the length");
    ok(other > 500, "another seed: another order");
    const double none[] = {0, 0}, less[] = {1, -1}, odd[] = {1, NAN};
    struct stoker_dataset *empty[] = {parts[0], part(0, 0)}, *data;
    ok(st_dataset_mix(&data, parts, none, 2, 0, 0, &err) == STOKER_EINVAL, "no weight at all: %s",
       err.message);
    ok(st_dataset_mix(&data, parts, less, 2, 0, 0, &err) == STOKER_EINVAL, "below 0: %s", err.message);
    ok(st_dataset_mix(&data, parts, odd, 2, 0, 0, &err) == STOKER_EINVAL, "no number: %s", err.message);
    ok(st_dataset_mix(&data, empty, (double[]){1, 1}, 2, 0, 0, &err) == STOKER_EINVAL, "of nothing: %s",
       err.message);
    ok(st_dataset_mix(&data, parts, (double[]){1, 1e-300}, 2, 0, 0, &err) == STOKER_ELIMIT,
       "almost no weight: %s", err.message);
    for (int i = 0; i < 2; i++)
        st_dataset_drop(parts[i]);
    st_dataset_drop(empty[1]);
    st_dataset_drop(a);
    st_dataset_drop(b);
    st_dataset_drop(c);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 1;
    tree_make();
    concat();
    encoded();
    subset();
    mixed_stores();
    different_fields(argv[1]);
    mix();
    tree_remove();
    return done_testing();
}
