/* N times: asks for the status of one file itself, and has localtime ask for another's. */
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 5000, sum = 0;
    struct stat status;
    for (long i = 0; i < rounds; i++) {
        stat("/etc/passwd", &status);
        time_t t = 1700000000 + i;
        sum += localtime(&t)->tm_min;
    }
    return sum < 0;
}
