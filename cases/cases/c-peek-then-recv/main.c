/* Datagrams of different length. The sick twin asks for each one's length first; the cured one has room for
 * any. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
static char buf[2048];
static ssize_t take(int fd)
{
#ifdef CURED
    return recv(fd, buf, sizeof buf, 0);
#else
    ssize_t size = recv(fd, buf, 1, MSG_PEEK | MSG_TRUNC);
    return recv(fd, buf, size, 0);
#endif
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 10000, s[2];
    long got = 0;
    static char out[2048];
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, s)) return 1;
    for (int i = 0; i < n; i++) {
        if (send(s[0], out, 600 + i % 1000, 0) < 0) return 1;
        got += take(s[1]);
    }
    printf("%ld\n", got);
    return 0;
}
