/* N threads make M getppid each: the total is known without counting. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static long calls;

static void *work(void *unused)
{
    for (long i = 0; i < calls; i++)
        syscall(SYS_getppid);
    return unused;
}

int main(int argc, char **argv)
{
    long threads = argc > 1 ? atol(argv[1]) : 4;
    calls = argc > 2 ? atol(argv[2]) : 1000;
    pthread_t ids[64];
    if (threads < 1 || threads > 64)
        return 2;
    for (long i = 0; i < threads; i++)
        if (pthread_create(&ids[i], 0, work, 0))
            return 1;
    for (long i = 0; i < threads; i++)
        pthread_join(ids[i], 0);
    return 0;
}
