/* pack.h - what the parts of `stoker pack` share
 *
 * Workers read samples and make them ready (sample.c, picture.c, crop_ready.c); one thread takes them in
 * order and hands them to a writer, which is one file that ends in its `const struct pack_writer`. What
 * is finished is noted in the manifest, from which an interrupted run goes on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CLI_PACK_PACK_H
#define ST_CLI_PACK_PACK_H

#include "base/err.h"
#include "op/image.h"
#include "source/packs/manifest.h"
#include "source/location.h"
#include "source/source.h"

#include <limits.h>

enum { PACK_KEY_MAX = 200, PACK_SUFFIX_MAX = 100 };

struct pack_options {
    const char *source, *folder; /* SRC and DST */
    const char *fields;          /* NULL: the source's own choice */
    const struct pack_writer *writer;
    uint64_t resize_width, resize_height; /* height 0: the shorter side becomes the width */
    uint64_t max_size;                    /* of the longer side; 0: any */
    uint64_t quality;                     /* 0: files stay as they are where they can */
    uint64_t shard_size;
    uint64_t workers;
    uint64_t seed;
    bool shuffle, crop_ready, compress, skip_bad, quiet;
};

/* One field of a sample that is ready to be written. */
struct pack_field {
    const char *name; /* the source's */
    enum st_field_kind kind;
    struct st_piece piece;
};

struct pack_sample {
    uint64_t number; /* in the source */
    int status;      /* not STOKER_OK: it is bad, and `error` says why */
    struct stoker_error error;
    char key[PACK_KEY_MAX + 1];
    uint32_t count;
    struct pack_field fields[ST_FIELDS_MAX];
    uint64_t bytes_in;
    uint64_t source; /* a sum of its name, size and time in the source */
    uint64_t ready_in, ready_out; /* bytes of files made ready for crops, before and after */
    bool kept_as_it_was;          /* a JPEG that could not be made so */
    struct st_buffer raw, scratch, made[ST_FIELDS_MAX]; /* what the pieces lie in */
};
void pack_sample_free(struct pack_sample *sample);
/* What a worker needs to decode and resize. */
struct st_work pack_work(void);
void pack_work_free(struct st_work *work);

/* ---- making samples ready ---------------------------------------------------------------------- */

/* Reads sample->number and does to it what the options say. What is wrong with it goes into the sample.
 */
void pack_sample_make(struct pack_sample *sample, struct stoker_dataset *data,
                      const struct pack_options *opt, struct st_work *work);
/* The fields of any data set: an image or a sound and a label where the source has no fields. */
uint32_t pack_fields(const struct stoker_dataset *data, struct st_field fields[ST_FIELDS_MAX]);
/* Reads a sample and finds its pieces. */
int pack_read(struct stoker_dataset *data, uint64_t number, struct st_buffer *raw,
              struct st_buffer *scratch, struct st_piece pieces[ST_FIELDS_MAX], uint64_t *bytes,
              struct stoker_error *err);
/* The key of a sample, made from its name: no part of it leads out of a folder, or ends the key. */
void pack_key(char key[PACK_KEY_MAX + 1], const struct stoker_dataset *data, uint64_t number,
              const char *source);
/* "jpg", "png", ... by the first bytes; NULL: none that is known. */
const char *pack_image_type(struct st_bytes bytes);
const char *pack_audio_type(struct st_bytes bytes);

/* Resizes one image as the options say, and encodes it, or makes pixels of it where the format wants
 * those. Leaves it alone where nothing is to be done. */
int pack_picture(struct st_piece *piece, struct st_buffer *into, const struct pack_options *opt,
                 struct st_work *work, struct stoker_error *err);
int pack_jpeg_encode(const struct st_view *pixels, int quality, struct st_buffer *into,
                     struct stoker_error *err);
/* The same image in a file of which any part can be decoded alone. False: it has to stay as it is. */
bool pack_crop_ready(struct st_bytes jpeg, struct st_buffer *into);

struct pack_sound {
    uint32_t rate, channels; /* 0: of a kind that this build cannot read */
    uint64_t frames;
};
/* Reads a sound's header, and `deep` all of it. */
int pack_sound_look(struct pack_sound *sound, struct st_bytes bytes, bool deep,
                    struct stoker_error *err);

/* ---- writing ----------------------------------------------------------------------------------- */

/* A file that is written from front to back under a temporary name. */
struct pack_file {
    int fd;
    uint64_t size;
    uint32_t crc; /* CRC32C of all that was written */
    uint8_t *buffer;
    uint64_t used;
    char path[PATH_MAX], temporary[PATH_MAX];
};
int pack_file_open(struct pack_file *file, const char *folder, const char *name,
                   struct stoker_error *err);
