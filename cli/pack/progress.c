/* progress.c - shows progress, rate and remaining time
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include "cli/pack/pack.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

#define REDRAW_NS 100000000ull   /* on a terminal */
#define LINE_NS   10000000000ull /* in a log */

void pack_progress_begin(struct pack_progress *p, const char *what, uint64_t done, uint64_t total,
                         bool quiet)
{
    const uint64_t now = st_now_ns();
    *p = (struct pack_progress){.what = what,
                                .total = total,
                                .began_at = done,
                                .start_ns = now,
                                .shown_ns = now,
                                .terminal = can_redraw(),
                                .quiet = quiet};
}

void pack_progress_show(struct pack_progress *p, uint64_t done, uint64_t bytes)
{
    enum { WIDTH = 24 };
    const uint64_t now = st_now_ns();
    if (p->quiet || now - p->shown_ns < (p->terminal ? REDRAW_NS : LINE_NS))
        return;
    p->shown_ns = now;
    const double seconds = (double)(now - p->start_ns) / 1e9;
    const double rate = (double)(done - p->began_at) / seconds;
    const double left = rate > 0 ? (double)(p->total - done) / rate : 0;
    const double share = p->total ? (double)done / (double)p->total : 1;
    struct bytes_text size;
    char bar[WIDTH + 1], line[256];
    memset(bar, '.', WIDTH);
    memset(bar, '#', (size_t)(WIDTH * share));
    bar[WIDTH] = '\0';
    snprintf(line, sizeof line, "%s %d:%02d left [%s] %llu/%llu  %.0f samples/s  %s", p->what,
             (int)(left / 60), (int)left % 60, bar, (unsigned long long)done,
             (unsigned long long)p->total, rate, with_unit(&size, (double)bytes));
    if (p->terminal)
        redraw(line);
    else
        fprintf(stderr, "%s\n", line);
}

void pack_progress_end(struct pack_progress *p)
{
    if (p->terminal && !p->quiet)
        redraw("");
}
