/* Sleeps, and works, in every kind of thread there is: most of the time of its nanosleep and futex calls is
   waiting, and of its getppid calls nothing. Threads, forks, forks of threads, threads of forks, vfork,
   threads cancelled while they sleep, and signals that cut sleep short. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void nap(long ms)
{
    struct timespec t = {0, ms * 1000000};
    while (nanosleep(&t, &t) && errno == EINTR) {
    }
}

static void work(void)
{
    for (int i = 0; i < 200; i++)
        syscall(SYS_getppid);
}

static void *both(void *unused)
{
    for (int i = 0; i < 5; i++)
        nap(2), work();
    return unused;
}

static void threads(int n)
{
    pthread_t t[16];
    for (int i = 0; i < n; i++)
        if (pthread_create(&t[i], 0, both, 0))
            exit(2);
    for (int i = 0; i < n; i++)
        pthread_join(t[i], 0);
}

static void forks(void)
{
    for (int i = 0; i < 4; i++) {
        pid_t child = fork();
        if (child == 0) {
            both(0);
            threads(3);
            pid_t grandchild = fork();
            if (grandchild == 0) {
                both(0);
                _exit(3);
            }
            int status;
            waitpid(grandchild, &status, 0);
            _exit(WEXITSTATUS(status) + 1);
        }
        /* Beside the child, which has the maker's memory still. */
        work();
        int status;
        waitpid(child, &status, 0);
        if (WEXITSTATUS(status) != 4)
            exit(4);
    }
}

static void *forking(void *unused)
{
    forks();
    return unused;
}

static void *sleeps_long(void *unused)
{
    nap(900);
    return unused;
}

static volatile sig_atomic_t ticks;

static void tick(int unused)
{
    ticks++;
    syscall(SYS_getppid);
}

int main(void)
{
    both(0);
    threads(4);
    forks();
    pthread_t t[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], 0, forking, 0);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], 0);
    for (int i = 0; i < 5; i++) {
        pid_t child = vfork();
        if (child == 0) {
            execl("/bin/true", "true", (char *)0);
            _exit(1);
        }
        int status;
        waitpid(child, &status, 0);
    }
    pthread_t sleeper;
    pthread_create(&sleeper, 0, sleeps_long, 0);
    nap(5);
    pthread_cancel(sleeper);
    void *result;
    pthread_join(sleeper, &result);
    struct sigaction act = {.sa_handler = tick};
    sigaction(SIGALRM, &act, 0);
    struct itimerval every = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &every, 0);
    for (int i = 0; i < 20; i++)
        nap(3), work();
    setitimer(ITIMER_REAL, &never, 0);
    printf("%d %d\n", result == PTHREAD_CANCELED, ticks > 10);
    return 0;
}
