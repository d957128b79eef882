/* A loop with a timer that is hardly ever wanted: before each wait it is unset, as if it were set. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

struct loop { int ep, timer, in, out, set; };

static void expect(struct loop *l, int ms)
{
#ifdef CURED
    if (!ms && !l->set) return;
#endif
    struct itimerspec t = { { 0, 0 }, { ms / 1000, ms % 1000 * 1000000L } };
    timerfd_settime(l->timer, 0, &t, NULL);
    l->set = ms != 0;
}

static unsigned turn(struct loop *l, unsigned n)
{
    struct epoll_event e;
    unsigned char b = n;
    if (write(l->out, &b, 1) != 1) abort();
    expect(l, n % 1000 == 999 ? 5000 : 0);
    if (epoll_wait(l->ep, &e, 1, -1) != 1 || read(l->in, &b, 1) != 1) abort();
    if (n % 1000 == 999) expect(l, 0);
    return b;
}

int main(int argc, char **argv)
{
    unsigned n = argc > 1 ? atoi(argv[1]) : 5000, sum = 0;
    int p[2];
    if (pipe(p)) return 1;
    struct loop l = { epoll_create1(0), timerfd_create(CLOCK_MONOTONIC, 0), p[0], p[1], 0 };
    struct epoll_event e = { .events = EPOLLIN };
    epoll_ctl(l.ep, EPOLL_CTL_ADD, l.timer, &e);
    epoll_ctl(l.ep, EPOLL_CTL_ADD, l.in, &e);
    for (unsigned i = 0; i < n; i++) sum = sum * 31 + turn(&l, i);
    printf("%u\n", sum);
    return 0;
}
