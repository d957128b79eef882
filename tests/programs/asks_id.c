/* Asks who it is, N times by name and N times by number. Usage: asks_id N. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 1, sum = 0;
    for (long i = 0; i < n; i++) sum += getpid() == syscall(SYS_getpid);
    printf("%ld\n", sum);
}
