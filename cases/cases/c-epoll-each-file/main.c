/* A reader that offers each file it opens to epoll, which takes no regular files. CURED looks first. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 3000, ep = epoll_create1(0);
    long total = 0;
    for (int i = 0; i < n; i++) {
        char b[64];
        int fd = open(argv[0], O_RDONLY);
#ifndef CURED
        struct epoll_event e = {.events = EPOLLIN};
        int flags = fcntl(fd, F_GETFL);
        fcntl(fd, F_SETFL, flags | O_NONBLOCK);
        if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e)) fcntl(fd, F_SETFL, flags);
#endif
        total += read(fd, b, sizeof b);
        close(fd);
    }
    printf("%ld\n", total + 0 * ep);
    return 0;
}