int pack_file_write(struct pack_file *file, const void *bytes, uint64_t size, struct stoker_error *err);
int pack_file_zeros(struct pack_file *file, uint64_t size, struct stoker_error *err);
/* Puts other bytes at the beginning, which are as many as stand there. Ends the sum. */
int pack_file_begin_again(struct pack_file *file, const void *bytes, uint64_t size,
                          struct stoker_error *err);
/* Goes on behind the first `size` bytes of what an earlier run left; begin_again must end it. */
int pack_file_go_on(struct pack_file *file, const char *folder, const char *name, uint64_t size,
                    struct stoker_error *err);
/* Has all that was written on the disk. */
int pack_file_sync(struct pack_file *file, struct stoker_error *err);
/* The same, and gives it its name. */
int pack_file_finish(struct pack_file *file, struct stoker_error *err);
/* Safe after a failed open, and after finish. What is unfinished goes, or stays for pack_file_go_on. */
void pack_file_drop(struct pack_file *file, bool leave);
/* The name that a file has until it is finished. */
int pack_temporary(char out[PATH_MAX], const char *folder, const char *name, struct stoker_error *err);
/* The temporary file that an earlier run left is there, also if that run had named it already. */
int pack_take_up(const char *temporary, const char *path, struct stoker_error *err);
/* Gives a file its name, for good. */
int pack_rename(const char *temporary, const char *path, struct stoker_error *err);
/* A write that failed: what can be done about it. */
int pack_cannot_write(const char *path, int why, struct stoker_error *err);
/* What an earlier run left is not there any more as it was. */
int pack_was_changed(const char *path, struct stoker_error *err);
/* All of it at once. */
int pack_file_put(const char *folder, const char *name, const void *bytes, uint64_t size,
                  struct stoker_error *err);
bool pack_append(struct st_buffer *buffer, const void *bytes, uint64_t size);
/* DST/NAME; fails when that is too long. */
int pack_path(char out[PATH_MAX], const char *folder, const char *name, struct stoker_error *err);

/* What a writer begins with. */
struct pack_start {
    const char *name;
    const struct st_cells *classes; /* their names; tar files hold them */
    uint64_t most; /* samples that there may be */
    uint64_t done; /* samples that an earlier run added before its last `keep` */
};

struct pack_writer {
    const char *name;
    const char *extension;
    bool sharded; /* else one output, with `keep` */
    bool pixels;  /* wants pixels, not encoded images */
    size_t self_size;
    /* NULL: always; else whether samples of this kind of source may be read while it writes. */
    bool (*beside)(const char *scheme);
    /* Begins an output in the folder, or goes on with one. */
    int (*begin)(void *self, const struct pack_options *opt, const struct pack_start *start,
                 struct stoker_error *err);
    int (*add)(void *self, const struct pack_options *opt, struct pack_sample *sample,
               struct stoker_error *err);
    uint64_t (*size)(const void *self); /* what was added, without what an earlier run did */
    /* Has all samples so far on the disk, whatever is killed from now on. */
    int (*keep)(void *self, struct stoker_error *err);
    /* Completes it; its size and sum go into the shard, and other files beside it. */
    int (*finish)(void *self, struct st_pack_shard *shard, struct st_pack_beside *beside,
                  struct stoker_error *err);
    /* Safe at any time, also twice. What is unfinished goes, or stays for `begin` to go on with. */
    void (*drop)(void *self, bool leave);
};
extern const struct pack_writer pack_writer_tar, pack_writer_tfrecord, pack_writer_lmdb, pack_writer_npy,
    pack_writer_hdf5;
/* NULL at the end. */
extern const struct pack_writer *const pack_writers[];

/* The header of numpy's own format for `rows` of this piece (of one array: UINT64_MAX), always `size`
 * bytes long, of which it needs less than 200. */
void pack_npy_header(char *out, uint64_t size, const struct st_piece *piece, uint64_t rows);
/* Rows of arrays. */
struct pack_rows {
    uint64_t rows;
    uint32_t count; /* of arrays; 0 before the first row */
    char names[ST_FIELDS_MAX][64];
    struct st_piece shapes[ST_FIELDS_MAX]; /* of the first row, which all others must have */
};
/* The sample's fields as one row more; refuses what does not fit. */
int pack_rows_take(struct pack_rows *rows, const struct pack_sample *sample, struct st_piece *row,
                   struct stoker_error *err);
