/* Waits for whichever of 900 descriptors is ready. The sick twin has the kernel go through all of them; the
 * cured one is told. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>
enum { IDLE = 900, FIRST = 50 };
static fd_set all;
static int polled, last;
static void watch(int fd)
{
#ifdef CURED
    struct epoll_event in = { .events = EPOLLIN, .data.fd = fd };
    if (epoll_ctl(polled, EPOLL_CTL_ADD, fd, &in)) exit(1);
#endif
    FD_SET(fd, &all);
    last = fd;
}
static int ready(void)
{
#ifdef CURED
    struct epoll_event one;
    return epoll_wait(polled, &one, 1, 1000) == 1 ? one.data.fd : -1;
#else
    fd_set set = all;
    struct timeval second = { 1, 0 };
    if (select(last + 1, &set, 0, 0, &second) < 1) return -1;
    for (int fd = last; fd >= 0; fd--)
        if (FD_ISSET(fd, &set)) return fd;
    return -1;
#endif
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 10000, idle[2], busy[2];
    long got = 0;
    static char buf[8192];
    polled = epoll_create1(0);
    if (polled < 0 || pipe(idle) || pipe(busy)) return 1;
    for (int i = 0; i < IDLE; i++) {
        if (dup2(idle[0], FIRST + i) < 0) return 1;
        watch(FIRST + i);
    }
    if (dup2(busy[0], FIRST + IDLE) < 0) return 1;
    watch(FIRST + IDLE);
    for (int i = 0; i < n; i++) {
        if (write(busy[1], buf, sizeof buf) != sizeof buf) return 1;
        got += read(ready(), buf, sizeof buf);
    }
    printf("%ld\n", got);
    return 0;
}
