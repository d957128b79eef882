/* Two functions that sleep by one call each: two_sleeps TIMES. Appends to TIMES how
 * long each of the two slept, in ms. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

__attribute__((noinline)) static void often(int us)
{
    usleep(us);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void rarely(int us)
{
    struct timespec t = { 0, us * 1000 };
    nanosleep(&t, 0);
    __asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
    double one = 0, other = 0;
    for (int i = 0; i < 20; i++) {
        double begin = now();
        often(4000);
        one += now() - begin;
        begin = now();
        rarely(2000);
        other += now() - begin;
    }
    FILE *times = fopen(argv[1], "a");
    fprintf(times, "%f %f\n", one, other);
    fclose(times);
    printf("%d sleeps\n", 20 * argc);
    return 0;
}
