/* Files that are known to decode: what is learned is known for these bytes alone, by one dataset, those made of it, and
 * all threads. */
#include "known_rows.h"
#include "source/checksum/crc32c.h"

#include <pthread.h>

static int no_read(void *cookie, uint64_t sample, void *into, size_t capacity, size_t *size,
                   struct stoker_error *e)
{
    (void)cookie, (void)sample, (void)into, (void)capacity, (void)size, (void)e;
    return STOKER_EIO;
}

/* Samples that nobody reads. */
static struct stoker_dataset *many(uint64_t count)
{
    const struct stoker_callbacks callbacks = {
        .size = sizeof callbacks, .count = count, .read = no_read};
    struct stoker_dataset *data = NULL;
    if (st_dataset_from_callbacks(&data, &callbacks, NULL, NULL))
        abort();
    return data;
}

/* ---- in memory ---------------------------------------------------------------------------------- */

static void table(void)
{
    struct stoker_dataset *data = many(3000);
    struct st_known *known = known_of(data);
    ok(st_known_of(data, NULL) == known, "a dataset has one table");
    ok(!st_known_any(known, 7) && !st_known_has(known, 7, 99) && !st_known_has(known, 7, 0),
       "it begins unknown");
    uint8_t bytes[] = "some file";
    const uint32_t sum = st_known_sum((struct st_bytes){bytes, sizeof bytes});
    st_known_learn(known, 7, sum);
    ok(st_known_any(known, 7) && st_known_has(known, 7, sum) && !st_known_any(known, 6) &&
           !st_known_any(known, 8),
       "what is learned is known");
    bytes[3] ^= 1;
    ok(!st_known_has(known, 7, st_known_sum((struct st_bytes){bytes, sizeof bytes})),
       "a changed file is not");
    st_known_learn(known, 7, 5);
    ok(!st_known_has(known, 7, sum) && st_known_has(known, 7, 5), "until it is learned again");
    st_known_learn(known, 8, 5);
    ok(st_known_count(known) == 2, "%llu samples are known", (unsigned long long)st_known_count(known));
    st_known_learn(known, 8, 0);
    st_known_learn(known, 7, 0);
    ok(!st_known_any(known, 7) && !st_known_has(known, 7, 5) && !st_known_has(known, 7, UINT32_MAX) &&
           !st_known_count(known),
       "or forgotten");
    st_known_learn(known, 3000, 1);
    st_known_learn(known, UINT64_MAX, 1);
    ok(!st_known_any(known, 3000) && !st_known_has(known, UINT64_MAX, 1),
       "there is nothing past the last sample");
    st_known_share(known); /* without a file */
    st_dataset_drop(data);

    uint32_t zero = ~0u; /* four bytes whose checksum is 0: the register run backwards */
    for (int bit = 0; bit < 32; bit++)
        zero = zero >> 31 ? (zero ^ ST_CRC32C_POLYNOMIAL) << 1 | 1 : zero << 1;
    zero = ~zero;
    const uint8_t none[4] = {(uint8_t)zero, (uint8_t)(zero >> 8), (uint8_t)(zero >> 16),
                             (uint8_t)(zero >> 24)};
    const uint32_t never = st_known_sum((struct st_bytes){none, 4});
    ok(st_crc32c(none, 4) == 0 && never != 0, "a checksum of 0 is taken for another");
}

static void limits(void)
{
    const char *why = NULL;
    struct stoker_dataset *data = many(0);
    struct st_known *known = st_known_of(data, &why);
    ok(known && !why && !st_known_any(known, 0), "a dataset without samples");
    if (known)
        st_known_share(known);
    st_dataset_drop(data);
    data = many(ST_KNOWN_MAX + 1);
    known = st_known_of(data, &why);
    ok(!known && why, "one sample too many: %s", why ? why : "no reason");
    ok(!st_known_of(data, NULL), "nobody has to ask why");
    const uint64_t some[] = {ST_KNOWN_MAX, 3};
    struct stoker_dataset *subset = NULL;
    ok(!st_dataset_subset(&subset, data, some, 2, &err) && st_known_of(subset, NULL),
       "a subset of it has a table");
    st_dataset_drop(subset);
    st_dataset_drop(data);
}

