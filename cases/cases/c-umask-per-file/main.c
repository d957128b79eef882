/* Modes of files to be made. The sick twin sets the mask and sets it back to learn it; the cured one does so
 * once. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
static mode_t mask(void)
{
    mode_t now = umask(077);
    umask(now);
    return now;
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 20000;
    long sum = 0;
    mode_t now = mask();
    for (int i = 0; i < n; i++) {
#ifndef CURED
        now = mask();
#endif
        sum += (0666 & ~now) != 0;
    }
    printf("%ld\n", sum);
    return 0;
}
