/* Locks all its memory and goes on: HOW is "alone", "number" (the call by its number) or "threads",
 * some of which make calls all the time. Prints what came of it, and whether much was locked. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int over;

static void *busy(void *calls)
{
    while (!over || *(volatile long *)calls < 1000)
        *(volatile long *)calls += getppid() > 0 && close(-1) < 0;
    return 0;
}

static long locked_kb(void)
{
    char line[256];
    long kb = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        sscanf(line, "VmLck: %ld", &kb);
    return kb;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    pthread_t threads[4];
    static volatile long calls[4];
    int with = strcmp(how, "threads") ? 0 : 3, status = 0;
    for (int i = 0; i < with; i++)
        pthread_create(&threads[i], 0, busy, (void *)&calls[i]);
    while (with && calls[0] < 1000)
        ;
    int result = strcmp(how, "number") ? mlockall(MCL_CURRENT | MCL_FUTURE) : syscall(SYS_mlockall, MCL_CURRENT);
    /* A stack of 8 MB each, and twice as much. */
    printf("%d, %s\n", result, locked_kb() < 16384 + with * 81920 ? "no more than there is" : "too much");
    pthread_create(&threads[with], 0, busy, (void *)&calls[with]);
    if (fork() == 0)
        _exit(getppid() > 0 ? 7 : 8);
    wait(&status);
    over = 1;
    for (int i = 0; i <= with; i++)
        pthread_join(threads[i], 0);
    printf("%d\n", WEXITSTATUS(status));
    return 0;
}
