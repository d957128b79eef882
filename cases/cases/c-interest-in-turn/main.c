/* Answers 24 connections in turn. The sick twin sets each one's interest again after each answer, to what it is. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#define CONNECTIONS 24
static int watch(int epoll, int op, int fd)
{
    struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };
    return epoll_ctl(epoll, op, fd, &event);
}
int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100, epoll = epoll_create1(0), ends[CONNECTIONS][2];
    long answered = 0;
    char line[64];
    for (int i = 0; i < CONNECTIONS; i++) {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]) != 0 || watch(epoll, EPOLL_CTL_ADD, ends[i][0]) != 0)
            return 1;
    }
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < CONNECTIONS; i++)
            if (write(ends[i][1], line, snprintf(line, sizeof line, "%d of %d\n", i, round)) < 0)
                return 1;
        struct epoll_event ready[CONNECTIONS];
        int count = epoll_wait(epoll, ready, CONNECTIONS, -1);
        for (int i = 0; i < count; i++) {
            answered += read(ready[i].data.fd, line, sizeof line) > 0;
#ifndef CURED
            watch(epoll, EPOLL_CTL_MOD, ready[i].data.fd);
#endif
        }
    }
    printf("%ld\n", answered);
    return 0;
}
