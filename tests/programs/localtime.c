/* localtime N times, and nothing else. */
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
    long calls = argc > 1 ? atol(argv[1]) : 100000, sum = 0;
    for (long i = 0; i < calls; i++) {
        time_t t = 1700000000 + i;
        sum += localtime(&t)->tm_min;
    }
    return sum < 0;
}
