/* Four workers do a part each of every step; whoever gives the start wakes them all, and each has
 * something to do. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
enum { WORKERS = 4, WORK = 100000 };
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t go = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static int step, left, over;
static unsigned parts[WORKERS][16];
static void *run(void *arg)
{
    long me = (long)arg;
    int seen = 0;
    pthread_mutex_lock(&m);
    for (;;) {
        while (step == seen && !over) pthread_cond_wait(&go, &m);
        if (over) break;
        seen = step;
        pthread_mutex_unlock(&m);
        unsigned x = parts[me][0] + me;
        for (int i = 0; i < WORK; i++) x = x * 1664525 + 1013904223;
        parts[me][0] = x;
        pthread_mutex_lock(&m);
        if (!--left) pthread_cond_signal(&done);
    }
    pthread_mutex_unlock(&m);
    return 0;
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 1000;
    pthread_t t[WORKERS];
    for (long i = 0; i < WORKERS; i++) pthread_create(t + i, 0, run, (void *)i);
    pthread_mutex_lock(&m);
    for (int i = 0; i < n; i++) {
        left = WORKERS;
        step++;
        pthread_cond_broadcast(&go);
        while (left) pthread_cond_wait(&done, &m);
    }
    over = 1;
    pthread_cond_broadcast(&go);
    pthread_mutex_unlock(&m);
    unsigned sum = 0;
    for (int i = 0; i < WORKERS; i++) pthread_join(t[i], 0), sum += parts[i][0];
    printf("%u\n", sum);
    return 0;
}
