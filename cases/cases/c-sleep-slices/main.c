/* Waits until a number of looks found nothing. The sick twin sleeps a slice before each; the cured one sleeps
 * once. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
static void sleep_ns(long ns)
{
    struct timespec t = { ns / 1000000000, ns % 1000000000 };
    nanosleep(&t, 0);
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 2000;
    long looks = 0;
    // Slices are as short as asked for.
    prctl(PR_SET_TIMERSLACK, 1);
#ifdef CURED
    sleep_ns(1000L * n);
    looks = n;
#else
    while (looks < n) {
        sleep_ns(1000);
        looks++;
    }
#endif
    printf("%ld\n", looks);
    return 0;
}
