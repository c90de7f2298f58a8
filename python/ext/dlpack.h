/* dlpack.h - the part of the DLPack ABI (version 1 and before) that a producer of tensors needs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXT_DLPACK_H
#define EXT_DLPACK_H

#include <stdint.h>

enum { DLPACK_MAJOR = 1, DLPACK_MINOR = 0 };
enum { DLPACK_CPU = 1, DLPACK_CUDA = 2, DLPACK_CUDA_HOST = 3 };
enum { DLPACK_INT = 0, DLPACK_UINT = 1, DLPACK_FLOAT = 2, DLPACK_BFLOAT = 4, DLPACK_BOOL = 6 };

struct dlpack_device {
    int32_t type, id;
};

struct dlpack_dtype {
    uint8_t code, bits;
    uint16_t lanes;
};

struct dlpack_tensor {
    void *data;
    struct dlpack_device device;
    int32_t ndim;
    struct dlpack_dtype dtype;
    int64_t *shape, *strides; /* strides in elements */
    uint64_t byte_offset;
};

/* In a capsule named "dltensor", which its consumer renames to "used_dltensor". */
struct dlpack_managed {
    struct dlpack_tensor tensor;
    void *context;
    void (*deleter)(struct dlpack_managed *self);
};

/* In a capsule named "dltensor_versioned". */
struct dlpack_versioned {
    struct {
        uint32_t major, minor;
    } version;
    void *context;
    void (*deleter)(struct dlpack_versioned *self);
    uint64_t flags;
    struct dlpack_tensor tensor;
};

#endif
