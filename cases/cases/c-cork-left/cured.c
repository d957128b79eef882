#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define REQUESTS 8
static void cork(int s, int on) { setsockopt(s, IPPROTO_TCP, TCP_CORK, &on, sizeof on); }

static void serve(int l) {
    int s = accept(l, NULL, NULL);
    char q[64], head[64], body[900];
    while (read(s, q, sizeof q) > 0) {
        int id = atoi(q);
        cork(s, 1);
        int n = snprintf(body, sizeof body, "%0*d", 200 + id * 50, id);
        int h = snprintf(head, sizeof head, "length %06d\n", n);
        if (write(s, head, h) != h || write(s, body, n) != n) break;
        cork(s, 0);
    }
    _exit(0);
}

static int read_all(int s, char *p, int n) {
    for (int got = 0; got < n;) { int k = read(s, p + got, n - got); if (k <= 0) return -1; got += k; }
    return n;
}

int main(void) {
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof a;
    int l = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(l, (void *)&a, sizeof a) || listen(l, 4) || getsockname(l, (void *)&a, &len)) return 1;
    pid_t pid = fork();
    if (!pid) serve(l);
    int s = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(s, (void *)&a, sizeof a)) return 1;
    for (int i = 1; i <= REQUESTS; i++) {
        char q[16], head[15] = "", body[1000];
        int n = snprintf(q, sizeof q, "%d\n", i);
        if (write(s, q, n) != n || read_all(s, head, 14) < 0) return 1;
        n = atoi(head + 7);
        if (read_all(s, body, n) < 0) return 1;
        printf("item %d: %d bytes, ends in %c\n", i, n, body[n - 1]);
    }
    close(s);
    waitpid(pid, NULL, 0);
}
