/* A program with a gs base of its own, set by arch_prctl or (WRITES) by the instruction: what it sets
 * is what it finds. With an argument it sleeps first. */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static unsigned long area[512];

int main(int argc, char **argv)
{
    int right = 1;
    if (argc > 1)
        sleep(30);
    for (int i = 0; i < 512; i++)
        area[i] = 0x1111111111111111ul * (i % 16);
#ifdef WRITES
    __asm__ volatile("wrgsbase %0" : : "r"(area));
#else
    volatile int set = ARCH_SET_GS;
    if (syscall(SYS_arch_prctl, set, area))
        return 2;
#endif
    for (int round = 0; round < 1000; round++) {
        unsigned long base = 0, word;
        getppid();
        syscall(SYS_arch_prctl, ARCH_GET_GS, &base);
#ifdef WRITES
        __asm__ volatile("mov %%gs:40, %0" : "=r"(word));
#else
        word = area[5];
#endif
        right &= base == (unsigned long)area && word == 0x5555555555555555ul;
    }
    for (int i = 0; i < 512; i++)
        right &= area[i] == 0x1111111111111111ul * (i % 16);
    puts(right ? "as set" : "not as set");
    return !right;
}
