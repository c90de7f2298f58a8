/* tables.h - fast Huffman tables, cached by content
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_TABLES_H
#define ST_CODEC_JPEG_TABLES_H

#include "codec/jpeg/headers.h"

enum {
    ST_JPEG_LOOK_BITS = 11, /* five look-ups use at most 55 bits, one refill gives at least 56 */
    ST_JPEG_DC_BITS = 9,
    ST_JPEG_SKIP_BITS = 12,
    ST_JPEG_SKIP_MOST = 18, /* bits that an entry may use: three look-ups per refill */
    ST_JPEG_CACHE = 8,
};

/* An entry of the AC look-up: as many whole symbols as the next ST_JPEG_LOOK_BITS bits hold.
 *
 *   byte 0    bits used; 0: the entry holds no whole symbol
 *   byte 1    positions advanced, plus ST_JPEG_EOB if the block ends after them
 *   byte 2    zeros before the first value
 *   byte 3-7  the values from there on, signed
 *
 * Without a whole symbol, byte 1 is ST_JPEG_LONG; if the code itself fits, byte 2 is the run, byte 3 the
 * length of the code and byte 4 the size of the value; otherwise all three are 0. */
enum { ST_JPEG_LONG = 64, ST_JPEG_EOB = 128, ST_JPEG_VALUES = 5 };

/* For skipped blocks there is a second table, whose entries are bytes 0 and 1 of the first table's.
 * Values are not needed, so an entry takes all symbols whose codes fit, even if the bits of the last
 * value do not. It takes time to build, so it is built only for codes that recur. */

/* Codes of increasing length are increasing numbers, so the length of a code is found by comparison. */
struct st_jpeg_canon {
    uint32_t limit[17]; /* [length]: the first 16-bit number above all codes up to this length */
    int32_t offset[17]; /* [length]: from a code to its index in `symbols` */
    uint8_t symbols[256];
};

struct st_jpeg_ac {
    _Alignas(64) uint64_t look[1 << ST_JPEG_LOOK_BITS];
    uint16_t skip[1 << ST_JPEG_SKIP_BITS]; /* if has_skip */
    bool has_skip;
    uint32_t asked; /* number of uses before `skip` was built */
    struct st_jpeg_canon canon;
};

/* An entry of the DC look-up: total bits of code and value in bits 0-4 (0: the code is longer than
 * ST_JPEG_DC_BITS), bits of the code in bits 5-8, of the value in bits 9-12. */
struct st_jpeg_dc {
    _Alignas(64) uint16_t look[1 << ST_JPEG_DC_BITS];
    struct st_jpeg_canon canon;
};

/* Of scans of AC coefficients in progressive files, one symbol for each entry: a block has few there,
 * and nearly each scan has a code of its own.
 *
 *   bits 0-4     of the code and the value; 0: the symbol is not in the index
 *   bits 8-11    zeros before the value
 *   bits 16-31   the value; 0: another zero
 *
 * With ST_JPEG_ENDED, blocks end here: as many as a number says of which bits 8-11 have the size. */
enum { ST_JPEG_SINGLE_BITS = 10, ST_JPEG_ENDED = 1 << 12 };

struct st_jpeg_ac_single {
    _Alignas(64) uint32_t look[1 << ST_JPEG_SINGLE_BITS];
    struct st_jpeg_canon canon;
};

/* The bytes that a table was built from, and when it was last used. */
struct st_jpeg_cached {
    uint8_t counts[16], symbols[256];
    uint32_t total;
    uint64_t used; /* 0: empty */
    void *table;
};

struct st_jpeg_tables {
    struct st_jpeg_cached ac[ST_JPEG_CACHE], dc[ST_JPEG_CACHE], single[ST_JPEG_CACHE];
    uint64_t clock;
};

/* The table for a code, built now or earlier; *reason is set if there is none. It stays valid until
 * ST_JPEG_CACHE other codes have been requested. */
const struct st_jpeg_ac *st_jpeg_ac_table(struct st_jpeg_tables *tables, const struct st_jpeg_code *code,
                                          enum st_jpeg_reason *reason);
const struct st_jpeg_dc *st_jpeg_dc_table(struct st_jpeg_tables *tables, const struct st_jpeg_code *code,
                                          enum st_jpeg_reason *reason);
const struct st_jpeg_ac_single *st_jpeg_ac_single_table(struct st_jpeg_tables *tables,
                                                        const struct st_jpeg_code *code,
                                                        enum st_jpeg_reason *reason);
void st_jpeg_tables_free(struct st_jpeg_tables *tables);

#endif
