/* pending.c - runs an image's pending ops
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/pending.h"

#include "op/colour/tables.h"
#include "op/filter/blur.h"
#include "op/filter/sharpness.h"

/* Adds an op that replaces each value by another. */
static bool add_table(struct st_tables *tables, const struct st_pending *op)
{
    switch (op->kind) {
    case ST_PENDING_BRIGHTNESS: st_tables_brightness(tables, op->factor); return true;
    case ST_PENDING_CONTRAST: st_tables_contrast(tables, op->factor); return true;
    case ST_PENDING_SOLARIZE: st_tables_solarize(tables, op->level); return true;
    case ST_PENDING_POSTERIZE: st_tables_posterize(tables, op->level); return true;
    case ST_PENDING_AUTOCONTRAST: st_tables_autocontrast(tables); return true;
    case ST_PENDING_EQUALIZE: st_tables_equalize(tables); return true;
    default: return false;
    }
}

int st_pending_run(const struct st_pending *pending, uint32_t count, const struct st_colour_rows *rows,
                 struct st_arena *arena, struct st_view *pixels)
{
    struct st_tables tables;
    int rc = STOKER_OK;
    st_tables_begin(&tables, rows, pixels);
    for (uint32_t k = 0; rc >= 0 && k < count; k++) {
        const struct st_pending *op = &pending[k];
        if (add_table(&tables, op))
            continue;
        st_tables_end(&tables);
        switch (op->kind) {
        case ST_PENDING_SATURATION: st_colour_saturation(rows, pixels, op->factor); break;
        case ST_PENDING_HUE: st_colour_hue(rows, pixels, op->factor); break;
        case ST_PENDING_BLUR: rc = st_blur(rows, op->across, op->down, op->sigma, arena, pixels); break;
        case ST_PENDING_SHARPNESS: rc = st_sharpness(rows, op->factor, arena, pixels); break;
        case ST_PENDING_PERMUTE: st_colour_permute(pixels, op->level); break;
        default:
            if (pixels->channels == 3)
                st_colour_grey3(rows, pixels);
        }
    }
    st_tables_end(&tables);
    return rc;
}