/* What an INT, FLOAT or ARRAY is as an array. */
struct st_piece pack_as_array(const struct pack_field *field);

/* ---- the manifest ------------------------------------------------------------------------------ */

#define PACK_LEDGER   "bad_samples.jsonl"

/* Held while a run writes into its folder. */
#define PACK_LOCK ".stoker-pack-lock"
struct pack_lock {
    int fd; /* -1: not held */
    char path[PATH_MAX];
};
/* Makes the folder if it is missing; refuses while another run holds it, and says which. */
int pack_lock_take(struct pack_lock *lock, const char *folder, struct stoker_error *err);
void pack_lock_drop(struct pack_lock *lock);

/* DST must not lie in SRC. */
int pack_place_check(const struct pack_options *opt, struct stoker_error *err);
/* Sums of names, sizes and times: of the archives that the source is, of one of its samples, and of samples
 * one after another. */
#define PACK_DIGEST_BEGIN 0xcbf29ce484222325ull
uint64_t pack_digest_archives(const struct st_location *place);
uint64_t pack_digest_sample(const struct stoker_dataset *data, uint64_t number);
uint64_t pack_digest_add(uint64_t chain, uint64_t sum);
/* Whether what earlier runs packed is what the source has in its place; `chain` then goes on behind that. */
int pack_digest_check(const struct st_pack *m, const struct pack_options *opt, const struct stoker_dataset *data,
                      struct stoker_order *order, uint64_t *chain, struct stoker_error *err);
/* Takes up what an earlier run with the same settings, and the same source, left in the folder. */
int pack_manifest_open(struct st_pack *manifest, const struct pack_options *opt,
                       const struct stoker_dataset *data, uint64_t archives,
                       struct stoker_error *err);
int pack_manifest_bad(struct st_pack *manifest, const struct stoker_dataset *data,
                      const struct pack_sample *sample, struct stoker_error *err);
/* Notes a finished shard, with the bad samples met on the way. */
int pack_manifest_add(struct st_pack *manifest, const struct pack_options *opt,
                      const struct st_pack_shard *shard, bool last, struct stoker_error *err);
/* Notes how far the output under way has come, with the bad samples met on the way; {0}: nowhere. */
int pack_manifest_mark(struct st_pack *manifest, const struct pack_options *opt,
                       struct st_pack_mark mark, struct stoker_error *err);
/* A string as it stands in JSON, in quotes, at most `size` bytes with its end. */
void pack_json_text(char *out, size_t size, const char *text);

/* ---- the whole --------------------------------------------------------------------------------- */

struct pack_result {
    uint64_t samples, bad, bytes_in, bytes_out, shards;
    uint64_t done;    /* of the samples, by this run */
    uint64_t resumed; /* samples that an earlier run had done */
    uint64_t ready, kept, ready_in, ready_out;
    double seconds;
    bool nothing_to_do;
};
int pack_run(const struct pack_options *opt, struct pack_result *result, struct stoker_error *err);

/* Runs work(context, worker, ticket) for tickets first to last - 1 in `workers` threads, and
 * done(context, ticket) in order in this one; ticket % PACK_RING is the slot to use. Stops at the first
 * `done` that is not STOKER_OK and returns that. */
enum { PACK_RING = 64 };
struct pack_line {
    void (*work)(void *context, uint32_t worker, uint64_t ticket);
    int (*done)(void *context, uint64_t ticket);
    void *context;
    uint64_t first, last;
    uint32_t workers;
};
int pack_line_run(const struct pack_line *line, struct stoker_error *err);

/* A line with rate, bytes and the time left: redrawn on a terminal, else now and then a line of its own.
 */
struct pack_progress {
    const char *what;         /* "packing" */
    uint64_t total, began_at; /* began_at: were done before */
    uint64_t start_ns, shown_ns;
    bool terminal, quiet;
};
void pack_progress_begin(struct pack_progress *p, const char *what, uint64_t done, uint64_t total,
                         bool quiet);
void pack_progress_show(struct pack_progress *p, uint64_t done, uint64_t bytes);
void pack_progress_end(struct pack_progress *p);

/* The extensions of sounds, with the dot; NULL at the end. */
extern const char *const pack_sounds[];
/* Opens any data set, also a folder of sounds, and what is finished of a pack that is not complete; `place`
 * then says what it consists of, and must be freed in any case. */
int pack_data_open(struct stoker_dataset **out, struct st_location *place, const char *data, const char *fields,
                   struct stoker_error *err);

#endif
