/* Handlers on a stack of their own, handlers that jump away, signals in new threads and children:
 * what they find and where they come back to. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char stack[65536];
static volatile long on_stack, off_stack, jumps, calls, in_children;
static sigjmp_buf back;
static volatile int armed;

static void on_own_stack(int signal)
{
    char here;
    if ((uintptr_t)&here - (uintptr_t)stack < sizeof stack)
        on_stack++;
    else
        off_stack++;
    getppid();
}

static void jump(int signal)
{
    getpgrp();
    if (armed) {
        armed = 0;
        siglongjmp(back, 1);
    }
}

static void every(int signal, void (*handler)(int), int flags, int us)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = flags;
    sigaction(signal, &action, 0);
    struct itimerval timer = {{0, us}, {0, us}};
    setitimer(ITIMER_REAL, &timer, 0);
}

static void *thread(void *unused)
{
    for (int i = 0; i < 20; i++)
        getppid();
    return 0;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 300, wrong = 0;
    stack_t own = {.ss_sp = stack, .ss_size = sizeof stack}, now;
    sigaltstack(&own, 0);
    every(SIGALRM, on_own_stack, SA_ONSTACK | SA_RESTART, 150);
    while (on_stack < rounds)
        wrong += getpgrp() <= 0;
    sigaltstack(0, &now);
    wrong += now.ss_sp != stack || now.ss_flags != 0;

    /* Out of whatever it interrupts: calls, and waits in the middle of them. */
    every(SIGALRM, jump, SA_NODEFER, 150);
    while (jumps < rounds) {
        if (sigsetjmp(back, 1) == 0) {
            armed = 1;
            for (;;) {
                struct timespec little = {0, 50000};
                nanosleep(&little, 0);
                wrong += getppid() <= 0;
                calls++;
            }
        }
        jumps++;
    }

    /* While threads and children are born, over and over. */
    armed = 0;
    every(SIGALRM, jump, SA_RESTART, 150);
    for (int i = 0; i < rounds / 3; i++) {
        pthread_t t;
        pthread_create(&t, 0, thread, 0);
        pthread_join(t, 0);
        pid_t child = fork();
        if (child == 0) {
            struct itimerval timer = {{0, 50}, {0, 50}};
            setitimer(ITIMER_REAL, &timer, 0);
            for (int n = 0; n < 20; n++)
                getppid();
            _exit(7);
        }
        int status = 0;
        while (waitpid(child, &status, 0) < 0)
            ;
        wrong += !WIFEXITED(status) || WEXITSTATUS(status) != 7;
        child = vfork();
        if (child == 0)
            _exit(9);
        while (waitpid(child, &status, 0) < 0)
            ;
        wrong += !WIFEXITED(status) || WEXITSTATUS(status) != 9;
    }
    printf("%d wrong, %d on, %d jumps\n", wrong, off_stack == 0, jumps >= rounds);
    return 0;
}
