/* decompress.c - ST228: decompression takes much of the workers' time
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    if (!dr_heavy_stage(c, out, DR_STAGE_DECOMPRESS, DR_STAGE_DECOMPRESS_HEAVY, ""))
        return false;
    dr_gain_by_stage(c, out, DR_STAGE_DECOMPRESS, (struct dr_range){0.5, 0.2, 0});
    DR_SAY(out->advice, "store arrays uncompressed (np.save instead of np.savez_compressed, HDF5 "
                        "without gzip), or with lz4 or zstd");
    dr_say_stoker(c, out, "stoker pack SRC DST --format npy, or tar with --compress zstd",
                  "stoker pack SRC DST --format npy, or tar with --compress zstd");
    return true;
}

const struct dr_rule dr_rule_decompress = {
    .code = "ST228",
    .name = "slow-decompression",
    .title = "Decompression takes much of the workers' time",
    .needs = "step.stall,batch.stages",
    .check = check,
    .symptoms = "A third of the workers' time or more is spent in zlib, gzip, bz2 or lzma: .npz files, "
                "HDF5 filters, .gz streams.",
    .why = "zlib decompresses a few hundred MB per second on one CPU, bz2 and lzma a tenth of that. "
           "lz4 and zstd are several times faster at a similar size, and with a fast disk no "
           "compression is needed.",
    .fix_torch = "np.save(path, array) and np.load(path, mmap_mode=\"r\"); h5py without "
                 "compression=\"gzip\"; zstd where size matters.",
    .fix_stoker = "stoker pack SRC DST --format npy\n"
                  "stoker pack SRC DST --compress zstd",
    .how_to_check = "The share of decompression falls; instead, more bytes are read per second.",
};
