/* Timer signals at 5 kHz over calls that restart: none is lost, none is made twice. Prints how many
 * calls it made, for whoever counted them. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int ticks;
static volatile long handler_calls;

static void tick(int signal)
{
    ticks++;
    if (getppid() > 0)
        handler_calls++;
}

int main(int argc, char **argv)
{
    int bytes = argc > 1 ? atoi(argv[1]) : 3000, fds[2];
    if (pipe(fds))
        return 1;
    pid_t child = fork();
    if (child == 0) {
        struct timespec little = {0, 100000};
        for (int i = 0; i < bytes; i++) {
            nanosleep(&little, 0);
            if (write(fds[1], "x", 1) != 1)
                _exit(1);
        }
        _exit(0);
    }
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = tick;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, 0);
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    struct itimerspec every = {{0, 200000}, {0, 200000}}, never = {{0, 0}, {0, 0}};
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &every, 0);
    long reads = 0, interrupted = 0, others = 0;
    char byte;
    while (reads < bytes) {
        ssize_t n = read(fds[0], &byte, 1);
        reads += n == 1;
        interrupted += n < 0;
        for (int i = 0; i < 50; i++)
            others += getpgrp() > 0;
    }
    timer_settime(timer, 0, &never, 0);
    signal(SIGALRM, SIG_IGN);
    int status;
    while (waitpid(child, &status, 0) < 0)
        ;
    printf("%ld read, %ld interrupted, %ld others, status %d\n", reads, interrupted, others, status);
    fprintf(stderr, "read %ld getpgrp %ld getppid %ld ticks %d\n", reads, others, handler_calls, ticks);
    return 0;
}