struct hand {
    struct st_known *known;
    uint64_t first;
    bool shares;
};

static void *learn_some(void *context)
{
    const struct hand *hand = context;
    if (hand->shares)
        for (int i = 0; i < 20; i++)
            st_known_share(hand->known);
    else
        learn(hand->known, hand->first, ROWS, 2, 1);
    return NULL;
}

static void threads(void)
{
    struct stoker_dataset *data = open_rows();
    struct st_known *known = known_of(data);
    struct hand hands[4] = {{known, 0, false}, {known, 1, false}, {known, 0, true}, {known, 0, true}};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, learn_some, &hands[i]))
            abort();
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ok(count_known(known, ROWS, 1) == ROWS && st_known_count(known) == ROWS, "two threads learn while two share");
    st_dataset_drop(data);
    data = open_rows();
    known = known_of(data);
    ok(count_known(known, ROWS, 1) == ROWS && st_known_count(known) == ROWS, "and nothing of it is missing in the file");
    st_dataset_drop(data);
    unlink(found_in(at("kept"), ".stoker-known"));
}

/* ---- made of others ----------------------------------------------------------------------------- */

static void compounds(void)
{
    const uint64_t indices[] = {ROWS - 1, 5, 5};
    const double weights[] = {1, 1};
    struct stoker_dataset *rows = open_rows(), *other = open_rows(), *subset = NULL, *both = NULL,
                          *mix = NULL;
    struct st_known *base = known_of(rows);
    if (st_dataset_subset(&subset, rows, indices, 3, &err) ||
        st_dataset_concat(&both, (struct stoker_dataset *[]){other, subset}, 2, &err) ||
        st_dataset_mix(&mix, (struct stoker_dataset *[]){rows, subset}, weights, 2, 100, 1, &err))
        abort();
    struct st_known *some = known_of(subset), *all = known_of(both), *mixed = known_of(mix);
    st_known_learn(some, 1, 77);
    ok(st_known_has(base, 5, 77) && st_known_has(some, 2, 77) && !st_known_any(some, 0) &&
           !st_known_any(some, 3),
       "what a subset learns its dataset knows");
    ok(st_known_count(some) == 1 && st_known_count(all) == 1, "it counts as known in all that are made of it");
    st_known_learn(all, ROWS, 78);
    st_known_learn(all, 9, 79);
    ok(st_known_has(base, ROWS - 1, 78) && st_known_has(known_of(other), 9, 79) &&
           !st_known_any(base, 9),
       "through several levels");
    for (uint64_t i = 0; i < 100; i++)
        st_known_learn(mixed, i, 80);
    uint64_t learned = 0, found = 0;
    for (uint64_t i = 0; i < ROWS; i++)
        learned += st_known_has(base, i, 80);
    for (uint64_t i = 0; i < 100; i++)
        found += st_known_has(mixed, i, 80);
    ok(found == 100 && learned > 45 && learned < 60, "a mix of them: %llu", (unsigned long long)learned);
    st_known_share(all);
    st_known_share(some);
    st_known_share(all);
    ok(st_known_has(base, 9, 79), "and shares for its parts");
    st_dataset_drop(rows);
    st_dataset_drop(other);
    st_dataset_drop(both);
    st_dataset_drop(mix);
    st_known_learn(some, 0, 81);
    st_dataset_drop(subset);
    rows = open_rows();
    ok(st_known_has(known_of(rows), ROWS - 1, 81), "until it is closed");
    st_dataset_drop(rows);
    unlink(found_in(at("kept"), ".stoker-known"));
}

int main(void)
{
    tree_make();
    write_rows(at("rows.npy"), ROWS);
    table();
    limits();
    compounds();
    threads();
    tree_remove();
    return done_testing();
}
