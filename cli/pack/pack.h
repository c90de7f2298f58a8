/* pack.h - what the parts of `stoker pack` share
 *
 * Workers read and prepare samples (sample.c, picture.c, crop_ready.c); one thread passes them in order
 * to a writer, which is one file that ends in its `const struct pack_writer`. The manifest records what
 * is finished, so that an interrupted run can be resumed.
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
    const char *fields;          /* NULL: chosen by the source */
    const struct pack_writer *writer;
    uint64_t resize_width, resize_height; /* height 0: the width is for the shorter side */
    uint64_t max_size;                    /* of the longer side; 0: unlimited */
    uint64_t quality;                     /* 0: files are kept unchanged where possible */
    uint64_t shard_size;
    uint64_t workers;
    uint64_t seed;
    bool shuffle, crop_ready, compress, skip_bad, quiet;
};

/* One field of a prepared sample. */
struct pack_field {
    const char *name; /* in the source */
    enum st_field_kind kind;
    struct st_piece piece;
};

struct pack_sample {
    uint64_t number; /* in the source */
    int status;      /* not STOKER_OK: the sample is bad, and `error` tells why */
    struct stoker_error error;
    char key[PACK_KEY_MAX + 1];
    uint32_t count;
    struct pack_field fields[ST_FIELDS_MAX];
    uint64_t bytes_in;
    uint64_t source; /* hash of its name, size and time in the source */
    uint64_t ready_in, ready_out; /* bytes of files prepared for crops, before and after */
    bool kept_as_it_was;          /* a JPEG that could not be prepared */
    struct st_buffer raw, scratch, made[ST_FIELDS_MAX]; /* the memory of the pieces */
};
void pack_sample_free(struct pack_sample *sample);
/* What a worker needs to decode and resize. */
struct st_work pack_work(void);
void pack_work_free(struct st_work *work);

/* ---- preparing samples ---------------------------------------------------------------------------- */

/* Reads sample->number and applies the options. Errors go into the sample. */
void pack_sample_make(struct pack_sample *sample, struct stoker_dataset *data,
                      const struct pack_options *opt, struct st_work *work);
/* The fields of any dataset: an image or a sound and a label if the source has no fields. */
uint32_t pack_fields(const struct stoker_dataset *data, struct st_field fields[ST_FIELDS_MAX]);
/* Reads a sample and finds its pieces. */
int pack_read(struct stoker_dataset *data, uint64_t number, struct st_buffer *raw,
              struct st_buffer *scratch, struct st_piece pieces[ST_FIELDS_MAX], uint64_t *bytes,
              struct stoker_error *err);
/* The key of a sample, made from its name, without components that would leave the folder or end the
 * key. */
void pack_key(char key[PACK_KEY_MAX + 1], const struct stoker_dataset *data, uint64_t number,
              const char *source);
/* "jpg", "png", ... by the first bytes; NULL: unknown. */
const char *pack_image_type(struct st_bytes bytes);
const char *pack_audio_type(struct st_bytes bytes);
/* Whether the bytes alone show that an image is not truncated: the end marker of JPEG and PNG. False:
 * only decoding tells, which is cheap for the formats that have no such sign (BMP, PNM, TIFF). */
bool pack_image_ends(struct st_bytes bytes);

/* Resizes one image and encodes it, or decodes it if the format stores pixels. Does nothing if the
 * options do not require it. */
int pack_picture(struct st_piece *piece, struct st_buffer *into, const struct pack_options *opt,
                 struct st_work *work, struct stoker_error *err);
int pack_jpeg_encode(const struct st_view *pixels, int quality, struct st_buffer *into,
                     struct stoker_error *err);
/* Rewrites an image so that any part can be decoded alone. False: it must be kept unchanged. */
bool pack_crop_ready(struct st_bytes jpeg, struct st_buffer *into);

struct pack_sound {
    uint32_t rate, channels; /* 0: this build cannot read it */
    uint64_t frames;
};
/* Reads the header of a sound; with `deep`, decodes all of it. */
int pack_sound_look(struct pack_sound *sound, struct st_bytes bytes, bool deep,
                    struct stoker_error *err);

/* ---- writing ----------------------------------------------------------------------------------- */

/* A file that is written sequentially under a temporary name. */
struct pack_file {
    int fd;
    uint64_t size;
    uint32_t crc; /* CRC32C of all bytes written */
    uint8_t *buffer;
    uint64_t used;
    char path[PATH_MAX], temporary[PATH_MAX];
};
int pack_file_open(struct pack_file *file, const char *folder, const char *name,
                   struct stoker_error *err);
