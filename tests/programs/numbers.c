/* numbers N: N calls from one() and 2 N from two(), 3 N of another number from two(), all by
   syscall(2). */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile long sink;

__attribute__((noinline)) static void one(long n)
{
    for (long i = 0; i < n; i++)
        sink += syscall(SYS_getppid);
}

__attribute__((noinline)) static void two(long n)
{
    for (long i = 0; i < 2 * n; i++)
        sink -= syscall(SYS_getppid);
    for (long i = 0; i < 3 * n; i++)
        sink -= syscall(SYS_getpgid, 0);
}

int main(int argc, char **argv)
{
    long n = argc > 1 ? atol(argv[1]) : 10;
    one(n);
    two(n);
    return 0;
}
