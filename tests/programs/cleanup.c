/* The same without C++: cleanup handlers of cancelled threads (musl cancels by the address it finds
 * a thread at). */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int fds[2], cleaned;

static void clean(void *unused)
{
    __atomic_fetch_add(&cleaned, 1, __ATOMIC_SEQ_CST);
}

static void *thread(void *how)
{
    char byte;
    struct pollfd p = {fds[0], POLLIN, 0};
    struct timespec long_time = {100, 0};
    pthread_cleanup_push(clean, 0);
    switch ((int)(long)how) {
    case 0: (void)!read(fds[0], &byte, 1); break;
    case 1: poll(&p, 1, -1); break;
    case 2: nanosleep(&long_time, 0); break;
    default: for (;;) usleep(10);
    }
    pthread_cleanup_pop(1);
    return 0;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 30, cancelled = 0;
    if (pipe(fds))
        return 1;
    for (int round = 0; round < rounds; round++)
        for (long how = 0; how < 4; how++) {
            pthread_t t;
            void *result;
            pthread_create(&t, 0, thread, (void *)how);
            usleep(200 + round % 3 * 300);
            pthread_cancel(t);
            pthread_join(t, &result);
            cancelled += result == PTHREAD_CANCELED;
        }
    printf("%d cancelled, %d cleaned\n", cancelled, cleaned);
    return 0;
}
