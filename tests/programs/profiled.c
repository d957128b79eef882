/* A profiler's view of a program that makes calls: SIGPROF at 5 kHz, and in each a backtrace, which
 * has to reach main from wherever it is. Prints how many did not. */
#define _GNU_SOURCE
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH = 12 };
static volatile int samples, shorter, inside;
static void *outermost;

static void handler(int signal)
{
    void *frames[64];
    int n = backtrace(frames, 64);
    if (!inside)
        return;
    samples++;
    /* main's caller is the last but one frame or so of every complete stack. */
    int found = 0;
    for (int i = 0; i < n; i++)
        found |= frames[i] == outermost;
    shorter += !found;
}

__attribute__((noinline)) static int deep(int n)
{
    if (n > 0)
        return deep(n - 1) + 1;
    int result = 0;
    for (int i = 0; i < 20; i++)
        result += getppid() > 0, result += close(-1) < 0;
    return result;
}

int main(int argc, char **argv)
{
    int wanted = argc > 1 ? atoi(argv[1]) : 3000;
    void *frames[4];
    outermost = __builtin_return_address(0);
    backtrace(frames, 4);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaction(SIGPROF, &action, 0);
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
    struct itimerspec every = {{0, 200000}, {0, 200000}};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &every, 0))
        return 1;
    inside = 1;
    while (samples < wanted)
        deep(DEPTH);
    inside = 0;
    /* At exit a static program forgets where its frames are: no backtraces then. */
    struct itimerspec never = {{0, 0}, {0, 0}};
    timer_settime(timer, 0, &never, 0);
    signal(SIGPROF, SIG_IGN);
    printf("%d shorter\n", shorter);
    if (argc > 2)
        fprintf(stderr, "%d of %d\n", shorter, samples);
    return 0;
}
