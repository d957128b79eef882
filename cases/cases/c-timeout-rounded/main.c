/* An event loop with one timer. The sick twin rounds what is left until it is due down to milliseconds, the cured one
 * up. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 60, fired = 0;
    int loop = epoll_create1(0);
    struct epoll_event event;
    long long due = now() + 2700000;
    while (fired < n) {
        long long left = due - now();
        if (left <= 0) {
            fired++;
            due = now() + 2700000;
            continue;
        }
#ifdef CURED
        int timeout = (left + 999999) / 1000000;
#else
        int timeout = left / 1000000;
#endif
        epoll_wait(loop, &event, 1, timeout);
    }
    printf("%d\n", fired);
    return 0;
}
