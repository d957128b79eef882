/* A program whose calls before main and in it differ. It runs until it is told to end. */
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((constructor)) static void before(void)
{
    for (int i = 0; i < 50; i++)
        syscall(SYS_getppid);
}

int main(void)
{
    for (;;) {
        syscall(SYS_getpgrp);
        usleep(1000);
    }
}
