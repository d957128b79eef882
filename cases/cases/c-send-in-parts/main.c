/* Messages of a head, two fields and a body. The sick twin sends each part for itself; the cured one all at
 * once. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
static char head[16], name[12], kind[4], body[100];
static void say(int fd)
{
#ifdef CURED
    struct iovec parts[] = { { head, sizeof head }, { name, sizeof name }, { kind, sizeof kind }, { body, sizeof body } };
    struct msghdr all = { .msg_iov = parts, .msg_iovlen = 4 };
    sendmsg(fd, &all, 0);
#else
    send(fd, head, sizeof head, 0);
    send(fd, name, sizeof name, 0);
    send(fd, kind, sizeof kind, 0);
    send(fd, body, sizeof body, 0);
#endif
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 5000, s[2];
    long got = 0;
    static char in[65536];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, s)) return 1;
    for (int i = 0; i < n; i++) {
        say(s[0]);
        // Forty at once: the other end is a busy one.
        if (i % 40 == 39) got += recv(s[1], in, sizeof in, 0);
    }
    printf("%ld\n", got);
    return 0;
}
