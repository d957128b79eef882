/* Messages over a connection to ourselves. The sick twin corks it around each; the cured one does not: its
 * one writev holds all parts already. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
static void cork(int fd, int on)
{
#ifndef CURED
    setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on);
#else
    (void)fd, (void)on;
#endif
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 5000;
    long got = 0;
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t size = sizeof at;
    int door = socket(AF_INET, SOCK_STREAM, 0), a = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(door, (void *)&at, size) || listen(door, 1) || getsockname(door, (void *)&at, &size)) return 1;
    if (connect(a, (void *)&at, size)) return 1;
    int b = accept(door, 0, 0);
    static char head[40], body[1400], in[4096];
    struct iovec parts[2] = { { head, sizeof head }, { body, sizeof body } };
    for (int i = 0; i < n; i++) {
        cork(a, 1);
        if (writev(a, parts, 2) != sizeof head + sizeof body) return 1;
        cork(a, 0);
        if (recv(b, in, sizeof head + sizeof body, MSG_WAITALL) < 0) return 1;
        got++;
    }
    printf("%ld\n", got);
    return 0;
}
