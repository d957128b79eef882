/* Blocks nothing, N times through the C library and N times by number: only the first are answered in
 * place. Usage: half_elided N. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 1000;
    sigset_t none;
    sigemptyset(&none);
    for (long i = 0; i < n; i++) sigprocmask(SIG_BLOCK, &none, 0);
    for (long i = 0; i < n; i++) syscall(SYS_rt_sigprocmask, SIG_BLOCK, &none, 0, 8);
    return 0;
}
