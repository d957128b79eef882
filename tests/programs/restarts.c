/* Reads of a pipe that timer signals interrupt, all made again by the kernel: how often is left to
 * chance, but every one ends a handler. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t handled;

static void handler(int signal)
{
    handled++;
    syscall(SYS_getuid);
}

int main(void)
{
    int fds[2], got = 0;
    char byte;
    struct sigaction action;
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, 0);
    if (pipe(fds))
        return 1;
    if (fork() == 0) {
        for (int i = 0; i < 100; i++) {
            usleep(2000);
            if (write(fds[1], "x", 1) != 1)
                _exit(1);
        }
        _exit(0);
    }
    setitimer(ITIMER_REAL, &often, 0);
    for (int i = 0; i < 100; i++)
        got += read(fds[0], &byte, 1) == 1;
    for (int i = 0; i < 100000; i++)
        syscall(SYS_getppid);
    setitimer(ITIMER_REAL, &never, 0);
    fprintf(stderr, "%d\n", (int)handled);
    printf("%d\n", got);
    return 0;
}
