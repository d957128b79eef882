/* execve from a thread that is not the first: the kernel ends all others and gives the
 * caller the process's own id. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *idle(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static void *leave(void *self)
{
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
    pthread_join(b, 0);
    return 1;
}
