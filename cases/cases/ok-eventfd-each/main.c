/* Two threads wake each other in turn: each wake is seen to before the next. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
static int there, back;
static long rounds;
static void pass(int from, int to, long *sum)
{
    uint64_t n;
    for (long i = 0; i < rounds; i++) {
        if (read(from, &n, 8) != 8) exit(1);
        *sum += n;
        n = 1;
        if (write(to, &n, 8) != 8) exit(1);
    }
}
static void *other(void *sum)
{
    pass(there, back, sum);
    return sum;
}
int main(int argc, char **argv)
{
    rounds = argc > 1 ? atol(argv[1]) : 2000;
    there = eventfd(0, 0);
    back = eventfd(1, 0);
    pthread_t t;
    long a = 0, b = 0;
    pthread_create(&t, 0, other, &a);
    pass(back, there, &b);
    pthread_join(t, 0);
    printf("%ld %ld\n", a, b);
    return 0;
}
