/* A client that sends a header and a body by two calls, at once (TCP_NODELAY), to a server that takes 40 ms for each. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 12, one = 1, sum = 0;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int l = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(l, (void *)&at, len) || listen(l, 1) || getsockname(l, (void *)&at, &len)) return 1;
    if (!fork()) {
        int s = accept(l, 0, 0);
        char b[104];
        while (recv(s, b, 104, MSG_WAITALL) == 104) {
            usleep(40000);
            if (write(s, "ok", 2) != 2) return 1;
        }
        return 0;
    }
    int c = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(c, (void *)&at, len) || setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one)) return 1;
    char head[4] = "len", body[100] = "x", answer[2];
    for (int i = 0; i < n; i++) {
        if (write(c, head, 4) != 4 || write(c, body, 100) != 100) return 1;
        sum += read(c, answer, 2) == 2;
    }
    close(c);
    wait(0);
    printf("%d\n", sum);
    return 0;
}
