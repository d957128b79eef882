/* A pipe for each job, made not to block and watched: epoll takes it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 2000, ep = epoll_create1(0), got = 0;
    for (int i = 0; i < n; i++) {
        int p[2];
        char b[8];
        if (pipe2(p, O_NONBLOCK)) return 1;
        struct epoll_event e = {.events = EPOLLIN, .data.fd = p[0]};
        if (epoll_ctl(ep, EPOLL_CTL_ADD, p[0], &e) || write(p[1], "done", 4) != 4) return 1;
        got += epoll_wait(ep, &e, 1, 1000) == 1 && read(e.data.fd, b, sizeof b) == 4;
        close(p[0]);
        close(p[1]);
    }
    printf("%d\n", got);
    return 0;
}
