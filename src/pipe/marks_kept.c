/* marks_kept.c - a table of the marks of samples
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/marks_kept.h"

#include "base/mem.h"
#include "source/checksum/crc32c.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    POINTERS_PART = 4, /* at most this part of the memory is for the pointers to entries */
    OVERHEAD = 16,     /* of an allocation */
};

struct entry {
    uint64_t size; /* of the file, */
    uint32_t sum;  /* and its CRC-32C */
    uint32_t count;
    uint64_t mark[];
};

struct st_marks_kept {
    struct st_account memory;
    uint64_t samples, most;
    pthread_mutex_t lock; /* for what follows, held for less than a microsecond */
    uint64_t bytes;
    struct entry *entry[];
};

static uint64_t entry_size(uint32_t count)
{
    return sizeof(struct entry) + count * sizeof(uint64_t);
}

/* What it counts as. */
static uint64_t entry_bytes(const struct entry *entry)
{
    return entry ? entry_size(entry->count) + OVERHEAD : 0;
}

struct st_marks_kept *st_marks_kept_new(uint64_t samples, uint64_t most, struct st_budget *budget)
{
    struct st_marks_kept *kept;
    if (samples > most / POINTERS_PART / sizeof kept->entry[0])
        return NULL;
    const uint64_t bytes = sizeof *kept + samples * sizeof kept->entry[0];
    kept = st_calloc(1, bytes);
    if (!kept || pthread_mutex_init(&kept->lock, NULL)) {
        free(kept);
        return NULL;
    }
    kept->memory = (struct st_account){.budget = budget, .kind = ST_MEMORY_DATA};
    kept->samples = samples;
    kept->most = most;
    kept->bytes = bytes;
    st_account_add(&kept->memory, bytes);
    return kept;
}

void st_marks_kept_free(struct st_marks_kept *kept)
{
    if (!kept)
        return;
    for (uint64_t i = 0; i < kept->samples; i++)
        free(kept->entry[i]);
    st_account_sub(&kept->memory, kept->bytes);
    pthread_mutex_destroy(&kept->lock);
    free(kept);
}

void st_marks_kept_get(struct st_marks_kept *kept, uint64_t sample, struct st_bytes file,
                       struct st_jpeg_marks *marks)
{
    uint32_t sum = 0;
    marks->count = 0;
    if (sample >= kept->samples)
        return;
    pthread_mutex_lock(&kept->lock);
    const struct entry *entry = kept->entry[sample];
    if (entry && entry->size == file.size) {
        sum = entry->sum;
        marks->count = entry->count;
        memcpy(marks->mark, entry->mark, entry->count * sizeof *entry->mark);
    }
    pthread_mutex_unlock(&kept->lock);
    if (marks->count && st_crc32c(file.data, file.size) != sum)
        marks->count = 0;
}

static struct entry *make_entry(struct st_bytes file, const struct st_jpeg_marks *marks)
{
    struct entry *entry = st_calloc(1, entry_size(marks->count));
    if (!entry)
        return NULL;
    entry->size = file.size;
    entry->sum = st_crc32c(file.data, file.size);
    entry->count = marks->count;
    memcpy(entry->mark, marks->mark, marks->count * sizeof *marks->mark);
    return entry;
}

void st_marks_kept_put(struct st_marks_kept *kept, uint64_t sample, struct st_bytes file,
                       const struct st_jpeg_marks *marks)
{
    if (sample >= kept->samples || !marks->count)
        return;
    struct entry *entry = make_entry(file, marks);
    if (!entry)
        return;
    pthread_mutex_lock(&kept->lock);
    struct entry *old = kept->entry[sample];
    const uint64_t before = entry_bytes(old), now = entry_bytes(entry);
    const bool news = !old || old->size != entry->size || old->sum != entry->sum ||
                      old->count < entry->count;
    if (news && kept->bytes - before + now <= kept->most) {
        kept->entry[sample] = entry;
        kept->bytes = kept->bytes - before + now;
        st_account_change(&kept->memory, NULL, before, now);
        entry = old;
    }
    pthread_mutex_unlock(&kept->lock);
    free(entry);
}
