/* Waits for input that comes late. The sick twin wakes up every two milliseconds to look whether it is to end. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int is_to_end;
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 150;
    int pair[2];
    if (pipe(pair) != 0)
        return 1;
    struct pollfd input = { pair[0], POLLIN, 0 };
    long waited = 0;
#ifdef CURED
    poll(&input, 1, 2 * n);
    waited = n;
#else
    while (!is_to_end && poll(&input, 1, 2) == 0)
        is_to_end = ++waited == n;
#endif
    printf("%ld\n", waited);
    return 0;
}
