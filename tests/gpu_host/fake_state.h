/* fake_state.h - what the fake driver knows; all of it guarded by fake_lock
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_FAKE_STATE_H
#define ST_TESTS_FAKE_STATE_H

#include "fake_cuda.h"
#include "fake_streams.h"

/* The driver's functions are declared by those who look them up, in tables of their own. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define EXPORT __attribute__((visibility("default")))

enum { DEVICES_MAX = 8, KERNELS_MAX = 16 };
enum { INVALID_VALUE = 1, NO_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101,
       INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600, ILLEGAL_ADDRESS = 700,
       CAPTURE_UNSUPPORTED = 900, CAPTURE_IMPLICIT = 906 };

struct CUctx_st {
    int retained;
};

struct block {
    struct block *next;
    uint8_t *memory;
    size_t bytes;
    int device; /* -1: pinned */
};

struct CUfunc_st {
    const char *name;
    size_t bytes;
    void (*run)(const void *, unsigned);
};

struct fake_capture {
    struct CUstream_st *stream;
    bool broken;
};

extern struct CUctx_st fake_contexts[DEVICES_MAX];
extern struct block *fake_blocks;
extern struct CUfunc_st fake_kernels[KERNELS_MAX];
extern struct fake_capture fake_capture;
extern struct fake_cuda_counts fake_counts;
extern int fake_poison;

enum needs { NOTHING, DRIVER, CONTEXT };

/* The beginning of every function: takes the lock, or says why there is nothing to be had. */
int fake_begin(const char *function, enum needs needs);
#define BEGIN(needs)                                                                                       \
    do {                                                                                                   \
        const int refused = fake_begin(__func__, needs);                                                   \
        if (refused)                                                                                       \
            return refused;                                                                                \
    } while (0)
/* And its end: gives the lock back. */
int fake_end(int result);

struct CUctx_st *fake_current(void);
/* Whether this call is one that a capture in the global mode does not stand, from whichever thread. */
bool fake_disturbs_capture(void);

#endif
