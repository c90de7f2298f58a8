/* thresholds.h - every threshold of the rules, and where it comes from
 *
 * "Table" is the decision table from the design of the doctor; its numbers are starting points taken
 * from other tools and from discussions. "Reasoned": there is no source; the comment gives the reason.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_THRESHOLDS_H
#define ST_DOCTOR_THRESHOLDS_H

/* ---- whether there is anything to explain -----------------------------------------------------------
 */
#define DR_STALL_MATTERS                                                                                \
    0.05                     /* table, D1/D2: below it the run is compute-bound, no matter what else
                                is seen */
#define DR_STALL_SURE   0.02 /* reasoned: the low end of the interval must be clear of zero */
#define DR_STALL_SMALL  0.10 /* reasoned: a larger stall needs a cause even on a machine that others
                                use */
#define DR_STEPS_LEAST  10   /* reasoned: fewer steps tell nothing */
#define DR_STEPS_MEDIUM 50   /* design: a passive run has at least 50 steps */
#define DR_STEPS_HIGH   200  /* reasoned: four times as many halve the interval */
#define DR_WIDTH_HIGH   0.10 /* reasoned: width of the interval of the stall for high confidence */
#define DR_WIDTH_MEDIUM 0.25
#define DR_GAIN_WORTH   1.05 /* reasoned: the same 5 %; a smaller gain is not worth an edit */
#define DR_EQUAL_RUNS   0.03 /* measured: equal runs of the planted faults, alone on a machine */
#define DR_MODEL_ERROR  0.10 /* measured: of what is gained, replays of those faults against remedies */
#define DR_FIX_ENOUGH   0.50 /* reasoned: a setting is a fix if it gains half of what is possible */
#define DR_EPOCH_MATTERS                                                                                \
    0.10 /* reasoned: share of an epoch; twice DR_STALL_MATTERS, since few epochs are seen */

/* ---- workers and CPUs -------------------------------------------------------------------------------
 */
#define DR_QUEUE_HIGH     0.10 /* table, D4: share of a worker's time waiting for a CPU */
#define DR_WORKER_FULL    0.85 /* reasoned: about 100 % of a CPU minus the hand-over (table, D3 and
                                  D4) */
#define DR_TRAINING_LIGHT 0.30 /* reasoned: below this the training process needs no CPU to itself */
#define DR_TRAINING_WAITS                                                                               \
    0.50 /* reasoned: half a CPU, rounded down: what the training process can use if                    \
            batches fill all CPUs */
#define DR_OVERSUBSCRIBED                                                                               \
    1.5                      /* reasoned: workers per CPU beyond which the number itself is the fault   \
                              */
#define DR_WORKERS_MOST 64   /* reasoned: beyond it memory and start-up cost more than they gain */
#define DR_THROTTLED    0.01 /* table, D5 */
#define DR_STORM_BUSY                                                                                   \
    3.0 /* reasoned: a worker of torch has 2 threads at work: itself and its queue's                    \
         */
#define DR_TORCH_THREADS   3.0 /* torch's own in a worker: itself, the feeder of its queue, and the
                                  one that shares memory */
#define DR_STORM_THREADS   2.0 /* reasoned: threads at work per CPU, all workers together */
#define DR_STORM_CPUS      1.3 /* reasoned: CPUs of one worker; without helper threads it cannot
                                  exceed 1 */
#define DR_STORM_KERNEL    0.05  /* reasoned: kernel's part of the CPU time of workers that only load */
#define DR_TINY_BATCH      0.002 /* table, D20: 1 to 2 ms of work per batch */
#define DR_STOLEN_SEEN     0.05  /* reasoned: stolen CPUs to be reported, as a share of ours */
#define DR_NEIGHBOUR_SHARE 0.25  /* reasoned: CPUs used by others, as a share of those we may use */
#define DR_NEIGHBOUR_OURS  0.85  /* reasoned: above it we get our CPUs, no matter what else runs */
#define DR_GIL_LEAST       0.85 /* reasoned: the interpreter runs one thread at a time: all threads
                                   together use */
#define DR_GIL_MOST        1.25 /* about one CPU, however many are ready to run */
#define DR_GIL_OTHERS      0.30 /* reasoned: of that, threads other than the training thread */

/* ---- stages -----------------------------------------------------------------------------------------
 */
#define DR_STAGE_HEAVY            0.50 /* table, D26 and D27: share of the time of a batch */
#define DR_DECODE_LARGE           0.20 /* reasoned: a fifth, where transforms reduce what is decoded */
#define DR_STAGE_DECOMPRESS_HEAVY 0.30 /* reasoned: it should be negligible compared with decoding */
#define DR_STAGE_WAITS            0.35 /* reasoned: reading or network, a third of the time */
#define DR_DISCARDED_MATTERS      0.50 /* reasoned: where less is measured, the rules assume that half
                                          of the stage can be saved */
#define DR_STORED_LARGER          1.32 /* reasoned: images are stored at 1.15 times the side of the
                                          crop */
#define DR_DECODE_FIXED           0.05 /* reasoned: what of decoding does not depend on pixels */
#define DR_WAITING                0.50 /* reasoned: more than half of a stage is spent off the CPU */
#define DR_BATCH_VARIES           0.40 /* table, D12: coefficient of variation of the batch time */
#define DR_BEHIND                 0.50 /* reasoned: share of the time in next() spent in calls that
                                          waited while later batches were ready */
#define DR_CAPACITY_SHORT         1.30 /* reasoned: batch time / workers / step: beyond it the order
                                          is not the cause */
