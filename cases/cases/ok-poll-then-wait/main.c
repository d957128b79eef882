/* An event loop that looks without waiting for what came in the meantime, works on it, and only then waits. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 300, waits = 0, ends[2];
    int loop = epoll_create1(0);
    struct epoll_event event = { .events = EPOLLIN };
    char bytes[64];
    if (pipe(ends) || epoll_ctl(loop, EPOLL_CTL_ADD, ends[0], &event))
        return 1;
    while (waits < n) {
        if (waits % 3 == 0 && write(ends[1], bytes, sizeof bytes) != sizeof bytes)
            return 1;
        while (epoll_wait(loop, &event, 1, 0) == 1)
            if (read(ends[0], bytes, sizeof bytes) <= 0)
                return 1;
        epoll_wait(loop, &event, 1, 2);
        waits++;
    }
    printf("%d\n", waits);
    return 0;
}
