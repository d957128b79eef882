/* A thread for each of many tiny jobs. CURED does them where they are. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void *job(void *arg) { return (void *)((long)arg * 7 % 11); }
int main(int argc, char **argv)
{
    long n = argc > 1 ? atoi(argv[1]) : 1500, sum = 0;
    for (long i = 0; i < n; i++) {
        void *got;
#ifdef CURED
        got = job((void *)i);
#else
        pthread_t t;
        if (pthread_create(&t, 0, job, (void *)i)) return 1;
        pthread_join(t, &got);
#endif
        sum += (long)got;
    }
    printf("%ld\n", sum);
    return 0;
}