int pack_file_write(struct pack_file *file, const void *bytes, uint64_t size, struct stoker_error *err);
int pack_file_zeros(struct pack_file *file, uint64_t size, struct stoker_error *err);
/* Overwrites the first `size` bytes, and computes the checksum again. */
int pack_file_begin_again(struct pack_file *file, const void *bytes, uint64_t size,
                          struct stoker_error *err);
/* Continues after the first `size` bytes of an earlier run; begin_again must be called at the end. */
int pack_file_go_on(struct pack_file *file, const char *folder, const char *name, uint64_t size,
                    struct stoker_error *err);
/* Syncs everything written to the disk. */
int pack_file_sync(struct pack_file *file, struct stoker_error *err);
/* The same, then gives the file its final name. */
int pack_file_finish(struct pack_file *file, struct stoker_error *err);
/* Safe after a failed open, and after finish. Removes an unfinished file, or leaves it for
 * pack_file_go_on. */
void pack_file_drop(struct pack_file *file, bool leave);
/* ftruncate, whatever signals come in between. On failure false, with errno. */
bool pack_truncate(int fd, uint64_t size);
/* The name of a file until it is finished. */
int pack_temporary(char out[PATH_MAX], const char *folder, const char *name, struct stoker_error *err);
/* Makes the file of an earlier run available under its temporary name, even if it was renamed
 * already. */
int pack_take_up(const char *temporary, const char *path, struct stoker_error *err);
/* Gives a file its final name durably. */
int pack_rename(const char *temporary, const char *path, struct stoker_error *err);
/* The error for a failed write, with the remedy. */
int pack_cannot_write(const char *path, int why, struct stoker_error *err);
/* The error for files that changed since an earlier run. */
int pack_was_changed(const char *path, struct stoker_error *err);
/* Writes a whole file at once. */
int pack_file_put(const char *folder, const char *name, const void *bytes, uint64_t size,
                  struct stoker_error *err);
bool pack_append(struct st_buffer *buffer, const void *bytes, uint64_t size);
/* DST/NAME; fails if that is too long. */
int pack_path(char out[PATH_MAX], const char *folder, const char *name, struct stoker_error *err);

/* What a writer starts with. */
struct pack_start {
    const char *name;
    const struct st_cells *classes; /* class names, which tar files contain */
    uint64_t most; /* most samples */
    uint64_t done; /* samples added by an earlier run before its last `keep` */
};

struct pack_writer {
    const char *name;
    const char *extension;
    bool sharded; /* otherwise a single output, with `keep` */
    bool pixels;  /* stores pixels, not encoded images */
    size_t self_size;
    /* Whether this kind of source may be read while it writes; NULL: always. */
    bool (*beside)(const char *scheme);
    /* Starts an output in the folder, or resumes one. */
    int (*begin)(void *self, const struct pack_options *opt, const struct pack_start *start,
                 struct stoker_error *err);
    int (*add)(void *self, const struct pack_options *opt, struct pack_sample *sample,
               struct stoker_error *err);
    uint64_t (*size)(const void *self); /* bytes added, without those of an earlier run */
    /* Makes all samples so far durable. */
    int (*keep)(void *self, struct stoker_error *err);
    /* Completes the output; size and checksum go into the shard, additional files into `beside`. */
    int (*finish)(void *self, struct st_pack_shard *shard, struct st_pack_beside *beside,
                  struct stoker_error *err);
    /* Safe at any time, even twice. Removes an unfinished output, or leaves it for `begin` to resume. */
    void (*drop)(void *self, bool leave);
};
extern const struct pack_writer pack_writer_tar, pack_writer_tfrecord, pack_writer_lmdb, pack_writer_npy,
    pack_writer_hdf5;
/* NULL at the end. */
extern const struct pack_writer *const pack_writers[];

/* The header of a .npy file with `rows` of this piece (UINT64_MAX: of the piece alone), padded to `size`
 * bytes; it needs less than 200. */
void pack_npy_header(char *out, uint64_t size, const struct st_piece *piece, uint64_t rows);
/* Rows of arrays. */
struct pack_rows {
    uint64_t rows;
    uint32_t count; /* number of arrays; 0 before the first row */
    char names[ST_FIELDS_MAX][64];
    struct st_piece shapes[ST_FIELDS_MAX]; /* of the first row; all others must match */
};
/* Adds the fields of a sample as a row; fails if they do not match. */
int pack_rows_take(struct pack_rows *rows, const struct pack_sample *sample, struct st_piece *row,
                   struct stoker_error *err);
