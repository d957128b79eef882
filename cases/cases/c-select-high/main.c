/* Waits for one descriptor with a high number. The sick twin has the kernel go through all below it; the cured
 * one names it. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/select.h>
#include <unistd.h>
enum { HIGH = 900 };
static int ready(int fd)
{
#ifdef CURED
    struct pollfd one = { .fd = fd, .events = POLLIN };
    return poll(&one, 1, 1000);
#else
    fd_set set;
    struct timeval second = { 1, 0 };
    FD_ZERO(&set);
    FD_SET(fd, &set);
    return select(fd + 1, &set, 0, 0, &second);
#endif
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 10000, p[2];
    long got = 0;
    static char buf[8192];
    if (pipe(p) || dup2(p[0], HIGH) != HIGH) return 1;
    for (int i = 0; i < n; i++) {
        if (write(p[1], buf, sizeof buf) != sizeof buf || ready(HIGH) != 1) return 1;
        got += read(HIGH, buf, sizeof buf);
    }
    printf("%ld\n", got);
    return 0;
}
