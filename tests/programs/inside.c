/* Known numbers of calls in ways that are hard to count from inside: by threads that come and go, in signal handlers that
 * interrupt calls of their own kind, through a library that is loaded late, in children that fork, vfork and execute. Prints
 * what it made: getppid, access, read. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static long each;
static volatile sig_atomic_t handled;
static int zero;

static void handler(int signal)
{
    (void)signal;
    handled++;
    getppid();
}

__attribute__((noinline)) static void parents(long n)
{
    for (long i = 0; i < n; i++)
        getppid();
}

__attribute__((noinline)) static void reads(long n)
{
    char byte;
    for (long i = 0; i < n; i++)
        if (read(zero, &byte, 1) != 1)
            abort();
}

static void *work(void *unused)
{
    parents(each);
    reads(each);
    return unused;
}

static int ended(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) != pid)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int argc, char **argv)
{
    long made = 0, failed = 0, read_all = 0;
    each = argc > 1 ? atol(argv[1]) : 1000;
    zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);

    for (int round = 0; round < 3; round++) {
        pthread_t all[4];
        for (int i = 0; i < 4; i++)
            if (pthread_create(&all[i], 0, work, 0))
                return 1;
        for (int i = 0; i < 4; i++)
            pthread_join(all[i], 0);
        made += 4 * each;
        read_all += 4 * each;
    }

    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, 0);
    struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, 0);
    do
        parents(each), reads(each), made += each, read_all += each;
    while (handled < 20);
    setitimer(ITIMER_REAL, &never, 0);
    made += handled;

    for (int i = 0; i < 20; i++) {
        pid_t pid = i % 2 ? fork() : vfork();
        if (pid < 0)
            return 1;
        if (pid == 0) {
            if (i % 2 == 0)
                execv("/nonexistent", argv);
            else
                parents(50);
            _exit(7);
        }
        if (ended(pid) != 7)
            return 1;
        made += i % 2 ? 50 : 0;
    }
    char *args[] = {"true", 0};
    for (int i = 0; i < 5; i++) {
        pid_t pid;
        if (posix_spawn(&pid, "/bin/true", 0, 0, args, environ) || ended(pid))
            return 1;
    }

    void *late = dlopen("libresolv.so.2", RTLD_NOW);
    for (long i = 0; i < each; i++)
        failed += access("/nonexistent", F_OK) < 0;
    if (late)
        dlclose(late);
    parents(each);
    made += each;

    printf("getppid %ld access %ld read %ld\n", made, failed, read_all);
    return 0;
}
