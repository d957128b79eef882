/* A signal that comes too early for the sleep it is to end: after the program has decided to sleep,
 * before the kernel has it. argv[1]: which sleep; argv[2]: a file of a byte, by which it is told to
 * go to sleep (1), tells that it does (2), and that its handler has run (3), without a call. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

static volatile int handled;
static volatile char *byte;

static void handler(int signal)
{
    handled = 1;
    *byte = 3;
}

__attribute__((noinline)) static int sleep_by(char how)
{
    struct timespec ten = {10, 0};
    struct timeval same = {10, 0};
    switch (how) {
    case 'p': return poll(0, 0, 10000);
    case 's': return select(0, 0, 0, 0, &same);
    case 'w': return pause();
    default: return nanosleep(&ten, &ten);
    }
}

int main(int argc, char **argv)
{
    struct sigaction action;
    int fd = open(argv[2], O_RDWR);
    byte = mmap(0, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, 0);
    printf("ready %d\n", getpid());
    fflush(stdout);
    while (*byte != 1)
        ;
    char how = argv[1][0];
    *byte = 2;
    int result = sleep_by(how), error = errno;
    printf("%d %s, %d\n", result, strerror(error), handled);
    return 0;
}
