// A loop that registers its timer again before each wait, though the timer's one event has not come.
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int times = argc > 1 ? atoi(argv[1]) : 1000, ends[2], seen = 0;
    int poll = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    if (pipe(ends) || poll < 0 || timer < 0) return 1;
    struct epoll_event once = {.events = EPOLLIN | EPOLLONESHOT, .data.fd = timer};
    struct epoll_event input = {.events = EPOLLIN, .data.fd = ends[0]};
    epoll_ctl(poll, EPOLL_CTL_ADD, timer, &once);
    epoll_ctl(poll, EPOLL_CTL_ADD, ends[0], &input);
    for (int n = 0; n < times; n++) {
        struct epoll_event came;
        char byte = (char)n;
#ifndef CURED
        epoll_ctl(poll, EPOLL_CTL_MOD, timer, &once);
#endif
        if (write(ends[1], &byte, 1) != 1 || epoll_wait(poll, &came, 1, -1) != 1) return 1;
        if (read(ends[0], &byte, 1) == 1) seen += byte & 1;
    }
    printf("%d\n", seen);
}