#define DR_MAIN_IN_NEXT           0.10 /* reasoned: share of a step in which the training thread
                                          unpickles */
#define DR_PIN_BUSY               0.80 /* table, D15 says about 100 %; queueing begins earlier */
#define DR_PUT_HEAVY              0.30 /* reasoned: share of the time of a batch spent on transferring
                                          it */

/* ---- storage, network, memory -----------------------------------------------------------------------
 */
#define DR_SMALL_FILE                                                                                   \
    262144.0 /* reasoned: below 256 KiB opening costs more than reading on most disks */
#define DR_OPENS           0.5       /* opens per sample: about one file each */
#define DR_DISK_IS_BUSY       0.80      /* table, D7: high; saturates early on NVMe, so never alone */
#define DR_DISK_STATE      0.30      /* reasoned: share of a worker's time in state D */
#define DR_STORAGE_READS   1e6       /* reasoned: bytes/s of the makers; with less, state D has
                                        another cause */
#define DR_HELPERS_MATTER  0.20      /* reasoned: CPU time of helping threads, relative to batches' */
#define DR_CHILDREN        0.20      /* reasoned: more than a program that a library asks once */
#define DR_UNEVEN          0.85      /* reasoned: workers that end together work more than 95 % */
#define DR_SOCKET_WAITS    0.30      /* reasoned: share of a worker's time, as DR_DISK_STATE */
#define DR_SWAPPED         33554432.0 /* reasoned: 32 MiB; systems swap out a few idle pages at rest */
#define DR_MEMORY_WAITS    0.05      /* as DR_STALL_MATTERS: some task waits for memory */
#define DR_LOCK_WAITS      0.15      /* reasoned: two workers that do nothing else than use one lock
                                        wait half of their time */
#define DR_FAULTS_READ     100.0     /* reasoned: major faults/s of the makers: mapped files are read */
#define DR_REFAULTS_MATTER        100.0     /* reasoned: pages/s, 400 KiB/s read a second time */
#define DR_HITS_GOOD       0.90      /* reasoned: share of reads that the page cache served */
#define DR_SHM_FULL        0.90      /* pytorch issue 5040: failures began at 87 % of 1 GB */
#define DR_GROWTH          1048576.0 /* reasoned: bytes/s of all workers; 3.6 GB per hour */
#define DR_GROWTH_UNKNOWN  4194304.0 /* the same where the objects of the dataset could not be
                                        counted */
#define DR_OBJECTS_MANY    100000.0  /* reasoned: Python objects; about 10 MB of reference counts */
#define DR_WARM_UP         0.20      /* table, D2: a stall of 20 % is obvious */
#define DR_WARM_UP_SECONDS 1.0       /* reasoned: less is the start of the workers */

/* ---- copies, GPU, ranks, outliers -------------------------------------------------------------------
 */
#define DR_COPY_MATTERS    0.05 /* as DR_STALL_MATTERS */
#define DR_PAGEABLE        0.50 /* reasoned: most copies */
#define DR_PCIE_FULL       0.70 /* reasoned: protocol overhead leaves 80 to 85 % of a link for data */
#define DR_PCIE_REACHED    0.88 /* measured: 55.3 GB/s from pinned memory on a link of 63 GB/s */
#define DR_SM_LOW          0.40 /* table, C1: SM active low */
#define DR_GPU_DRAINED                                                                                  \
    0.50 /* reasoned: share of the time in next() in which the GPU has nothing to                       \
            do. About 1 where the host launches too slowly; about 0 where it is                         \
            ahead of the GPU */
#define DR_LAUNCHING       0.90 /* table, C1: the training process at 100 % of a CPU */
#define DR_SYNC_MATTERS    0.10 /* reasoned: share of a step in which the host waits for the GPU */
#define DR_SYNC_STEPS      0.50 /* reasoned: in most steps */
#define DR_GAP_MATTERS     0.05 /* as DR_STALL_MATTERS: the GPU is idle, but not because of a missing
                                   batch */
#define DR_MEMORY_ROOM     0.60 /* table, C3 */
#define DR_SM_ROOM         0.60 /* reasoned: a busier GPU gains little from a larger batch */
#define DR_TENSOR_NONE     0.02 /* table, C4: about 0 */
#define DR_SM_WORKING      0.50 /* reasoned: the GPU is mostly computing */
#define DR_CAPABILITY      7.0  /* table, C4: tensor cores */
#define DR_LIMITED         0.50 /* reasoned: half of the time */
#define DR_CLOCK_LOW       0.75 /* reasoned: at full load GPUs usually reach their power limit, at
                                   0.85 and more */
#define DR_COST_MATTERS    0.05 /* as DR_STALL_MATTERS */
#define DR_COST_STEPS      0.30 /* reasoned: work in fewer steps stands out as long ones (ST306) */
#define DR_OUTLIERS        0.05 /* as DR_STALL_MATTERS */
#define DR_OUTLIER_CAUSE   0.30 /* reasoned: share of the excess of long steps; less does not explain
                                   them */
#define DR_OUTLIER_QUEUE   0.50 /* reasoned: waits of the training thread for a CPU, relative to the
                                   excess of long steps */
#define DR_STRAGGLER       0.10 /* reasoned: points of stall above the median rank */
#define DR_STRAGGLER_TIMES 2.0  /* and twice as much */
#define DR_SAME_PACE       0.80 /* reasoned: ranks whose batches take as long, but for the variation of
                                   a few per cent that one sees between equal machines */

#endif
