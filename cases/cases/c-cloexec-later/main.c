/* A socket for each datagram. The sick twin sets close-on-exec afterwards; the cured one makes it so. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
static int a_socket(void)
{
#ifdef CURED
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
#else
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
#endif
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 10000;
    long made = 0;
    for (int i = 0; i < n; i++) {
        int fd = a_socket();
        made += fd >= 0;
        close(fd);
    }
    printf("%ld\n", made);
    return 0;
}
