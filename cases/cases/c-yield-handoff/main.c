/* Two threads hand a number back and forth and wait for it with sched_yield, each on a
 * processor of its own: where they share one, a yield hands it over and is of use.
 * CURED waits on a condition variable. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
static atomic_int turn;
static int n;
#ifdef CURED
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
#endif
static unsigned work(unsigned x) { for (int i = 0; i < 20000; i++) x = x * 1664525 + 1013904223; return x; }
static void stay_on(int nth)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all)) return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && nth-- == 0) CPU_SET(cpu, &one);
    if (CPU_COUNT(&one)) sched_setaffinity(0, sizeof one, &one);
}
static void *run(void *arg)
{
    int me = arg != 0;
    unsigned x = 1;
    stay_on(me);
    for (int i = 0; i < n; i++) {
#ifdef CURED
        pthread_mutex_lock(&m);
        while (turn != me) pthread_cond_wait(&c, &m);
        x = work(x);
        turn = !me;
        pthread_cond_signal(&c);
        pthread_mutex_unlock(&m);
#else
        while (turn != me) sched_yield();
        x = work(x);
        turn = !me;
#endif
    }
    return (void *)(long)(x & 1);
}
int main(int argc, char **argv)
{
    n = argc > 1 ? atoi(argv[1]) : 2000;
    pthread_t a, b;
    pthread_create(&a, 0, run, 0);
    pthread_create(&b, 0, run, &n);
    pthread_join(a, 0);
    pthread_join(b, 0);
    printf("%d\n", n);
    return 0;
}
