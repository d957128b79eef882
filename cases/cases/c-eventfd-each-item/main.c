/* A queue whose reader is woken for each item, and takes all there are at each wake. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#define BURST 40
static long queued;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int awake;
static int bell, back;
static long rounds, taken;
static void *reader(void *unused)
{
    while (taken < rounds * BURST) {
        uint64_t n;
        if (read(bell, &n, 8) != 8) break;
        atomic_store(&awake, 0);
        pthread_mutex_lock(&lock);
        long got = queued;
        queued = 0;
        pthread_mutex_unlock(&lock);
        taken += got;
        if (taken % BURST == 0 && got) {
            n = 1;
            if (write(back, &n, 8) != 8) break;
        }
    }
    return unused;
}
int main(int argc, char **argv)
{
    rounds = argc > 1 ? atol(argv[1]) : 300;
    bell = eventfd(0, 0);
    int ends[2];
    if (pipe(ends)) return 1;
    back = ends[1];
    pthread_t t;
    pthread_create(&t, 0, reader, 0);
    for (long r = 0; r < rounds; r++) {
        pthread_mutex_lock(&lock);
        for (int i = 0; i < BURST; i++) {
            uint64_t one = 1;
            queued++;
#ifdef CURED
            if (atomic_exchange(&awake, 1)) continue;
#endif
            if (write(bell, &one, 8) != 8) return 1;
        }
        pthread_mutex_unlock(&lock);
        char done[8];
        if (read(ends[0], done, 8) != 8) return 1;
    }
    pthread_join(t, 0);
    printf("%ld\n", taken);
    return 0;
}
