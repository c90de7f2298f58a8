/* net.c - bytes received from the network and on loopback
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/probe/probes.h"

#include <math.h>
#include <string.h>

struct net {
    int file;
    struct dr_counter received, loopback;
};

static bool net_open(void *state, const char *root, struct dr_limits *limits, struct dr_absent *absent)
{
    struct net *net = state;
    (void)limits;
    net->file = dr_file_open(root, "/proc/net/dev");
    if (net->file >= 0)
        return true;
    dr_absent_all(absent, DR_NET_RECEIVED, DR_NET_LOOPBACK, "cannot read /proc/net/dev",
                  "mount /proc as usual");
    return false;
}

static void net_sample(void *state, struct dr_tick *tick, const struct dr_watched *watched)
{
    struct net *net = state;
    char text[16384];
    double received = 0, loopback = NAN;
    (void)watched;
    if (!dr_file_whole(net->file, text, sizeof text))
        return;
    for (char *line = text; line && *line; line = strchr(line, '\n'), line += line != NULL) {
        char *colon = strchr(line, ':'), *end = strchr(line, '\n');
        if (!colon || (end && colon > end))
            continue; /* the two header lines */
        line += strspn(line, " ");
        double bytes = 0;
        dr_text_next(colon + 1, &bytes);
        if (colon - line == 2 && !strncmp(line, "lo", 2))
            loopback = bytes;
        else
            received += bytes;
        line = colon;
    }
    const double seconds = dr_tick_seconds(tick);
    tick->machine[DR_NET_RECEIVED] = dr_counter_rate(&net->received, received, seconds);
    tick->machine[DR_NET_LOOPBACK] = dr_counter_rate(&net->loopback, loopback, seconds);
}

static void net_close(void *state) { dr_file_close(&((struct net *)state)->file); }

const struct dr_probe dr_probe_net = {"net",      sizeof(struct net), net_open,
                                      net_sample, net_close,          .pause_ms = DR_SLOW_MS};
