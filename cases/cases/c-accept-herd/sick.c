/* a preforked greeting server and its client */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORKERS 8
#define CALLS 500

static int listener(struct sockaddr_in *a)
{
    socklen_t len = sizeof *a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    memset(a, 0, sizeof *a);
    a->sin_family = AF_INET;
    a->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, (struct sockaddr *)a, sizeof *a) || listen(fd, 128) || getsockname(fd, (struct sockaddr *)a, &len)) {
        perror("listen");
        exit(1);
    }
    return fd;
}

static void greet(int c)
{
    char b[64];
    ssize_t n = recv(c, b, sizeof b, 0);
    for (ssize_t i = 0; i < n; i++)
        b[i] ^= 0x20;
    if (n > 0)
        send(c, b, n, MSG_NOSIGNAL);
    close(c);
}

static void worker(int lfd)
{
    int ep = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event ev = { .events = EPOLLIN };
    epoll_ctl(ep, EPOLL_CTL_ADD, lfd, &ev);
    for (;;) {
        if (epoll_wait(ep, &ev, 1, -1) < 1)
            continue;
        int c = accept4(lfd, NULL, NULL, SOCK_CLOEXEC);
        if (c >= 0)
            greet(c);
    }
}

int main(void)
{
    struct sockaddr_in a;
    int lfd = listener(&a);
    pid_t pid[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        if ((pid[i] = fork()) == 0)
            worker(lfd);
    unsigned long sum = 0;
    for (int i = 0; i < CALLS; i++) {
        struct timespec pause = { 0, 500000 }; /* the next visitor */
        char b[64];
        nanosleep(&pause, NULL);
        int n = snprintf(b, sizeof b, "visitor %d", i), fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&a, sizeof a) || send(fd, b, n, 0) != n || recv(fd, b, n, MSG_WAITALL) != n)
            return 1;
        for (int k = 0; k < n; k++)
            sum = sum * 31 + (unsigned char)b[k];
        close(fd);
    }
    for (int i = 0; i < WORKERS; i++)
        kill(pid[i], SIGTERM), waitpid(pid[i], NULL, 0);
    printf("%d visitors, check %lx\n", CALLS, sum);
    return 0;
}
