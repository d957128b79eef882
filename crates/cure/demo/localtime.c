/* A server's log: every record is stamped with local time. With TZ unset, glibc's
 * localtime asks each time whether /etc/localtime has changed. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static unsigned long stamp_record(time_t when)
{
    struct tm *local = localtime(&when);
    return (unsigned long)local->tm_hour * 60 + (unsigned long)local->tm_min;
}

int main(int argc, char **argv)
{
    long records = argc > 1 ? atol(argv[1]) : 20000;
    unsigned long sum = 0;
    for (long i = 0; i < records; i++)
        sum += stamp_record(1700000000 + i);
    printf("%ld records, %lu\n", records, sum);
    return 0;
}
