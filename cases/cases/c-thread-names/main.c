/* A worker that shows its current job in its thread's name. CURED shows one job in five hundred. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 8000;
    unsigned long sum = 0;
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "job %d", i);
#ifdef CURED
        if (i % 500 == 0)
#endif
        pthread_setname_np(pthread_self(), name);
        for (int k = 0; k < 100; k++) sum = sum * 31 + i + k;
    }
    printf("%lu\n", sum);
    return 0;
}
