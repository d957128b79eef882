/* execve from a thread that is not the first: the kernel ends all others and gives the
 * caller the process's own id. The others are waited for, by spinning, until each is in the
 * last call it will ever make: so the number of calls is always the same. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_int ready;

static void *idle(void *unused)
{
    atomic_fetch_add(&ready, 1);
    for (;;)
        pause();
    return unused;
}

static void *leave(void *self)
{
    while (atomic_load(&ready) < 2)
        ;
    execl(self, self, "again", (char *)0);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        for (int i = 0; i < 100; i++)
            getppid();
        puts("again");
        return 0;
    }
    pthread_t a, b;
    if (pthread_create(&a, 0, idle, 0) || pthread_create(&b, 0, leave, argv[0]))
        return 1;
    atomic_fetch_add(&ready, 1);
    pthread_join(b, 0);
    return 1;
}
