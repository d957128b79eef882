/* Requests over one connection, each noted with the client's address. The sick twin asks for it each time; the
 * cured one once. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 10000, s[2];
    long got = 0;
    static char buf[2048];
    struct sockaddr_un at;
    socklen_t size = sizeof at;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, s) || getpeername(s[1], (void *)&at, &size)) return 1;
    for (int i = 0; i < n; i++) {
        if (send(s[0], buf, sizeof buf, 0) < 0 || recv(s[1], buf, sizeof buf, 0) < 0) return 1;
#ifndef CURED
        size = sizeof at;
        getpeername(s[1], (void *)&at, &size);
#endif
        got += at.sun_family == AF_UNIX;
    }
    printf("%ld\n", got);
    return 0;
}
