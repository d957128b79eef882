/* argv[1] threads that live on until standard input ends. Each makes a few calls, and waits argv[2] milliseconds in between. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int pause_ms;

static void *work(void *arg) {
    for (;;) {
        for (int i = 0; i < 20; i++) syscall(SYS_getppid);
        poll(NULL, 0, pause_ms);
    }
    return arg;
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 1;
    pause_ms = argc > 2 ? atoi(argv[2]) : 20;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (int i = 1; i < n; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &small, work, NULL)) return 1;
    }
    puts("ready");
    fflush(stdout);
    struct pollfd in = {0, POLLIN, 0};
    while (poll(&in, 1, pause_ms) == 0) syscall(SYS_getppid);
    return 0;
}
