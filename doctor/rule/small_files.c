/* small_files.c - ST208: many small files are opened one by one
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    const bool reading = f->stage_share[DR_STAGE_READ] >= DR_STAGE_WAITS;
    if (!dr_late(c) || !(reading || dr_storage_limits(c)) || !(f->opens_per_sample >= DR_OPENS))
        return false;
    const double size = dr_known(f->bytes_per_open) ? f->bytes_per_open : f->disk_request;
    if (!(size < DR_SMALL_FILE))
        return false;
    struct dr_text file, wait;
    const double opens =
        f->opens_per_sample * (dr_known(f->loader.batch_size) ? f->loader.batch_size : 1);
    out->weight =
        f->stall_share * (dr_known(f->stage_share[DR_STAGE_READ]) ? f->stage_share[DR_STAGE_READ] : 1);
    out->order = DR_ORDER_SMALL_FILES;
    DR_SAY(out->sentence,
           "%.3g files of %s are opened per sample: opening and reading them takes %s per batch (%s per "
           "file)",
           f->opens_per_sample, dr_bytes_text(&file, size),
           dr_seconds_text(&wait, f->stage[DR_STAGE_READ]),
           dr_seconds_text(&(struct dr_text){""}, f->stage[DR_STAGE_READ] / opens));
    dr_gain_by_stage(c, out, DR_STAGE_READ, (struct dr_range){0.5, 0.1, 0});
    DR_SAY(out->advice, "%s",
           "pack the samples into large files: tar shards (WebDataset), LMDB, HDF5, or arrays that "
           "hold many samples");
    dr_say_stoker(c, out,
                  "stoker pack SRC DST, then stoker.open(\"DST/*.tar\"): random access within shards, "
                  "true shuffling",
                  "stoker pack SRC DST, then stoker.open(\"DST/*.tar\")");
    return true;
}

const struct dr_rule dr_rule_small_files = {
    .code = "ST208",
    .name = "small-files",
    .title = "Many small files are opened one by one",
    .needs = "step.stall,batch.stages,batch.opens",
    .check = check,
    .symptoms = "One or more files of less than 256 KiB are opened for each sample; reading takes a "
                "third of the workers' time or more; the disk serves many requests but few bytes.",
    .why = "Each open looks up the path, then the inode, then the data: two or three requests that "
           "depend on each other. On hard disks and shared file systems each of them takes "
           "milliseconds.",
    .fix_torch = "Pack the samples into shards and read those: "
                 "webdataset.WebDataset(\"train-{000..127}.tar\"), LMDB, HDF5. On a hard disk use "
                 "fewer workers, not more.",
    .fix_stoker = "stoker pack imagenet/train packed --shuffle 1\n"
                  "stoker.open(\"packed/*.tar\", fields=(\"jpg\", \"cls\"))",
    .how_to_check = "Run `stoker bench` on the folder and on the packed form, and compare files per "
                    "second. Opens per sample fall to nearly 0.",
};
