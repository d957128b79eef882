/* busy_calls THREADS: threads that make short calls all the time, until standard input ends. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *work(void *unused) {
    int null = open("/dev/null", O_WRONLY), ends[2];
    char byte[8];
    if (pipe(ends)) return NULL;
    for (;;) {
        write(null, "x", 1);
        write(ends[1], "x", 1);
        read(ends[0], byte, sizeof byte);
    }
}

int main(int argc, char **argv) {
    for (int i = atoi(argv[1]); i > 0; i--) {
        pthread_t thread;
        pthread_create(&thread, NULL, work, NULL);
    }
    puts("ready");
    fflush(stdout);
    return getchar() == EOF ? 0 : 1;
}
