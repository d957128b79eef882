/* Threads make calls and keep count in a file others can read: after each call, so that it holds
 * what was completed. Killed at any moment, what was counted must be between that and one more for
 * each thread. counts_until_killed FILE THREADS END CALLS: END is loop, exit or crash, after CALLS by each. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile long *counts;
static long limit;

static void *work(void *number)
{
    for (long i = 0; limit == 0 || i < limit; i++) {
        syscall(i % 2 ? SYS_getppid : SYS_getuid);
        counts[8 * (long)number]++;
    }
    return 0;
}

int main(int argc, char **argv)
{
    pthread_t ids[8];
    long threads = argc > 4 ? atol(argv[2]) : 0;
    int fd = argc > 4 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
    if (threads < 1 || threads > 8 || fd < 0 || ftruncate(fd, 4096))
        return 2;
    counts = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    limit = strcmp(argv[3], "loop") ? atol(argv[4]) : 0;
    for (long i = 1; i < threads; i++)
        if (pthread_create(&ids[i], 0, work, (void *)i))
            return 3;
    work(0);
    for (long i = 1; i < threads; i++)
        pthread_join(ids[i], 0);
    if (!strcmp(argv[3], "crash"))
        *(volatile int *)8 = 1;
    _exit(5);
}
