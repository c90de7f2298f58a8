/* late_proxy.c - passes connections on, each request later by some milliseconds: a network further away
 *
 *     late_proxy PORT SERVER_PORT MILLISECONDS
 *
 * Both on this machine. What the client sends is held back; what the server sends goes through at once,
 * without being copied into this program, so that the proxy takes little of the CPU that is measured.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int server_port;
static long late_ms;

struct link {
    int client, server;
};

static struct sockaddr_in here(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void *answers(void *argument)
{
    const struct link *link = argument;
    int pipes[2];
    ssize_t got = 1;
    if (pipe(pipes))
        return NULL;
    fcntl(pipes[1], F_SETPIPE_SZ, 1 << 20);
    while (got > 0 && (got = splice(link->server, NULL, pipes[1], NULL, 1 << 20, SPLICE_F_MOVE)) > 0)
        for (ssize_t put = 1; got > 0 && put > 0; got -= put) {
            put = splice(pipes[0], NULL, link->client, NULL, (size_t)got, SPLICE_F_MOVE);
            if (put <= 0 || put == got) {
                got = put > 0 ? 1 : 0;
                break;
            }
        }
    shutdown(link->client, SHUT_RDWR);
    shutdown(link->server, SHUT_RDWR);
    close(pipes[0]);
    close(pipes[1]);
    return NULL;
}

static void *requests(void *argument)
{
    struct link *link = argument;
    char bytes[16384];
    ssize_t got;
    pthread_t other;
    if (pthread_create(&other, NULL, answers, link))
        return NULL;
    while ((got = read(link->client, bytes, sizeof bytes)) > 0) {
        nanosleep(&(struct timespec){late_ms / 1000, late_ms % 1000 * 1000000}, NULL);
        if (write(link->server, bytes, (size_t)got) != got)
            break;
    }
    shutdown(link->client, SHUT_RDWR);
    shutdown(link->server, SHUT_RDWR);
    pthread_join(other, NULL);
    close(link->client);
    close(link->server);
    free(link);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    const int one = 1, door = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in own = here(atoi(argv[1]));
    server_port = atoi(argv[2]);
    late_ms = atol(argv[3]);
    signal(SIGPIPE, SIG_IGN);
    setsockopt(door, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (door < 0 || bind(door, (struct sockaddr *)&own, sizeof own) || listen(door, 1024)) {
        perror("late_proxy");
        return 1;
    }
    for (;;) {
        struct sockaddr_in far = here(server_port);
        struct link *link = calloc(1, sizeof *link);
        pthread_t thread;
        if (!link || (link->client = accept(door, NULL, NULL)) < 0)
            return 1;
        link->server = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(link->client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        setsockopt(link->server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (connect(link->server, (struct sockaddr *)&far, sizeof far) ||
            pthread_create(&thread, NULL, requests, link)) {
            close(link->client);
            close(link->server);
            free(link);
            continue;
        }
        pthread_detach(thread);
    }
}
