/* metrics.c - the numbers of a run while it runs, in Prometheus' text format, on a port of this machine
 *
 * The recorder must sample on time, so nothing here waits: a request is read as far as it has come, ten
 * times per second, and dropped if it does not come at all.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/command/metrics.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "doctor/model/facts.h"
#include "doctor/model/numbers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CLIENTS = 4,
    REQUEST_MOST = 2048,
    SHARE = 200, /* computing the numbers may take 1 / SHARE of the time */
};
#define SECOND   UINT64_C(1000000000)
#define WINDOW   (60 * SECOND) /* the time that the numbers are about */
#define PATIENCE (2 * SECOND)  /* for a request */

struct client {
    int socket; /* -1: none */
    uint64_t since_ns;
    size_t size;
    char request[REQUEST_MOST + 1];
};

struct dr_metrics {
    int socket;
    struct client client[CLIENTS];
    uint64_t next_ns; /* before this time, the numbers are not computed again */
    char text[2048];
};

/* ---- numbers ------------------------------------------------------------------------------------- */

static void add(struct dr_metrics *m, const char *name, const char *help, double value)
{
    const size_t used = strlen(m->text);
    if (isfinite(value))
        snprintf(m->text + used, sizeof m->text - used,
                 "# HELP stoker_%s %s\n# TYPE stoker_%s gauge\nstoker_%s %.9g\n", name, help, name, name,
                 value);
}

/* Of the last minute of measured steps. */
static void add_steps(struct dr_metrics *m, const struct dr_facts *f)
{
    double seconds = 0, stall = 0, steps = 0, ready = 0, looked = 0;
    const uint64_t last = f->step_count ? f->steps[f->step_count - 1].start_ns : 0;
    for (uint32_t k = f->step_count; k-- > 0 && f->steps[k].start_ns + WINDOW >= last;) {
        const struct dr_step *step = &f->steps[k];
        seconds += step->seconds, stall += step->stall, steps++;
        if (step->ready != DR_UNKNOWN)
            ready += step->ready, looked++;
    }
    add(m, "stall_share", "Share of the steps in which training waited for data.",
        dr_share(stall, seconds));
    add(m, "samples_per_second", "Samples that training took per second.",
        dr_share(steps * f->loader.batch_size, seconds));
    add(m, "batches_ready", "Batches that were ready when one was asked for.",
        dr_share(ready, looked));
}

static void compute(struct dr_metrics *m, const char *directory)
{
    struct dr_run *run = NULL;
    struct dr_facts facts = {0};
    m->text[0] = '\0';
    if (dr_run_open(&run, directory, NULL))
        return;
    if (!dr_facts_of(&facts, run, -1, NULL))
        add_steps(m, &facts);
    const uint64_t end = run->end_ns;
    const struct dr_rows rows = dr_rows_between(run, end > WINDOW ? end - WINDOW : 0, end + 1);
    add(m, "gpu_busy", "Share of the time in which a kernel ran on the GPU.",
        dr_column_mean(&run->machine, rows, DR_GPU_BUSY));
    add(m, "cpus_used", "CPUs that the processes of the run used.",
        dr_column_mean(&run->machine, rows, DR_CPU_OURS));
    dr_facts_free(&facts);
    dr_run_close(run);
}

static void refresh(struct dr_metrics *m, const char *directory)
{
    const uint64_t now = st_now_ns();
    if (now < m->next_ns)
        return;
    const uint64_t before = st_thread_cpu_ns();
    compute(m, directory);
    const uint64_t pause = SHARE * (st_thread_cpu_ns() - before);
    m->next_ns = now + (pause > SECOND ? pause : SECOND);
}

/* ---- requests ------------------------------------------------------------------------------------ */

static void drop(struct client *client)
{
    close(client->socket);
    client->socket = -1;
}

static void answer(struct dr_metrics *m, struct client *client, const char *directory)
{
    char head[160], all[sizeof head + sizeof m->text];
    const bool good = !strncmp(client->request, "GET /metrics ", 13) ||
                      !strncmp(client->request, "GET /metrics?", 13) ||
                      !strncmp(client->request, "GET / ", 6);
    if (good)
        refresh(m, directory);
    const char *body = good ? m->text : "only /metrics is here\n";
    snprintf(head, sizeof head,
             "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
             "Content-Length: %zu\r\nConnection: close\r\n\r\n",
             good ? "200 OK" : "404 Not Found", strlen(body));
    const int size = snprintf(all, sizeof all, "%s%s", head, body);
    /* it is smaller than the buffer of a socket */
    if (send(client->socket, all, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL) == size)
        shutdown(client->socket, SHUT_WR);
    drop(client);
}

/* Reads what has come of a request; answers it when it is complete. */
static void listen_to(struct dr_metrics *m, struct client *client, const char *directory)
{
    const ssize_t got = recv(client->socket, client->request + client->size,
                             REQUEST_MOST - client->size, MSG_DONTWAIT);
    const bool later = got < 0 && (errno == EAGAIN || errno == EINTR);
    if (got > 0)
        client->size += (size_t)got;
    client->request[client->size] = '\0';
    if (strstr(client->request, "\r\n\r\n") || strstr(client->request, "\n\n"))
        answer(m, client, directory);
    else if ((got <= 0 && !later) || client->size == REQUEST_MOST ||
             st_now_ns() - client->since_ns > PATIENCE)
        drop(client);
}

void dr_metrics_serve(struct dr_metrics *m, const char *directory)
{
    for (int k = 0; k < CLIENTS; k++) {
        struct client *client = &m->client[k];
        if (client->socket < 0) {
            client->socket = accept4(m->socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
            client->since_ns = st_now_ns();
            client->size = 0;
        }
        if (client->socket >= 0)
            listen_to(m, client, directory);
    }
}

int dr_metrics_open(struct dr_metrics **out, uint16_t port, struct stoker_error *err)
{
    struct dr_metrics *m = *out = st_calloc(1, sizeof *m);
    const struct sockaddr_in here = {.sin_family = AF_INET,
                                     .sin_port = htons(port),
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int yes = 1;
    if (!m)
        return st_fail(err, STOKER_ENOMEM, "out of memory for --metrics");
    for (int k = 0; k < CLIENTS; k++)
        m->client[k].socket = -1;
    m->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (m->socket >= 0 && !setsockopt(m->socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) &&
        !bind(m->socket, (const struct sockaddr *)&here, sizeof here) && !listen(m->socket, CLIENTS))
        return STOKER_OK;
    const int rc = st_fail_errno(err, errno, "--metrics: cannot listen on port %u of 127.0.0.1", port);
    dr_metrics_close(m);
    *out = NULL;
    return rc;
}

void dr_metrics_close(struct dr_metrics *m)
{
    if (!m)
        return;
    for (int k = 0; k < CLIENTS; k++)
        if (m->client[k].socket >= 0)
            close(m->client[k].socket);
    if (m->socket >= 0)
        close(m->socket);
    free(m);
}
