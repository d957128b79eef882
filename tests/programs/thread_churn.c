/* Two hundred threads come and go, five never rest, and one of them all becomes the program
 * anew; so many times over. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static char *self;
static int left;

static void *some_calls(void *number)
{
    for (long i = 0; i < 20 + (long)number % 50; i++)
        syscall(SYS_getppid);
    return 0;
}

static void *no_rest(void *unused)
{
    for (;;)
        syscall(SYS_getppid);
    return unused;
}

static void *again(void *unused)
{
    char next[20];
    usleep(1000 * (left % 7));
    snprintf(next, sizeof next, "%d", left - 1);
    execl(self, self, next, (char *)0);
    _exit(9);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    pthread_attr_t detached;
    self = argv[0];
    left = argc > 1 ? atoi(argv[1]) : 4;
    if (left == 0) {
        puts("done");
        return 7;
    }
    pthread_attr_init(&detached);
    pthread_attr_setstacksize(&detached, 65536);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    for (long i = 0; i < 200; i++)
        pthread_create(&thread, &detached, i % 40 ? some_calls : no_rest, (void *)i);
    pthread_create(&thread, 0, again, 0);
    pthread_exit(0);
}
