/* parents THREADS CALLS: each thread makes as many getppid. With a third argument, the calls begin when a line is read
   from standard input; the program says `done` after them and ends with standard input. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
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
    int threads = atoi(argv[1]);
    pthread_t all[64];
    char line[64];
    calls = atol(argv[2]);
    if (argc > 3) {
        puts("ready");
        fflush(stdout);
        if (!fgets(line, sizeof line, stdin))
            return 1;
    }
    for (int i = 0; i < threads && i < 64; i++)
        if (pthread_create(&all[i], NULL, work, NULL))
            return 2;
    for (int i = 0; i < threads && i < 64; i++)
        pthread_join(all[i], NULL);
    if (argc > 3) {
        puts("done");
        fflush(stdout);
        while (fgets(line, sizeof line, stdin))
            ;
    }
    return 0;
}
