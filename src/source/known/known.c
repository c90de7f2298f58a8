/* known.c - which samples' JPEG files are known to decode without irregularity: the tables of datasets
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/compose/compound.h"
#include "source/known/known_table.h"

enum { STRETCHES = 16 }; /* at most, in one call of st_known_share: 4 MiB */

/* The table that has the sample, and its place there; NULL: there is no such sample. */
static struct st_known *table_of(const struct st_known *known, uint64_t *sample)
{
    while (*sample < known->count && known->whole) {
        const struct st_found found = st_compound_sample(known->whole, *sample);
        known = known->parts[found.part];
        *sample = found.sample;
    }
    return *sample < known->count ? (struct st_known *)(uintptr_t)known : NULL;
}

static uint32_t sum_of(const struct st_known *known, uint64_t sample)
{
    const struct st_known *table = table_of(known, &sample);
    return table ? st_known_table_get(table, sample) : 0;
}

bool st_known_any(const struct st_known *known, uint64_t sample) { return sum_of(known, sample) != 0; }

bool st_known_has(const struct st_known *known, uint64_t sample, uint32_t sum)
{
    return sum && sum_of(known, sample) == sum;
}

void st_known_learn(struct st_known *known, uint64_t sample, uint32_t sum)
{
    struct st_known *table = table_of(known, &sample);
    if (table)
        st_known_table_put(table, sample, sum);
}

uint64_t st_known_count(const struct st_known *known)
{
    uint64_t known_there = atomic_load_explicit(&known->known, memory_order_relaxed);
    uint32_t count = 0;
    if (known->whole && st_compound_parts(known->whole, &count))
        for (uint32_t i = 0; i < count; i++)
            known_there += st_known_count(known->parts[i]);
    return known_there;
}

void st_known_share(struct st_known *known)
{
    uint32_t count;
    if (!known->whole)
        st_known_table_share(known, STRETCHES);
    else if (st_compound_parts(known->whole, &count))
        for (uint32_t i = 0; i < count; i++)
            st_known_share(known->parts[i]);
}

/* NULL: not made of others, or a part has no table. */
static struct st_known *make_of_parts(const struct stoker_dataset *data)
{
    uint32_t count = 0;
    struct stoker_dataset *const *parts = st_compound_parts(data, &count);
    struct st_known *known = parts ? st_calloc(1, sizeof *known) : NULL;
    if (!known)
        return NULL;
    known->count = st_dataset_count(data);
    known->whole = data;
    known->parts = st_calloc(count, sizeof(struct st_known *));
    bool good = known->parts != NULL;
    for (uint32_t i = 0; i < count && good; i++)
        good = (known->parts[i] = st_known_of(parts[i], NULL)) != NULL;
    if (good)
        return known;
    st_known_table_free(known);
    return NULL;
}

static struct st_known *make_table(const struct stoker_dataset *data, const char **why)
{
    const uint64_t count = st_dataset_count(data);
    if (count > ST_KNOWN_MAX) {
        *why = "the dataset has more than 67108864 samples, too many to remember which files decode";
        return NULL;
    }
    struct st_known *known = st_known_table_new(count, data->known_file, data->known_key);
    if (!known)
        *why = "out of memory for the table of files that are known to decode";
    return known;
}

struct st_known *st_known_of(struct stoker_dataset *data, const char **why)
{
    const char *ignored;
    struct st_known *known = atomic_load(&data->known);
    if (known)
        return known;
    struct st_known *made = data->known_file ? NULL : make_of_parts(data);
    if (!made)
        made = make_table(data, why ? why : &ignored);
    if (!made)
        return NULL;
    if (!made->whole)
        st_known_table_share(made, UINT64_MAX);
    if (atomic_compare_exchange_strong(&data->known, &known, made))
        return made;
    st_known_table_free(made);
    return known;
}
