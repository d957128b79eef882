/* A reader of many small files that offers each to epoll, which takes no regular files. CURED knows that. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 3000, ep = epoll_create1(0);
    long total = 0;
    char folder[] = "/tmp/eachXXXXXX", first[64], name[64];
    if (!mkdtemp(folder)) return 1;
    snprintf(first, sizeof first, "%s/0", folder);
    int made = open(first, O_WRONLY | O_CREAT, 0600);
    total += write(made, "small", 5);
    close(made);
    for (int i = 1; i < n; i++) {
        snprintf(name, sizeof name, "%s/%d", folder, i);
        if (link(first, name)) return 1;
    }
    for (int i = 0; i < n; i++) {
        char b[64];
        snprintf(name, sizeof name, "%s/%d", folder, i);
        int fd = open(name, O_RDONLY);
#ifndef CURED
        struct epoll_event e = {.events = EPOLLIN};
        int flags = fcntl(fd, F_GETFL);
        fcntl(fd, F_SETFL, flags | O_NONBLOCK);
        if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e)) fcntl(fd, F_SETFL, flags);
#endif
        total += read(fd, b, sizeof b);
        close(fd);
        unlink(name);
    }
    rmdir(folder);
    printf("%ld\n", total + 0 * ep);
    return 0;
}
