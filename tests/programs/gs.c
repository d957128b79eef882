/* A program with a gs base of its own: what it sets is what it finds. argv[1]: 'call' by arch_prctl,
 * 'write' by the instruction. */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static unsigned long area[512];

int main(int argc, char **argv)
{
    int right = 1;
    for (int i = 0; i < 512; i++)
        area[i] = 0x1111111111111111ul * (i % 16);
    if (argc > 1 && !strcmp(argv[1], "write"))
        __asm__ volatile("wrgsbase %0" : : "r"(area));
    else if (syscall(SYS_arch_prctl, ARCH_SET_GS, area))
        return 2;
    for (int round = 0; round < 1000; round++) {
        unsigned long base = 0, word;
        getppid();
        syscall(SYS_arch_prctl, ARCH_GET_GS, &base);
        __asm__ volatile("mov %%gs:40, %0" : "=r"(word));
        right &= base == (unsigned long)area && word == 0x5555555555555555ul;
    }
    for (int i = 0; i < 512; i++)
        right &= area[i] == 0x1111111111111111ul * (i % 16);
    puts(right ? "as set" : "not as set");
    return !right;
}
