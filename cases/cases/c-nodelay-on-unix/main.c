/* Messages over a connection that may be TCP and is not. The sick twin tries to set TCP_NODELAY with each; the
 * cured one remembers the refusal. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
static void hurry(int fd)
{
    static int refused, on = 1;
    if (refused) return;
    int failed = setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
#ifdef CURED
    refused = failed;
#else
    (void)failed;
#endif
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 10000, s[2];
    long got = 0;
    static char buf[2048];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, s)) return 1;
    for (int i = 0; i < n; i++) {
        hurry(s[0]);
        if (send(s[0], buf, sizeof buf, 0) < 0) return 1;
        got += recv(s[1], buf, sizeof buf, 0);
    }
    printf("%ld\n", got);
    return 0;
}
