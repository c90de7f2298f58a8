/* known.h - which samples' JPEG files are known to decode without irregularity
 *
 * The JPEG hardware of a GPU does not report damaged data. So in exact mode it is only given a file
 * that our own decoder has once decoded to its end, in this run, an earlier one or another rank.
 *
 * The table has one number per sample: the CRC-32C of the file that was decoded; 0: unknown. It is
 * compared with the checksum of the bytes that were actually read, every time. A file that has changed
 * therefore is unknown again, whatever its size and time say, and neither needs to be stored. A number
 * that is out of date, torn, or written by somebody else means nothing worse: the CPU decodes the
 * sample, and it is learned again. Only a damaged file with the checksum of a good one would be
 * mistaken, 1 in 2^32.
 *
 * The table is kept in a file beside the index, which processes may share (known_table.c): in index_dir
 * if the dataset has one (or in cache_dir, for archives by URL), or else next to the first archive.
 * Without either (a folder without index_dir, samples in memory, callbacks) it lasts as long as the
 * dataset. Datasets made of others use the tables of their parts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_KNOWN_KNOWN_H
#define ST_SOURCE_KNOWN_KNOWN_H

#include "source/source.h"

struct st_known;
struct st_location;

/* By which rules a file counts as decoded without irregularity. To be raised when our decoder finds
 * fault with files that it used to accept: tables made by other rules are learned anew. */
enum { ST_KNOWN_RULES = 1 };

/* 256 MiB of numbers. */
#define ST_KNOWN_MAX (1ull << 26)

/* The table of this dataset, made on first use and freed with the dataset; NULL: none (out of memory,
 * or more than ST_KNOWN_MAX samples), and *why, unless `why` is NULL, is set to a static sentence. Any
 * thread. */
struct st_known *st_known_of(struct stoker_dataset *data, const char **why);
/* The checksum of a file: never 0. */
uint32_t st_known_sum(struct st_bytes file);
/* Whether there is a number, which need not be that of the file as it is now. Cheap. Any thread. */
bool st_known_any(const struct st_known *known, uint64_t sample);
/* Whether a file with this checksum is known to decode. Any thread. */
bool st_known_has(const struct st_known *known, uint64_t sample, uint32_t sum);
/* How many samples have a number; of a dataset made of others, in all of these. Any thread. */
uint64_t st_known_count(const struct st_known *known);
/* Any thread; lock-free. A sum of 0 forgets the sample. */
void st_known_learn(struct st_known *known, uint64_t sample, uint32_t sum);
/* Exchanges entries with the file, if there is one: a few MiB at a time, so it is to be called every few
 * seconds. Any thread; it does nothing while another thread is in it. What cannot be written (a
 * read-only or full disk) is not kept. */
void st_known_share(struct st_known *known);

/* Decides where the table of a dataset that was opened by a path will be kept. */
void st_known_place(struct stoker_dataset *data, const struct st_location *place,
                    const struct stoker_dataset_options *opt);
/* Writes what has not been shared, and frees the table, before the dataset is closed. */
void st_known_drop(struct stoker_dataset *data);

#endif
