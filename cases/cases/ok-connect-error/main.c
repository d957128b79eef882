/* Connects without blocking, asks what became of it (SO_ERROR), says one word, and closes. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 1000, good = 0;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int l = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(l, (void *)&at, len) || listen(l, 16) || getsockname(l, (void *)&at, &len)) return 1;
    for (int i = 0; i < n; i++) {
        int c = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), error = 0;
        connect(c, (void *)&at, len);
        struct pollfd p = {c, POLLOUT, 0};
        poll(&p, 1, 1000);
        socklen_t size = sizeof error;
        if (getsockopt(c, SOL_SOCKET, SO_ERROR, &error, &size) || error) return 1;
        good += send(c, "hello", 5, 0) == 5;
        int s = accept(l, 0, 0);
        close(s);
        close(c);
    }
    printf("%d\n", good);
    return 0;
}
