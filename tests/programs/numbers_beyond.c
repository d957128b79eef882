/* Calls by numbers of the x32 ABI, which few kernels have, and by numbers nobody has: all fail, and
 * it prints how many did. By libc's syscall(), and from a place of its own. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define X32 0x40000000

__attribute__((noinline, aligned(64))) static long here(void)
{
    long r;
    __asm__ volatile("mov $0x4000006e, %%eax\n\tsyscall\n\tmov %%rax, %0\n\tnop\n\tnop\n\tnop" : "=r"(r) : : "rax", "rcx", "r11", "memory");
    return r;
}

int main(void)
{
    static const long by_number[] = {X32 | 39, X32 | 110, X32 | 512, X32 | 600, 100000, -5, 511};
    int failed = 0;
    for (int i = 0; i < 100; i++) {
        failed += here() == -ENOSYS;
        for (unsigned n = 0; n < sizeof by_number / sizeof *by_number; n++)
            failed += syscall(by_number[n]) == -1 && errno == ENOSYS;
        syscall(110);
    }
    printf("%d\n", failed);
    return 0;
}
