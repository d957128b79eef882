/* Calls that signals interrupt: restarted by the kernel, restarted through restart_syscall,
 * and ended with EINTR; a handler that calls; a child that stops and goes on. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t handled;
static int fds[2];

static void handler(int signal)
{
    handled++;
    if (signal == SIGUSR2 && write(fds[1], "x", 1) != 1)
        _exit(9);
}

static void handle(int signal, int flags)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = flags;
    sigaction(signal, &action, 0);
}

static void send_later(int signal)
{
    pid_t parent = getpid();
    if (fork() == 0) {
        usleep(30000);
        kill(parent, signal);
        _exit(0);
    }
}

int main(void)
{
    char byte;
    if (pipe(fds))
        return 1;
    handle(SIGUSR1, 0);
    handle(SIGUSR2, SA_RESTART);

    send_later(SIGUSR1);
    int interrupted = read(fds[0], &byte, 1) < 0 && errno == EINTR;
    while (wait(0) < 0 && errno == EINTR)
        ;

    send_later(SIGUSR2);
    int restarted = read(fds[0], &byte, 1) == 1;
    while (wait(0) < 0 && errno == EINTR)
        ;

    struct timespec little = {0, 600000000}, long_time = {5, 0}, left;
    send_later(SIGUSR1);
    int slept = nanosleep(&long_time, &left) < 0 && errno == EINTR;
    while (wait(0) < 0 && errno == EINTR)
        ;

    pid_t child = fork();
    if (child == 0) {
        nanosleep(&little, 0);
        _exit(4);
    }
    usleep(20000);
    kill(child, SIGSTOP);
    int status, stopped = waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status);
    kill(child, SIGCONT);
    int ended = waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 4;

    printf("%d handled; %d %d %d %d %d\n", (int)handled, interrupted, restarted, slept, stopped, ended);
    return 0;
}
