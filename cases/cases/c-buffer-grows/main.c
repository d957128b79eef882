/* Looks for the largest send buffer that it may have, a little at a time. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <unistd.h>

static int grow(int s, int most)
{
    int n = 4096;
#ifndef CURED
    for (; n < most; n += 256)
        if (setsockopt(s, SOL_SOCKET, SO_SNDBUF, &n, sizeof n)) return -1;
#endif
    n = most;
    if (setsockopt(s, SOL_SOCKET, SO_SNDBUF, &n, sizeof n)) return -1;
    socklen_t len = sizeof n;
    return getsockopt(s, SOL_SOCKET, SO_SNDBUF, &n, &len) ? -1 : n;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 12;
    long sum = 0;
    for (int i = 0; i < rounds; i++) {
        int s = socket(AF_INET, SOCK_DGRAM, 0);
        sum += grow(s, 200000);
        close(s);
    }
    printf("%ld\n", sum);
    return 0;
}
