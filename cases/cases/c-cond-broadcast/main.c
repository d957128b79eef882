/* Eight workers wait for items; each item wakes them all, and one gets it.
 * CURED wakes one. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
enum { WORKERS = 8 };
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER, none = PTHREAD_COND_INITIALIZER;
static int items, over, idle;
static long done;
static void *run(void *arg)
{
    pthread_mutex_lock(&m);
    for (;;) {
        idle++;
        if (idle == WORKERS) pthread_cond_signal(&none);
        while (!items && !over) pthread_cond_wait(&more, &m);
        idle--;
        if (!items) break;
        items--;
        done++;
    }
    pthread_mutex_unlock(&m);
    return arg;
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 3000;
    pthread_t t[WORKERS];
    for (int i = 0; i < WORKERS; i++) pthread_create(t + i, 0, run, 0);
    pthread_mutex_lock(&m);
    for (int i = 0; i < n; i++) {
        while (idle < WORKERS || items) pthread_cond_wait(&none, &m);
        items = 1;
#ifdef CURED
        pthread_cond_signal(&more);
#else
        pthread_cond_broadcast(&more);
#endif
        pthread_cond_wait(&none, &m);
    }
    over = 1;
    pthread_cond_broadcast(&more);
    pthread_mutex_unlock(&m);
    for (int i = 0; i < WORKERS; i++) pthread_join(t[i], 0);
    printf("%ld\n", done);
    return 0;
}
