/* A library with code in two pieces, each mapped by itself; with MAIN, the program that loads it. */
#include <dlfcn.h>
#include <stdio.h>

#define CALL(number) \
    long r; \
    __asm__ volatile("mov $" #number ", %%eax\n\tsyscall\n\tmov %%rax, %0\n\tnop\n\tnop" : "=r"(r) : : "rax", "rcx", "r11", "memory"); \
    return r

#ifdef MAIN
int main(int argc, char **argv)
{
    void *library = dlopen(argv[1], RTLD_NOW);
    long (*near)(void) = (long (*)(void))dlsym(library, "near_call");
    long (*far)(void) = (long (*)(void))dlsym(library, "far_call");
    if (!near || !far)
        return 2;
    for (int i = 0; i < 70; i++)
        if (near() <= 0)
            return 3;
    for (int i = 0; i < 30; i++)
        if (far() < 0)
            return 4;
    puts("done");
    return 0;
}
#else
__attribute__((noinline, aligned(64))) long near_call(void)
{
    CALL(110); /* getppid */
}

__attribute__((noinline, aligned(64), section(".far"))) long far_call(void)
{
    CALL(102); /* getuid */
}
#endif
