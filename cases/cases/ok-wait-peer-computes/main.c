// A client asks a server that computes 30 ms for each answer.
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void compute(long ms) {
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < ms);
}

int main(int argc, char **argv) {
    int n = atoi(argv[1]), ends[2], answer, sum = 0;
    (void)argc;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return 1;
    if (!fork()) {
        close(ends[0]);
        while (read(ends[1], &answer, sizeof answer) == sizeof answer) {
            compute(30);
            answer *= 2;
            (void)!write(ends[1], &answer, sizeof answer);
        }
        return 0;
    }
    close(ends[1]);
    for (int i = 0; i < n; i++) {
        (void)!write(ends[0], &i, sizeof i);
        (void)!read(ends[0], &answer, sizeof answer);
        sum += answer;
    }
    close(ends[0]);
    wait(0);
    printf("%d\n", sum);
}
