/* A client that sends a header and a body by two calls and waits for the answer: from the second request on, Nagle
 * holds the body back until the server's delayed acknowledgement. CURED joins them. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
static void all(int fd, char *b, size_t n)
{
    for (size_t got = 0; got < n;) {
        ssize_t k = read(fd, b + got, n - got);
        if (k <= 0) exit(got ? 1 : 0);
        got += k;
    }
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 26;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int l = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(l, (void *)&at, len) || listen(l, 1) || getsockname(l, (void *)&at, &len)) return 1;
    if (!fork()) {
        int s = accept(l, 0, 0);
        char b[104];
        for (;;) { all(s, b, 4); all(s, b, 100); if (write(s, "ok", 2) != 2) return 1; }
    }
    int c = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(c, (void *)&at, len)) return 1;
    char head[4] = "len", body[100] = "x", answer[2];
    int sum = 0;
    for (int i = 0; i < n; i++) {
#ifdef CURED
        struct iovec both[] = {{head, 4}, {body, 100}};
        if (writev(c, both, 2) != 104) return 1;
#else
        if (write(c, head, 4) != 4 || write(c, body, 100) != 100) return 1;
#endif
        all(c, answer, 2);
        sum += answer[0] == 'o';
    }
    close(c);
    wait(0);
    printf("%d\n", sum);
    return 0;
}
