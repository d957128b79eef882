/* N times each function the vDSO answers: time, clock_gettime, gettimeofday, getcpu (which musl calls
 * sched_getcpu, and glibc's function of that name asks nobody); and one call
 * it has to make after all, of a clock it does not know. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

int main(int argc, char **argv)
{
    long calls = argc > 1 ? atol(argv[1]) : 1000, sum = 0;
    unsigned cpu, node;
    struct timespec ts;
    struct timeval tv;
    for (long i = 0; i < calls; i++) {
        sum += time(0) > 0;
        sum += clock_gettime(CLOCK_MONOTONIC, &ts) == 0;
        sum += gettimeofday(&tv, 0) == 0;
#ifdef __GLIBC__
        sum += getcpu(&cpu, &node) == 0;
#else
        sum += sched_getcpu() >= 0;
#endif
    }
    sum += clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts) == 0;
    return sum != 4 * calls + 1;
}
