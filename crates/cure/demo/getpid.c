/* A log line carries its process id, asked for anew each time; CURED keeps the first
 * answer. glibc has not cached it since 2.25. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned long __attribute__((noinline)) format_record(long i)
{
#ifdef CURED
    static pid_t own;
    if (!own)
        own = getpid();
#else
    pid_t own = getpid();
#endif
    return own > 0 ? (unsigned long)i & 0xff : 0;
}

int main(int argc, char **argv)
{
    long records = argc > 1 ? atol(argv[1]) : 20000;
    unsigned long sum = 0;
    for (long i = 0; i < records; i++)
        sum += format_record(i);
    printf("%ld records, %lu\n", records, sum);
    return 0;
}
