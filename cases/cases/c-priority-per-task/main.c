/* Tasks in the background. The sick twin sets the thread's priority before each; the cured one once. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 20000;
    long sum = 0;
    if (setpriority(PRIO_PROCESS, 0, 5)) return 1;
    for (int i = 0; i < n; i++) {
#ifndef CURED
        setpriority(PRIO_PROCESS, 0, 5);
#endif
        sum += i & 1;
    }
    printf("%ld\n", sum);
    return 0;
}
