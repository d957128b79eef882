/* Sets a signal mask that is so already, N times: no cause names it. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    long calls = argc > 1 ? atol(argv[1]) : 200000;
    sigset_t none;
    sigemptyset(&none);
    for (long i = 0; i < calls; i++)
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, 0, 8);
    return 0;
}