/* An INT, FLOAT or ARRAY as an array. */
struct st_piece pack_as_array(const struct pack_field *field);

/* ---- the manifest ------------------------------------------------------------------------------ */

#define PACK_LEDGER   "bad_samples.jsonl"

/* Locked while a run writes into its folder. */
#define PACK_LOCK ".stoker-pack-lock"
struct pack_lock {
    int fd; /* -1: not held */
    char path[PATH_MAX];
};
/* Creates the folder if necessary; fails while another run holds the lock, and names it. */
int pack_lock_take(struct pack_lock *lock, const char *folder, struct stoker_error *err);
void pack_lock_drop(struct pack_lock *lock);

/* DST must not be inside SRC. */
int pack_place_check(const struct pack_options *opt, struct stoker_error *err);
/* Hashes of names, sizes and times: of the archives of the source, of one sample, and of a sequence of
 * samples. */
#define PACK_DIGEST_BEGIN 0xcbf29ce484222325ull
uint64_t pack_digest_archives(const struct st_location *place);
uint64_t pack_digest_sample(const struct stoker_dataset *data, uint64_t number);
uint64_t pack_digest_add(uint64_t chain, uint64_t sum);
/* Checks that the source still has the samples that earlier runs packed; `chain` then continues after
 * them. */
int pack_digest_check(const struct st_pack *m, const struct pack_options *opt,
                      const struct stoker_dataset *data, struct stoker_order *order, uint64_t *chain,
                      struct stoker_error *err);
/* Opens the manifest of an earlier run with the same settings and the same source, or starts a new
 * one. */
int pack_manifest_open(struct st_pack *manifest, const struct pack_options *opt,
                       const struct stoker_dataset *data, uint64_t archives,
                       struct stoker_error *err);
int pack_manifest_bad(struct st_pack *manifest, const struct stoker_dataset *data,
                      const struct pack_sample *sample, struct stoker_error *err);
/* Records a finished shard, with the bad samples since the last one. */
int pack_manifest_add(struct st_pack *manifest, const struct pack_options *opt,
                      const struct st_pack_shard *shard, bool last, struct stoker_error *err);
/* Records the progress of the current output, with the bad samples since the last record; {0}: none. */
int pack_manifest_mark(struct st_pack *manifest, const struct pack_options *opt,
                       struct st_pack_mark mark, struct stoker_error *err);
/* For the functions above (manifest_write.c): the options that the output depends on, as one line of
 * JSON. The caller frees it. */
int pack_manifest_settings(char **out, const struct pack_options *opt, const struct stoker_dataset *data,
                           struct stoker_error *err);
/* Replaces the file atomically. */
int pack_manifest_store(const struct st_pack *manifest, const struct pack_options *opt,
                        struct stoker_error *err);
/* A quoted JSON string, at most `size` bytes with its terminator. */
void pack_json_text(char *out, size_t size, const char *text);

/* ---- the whole --------------------------------------------------------------------------------- */

struct pack_result {
    uint64_t samples, bad, bytes_in, bytes_out, shards;
    uint64_t done;    /* samples packed by this run */
    uint64_t resumed; /* samples packed by earlier runs */
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

/* Shows rate, bytes and remaining time: a line redrawn on a terminal, otherwise a new line every 10
 * s. */
struct pack_progress {
    const char *what;         /* "packing" */
    uint64_t total, began_at; /* began_at: done before the start */
    uint64_t start_ns, shown_ns;
    bool terminal, quiet;
};
void pack_progress_begin(struct pack_progress *p, const char *what, uint64_t done, uint64_t total,
                         bool quiet);
void pack_progress_show(struct pack_progress *p, uint64_t done, uint64_t bytes);
void pack_progress_end(struct pack_progress *p);

/* The extensions of sounds, with the dot; NULL at the end. */
extern const char *const pack_sounds[];
/* Opens any dataset, including folders of sounds and the finished part of an incomplete pack. `place`
 * then lists what it consists of, and must be freed in any case. */
int pack_data_open(struct stoker_dataset **out, struct st_location *place, const char *data,
                   const char *fields, struct stoker_error *err);

#endif
