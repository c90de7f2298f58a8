/* fuzz_datum.c - Caffe's Datum
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/lmdb/datum.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct st_datum datum;
    volatile uint64_t sum = 0;
    if (st_datum_parse(&datum, (struct st_bytes){data, size}))
        for (size_t i = 0; i < datum.data.size; i++)
            sum += datum.data.data[i];
    return 0;
}
