#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <stdint.h>

#define THREADS 6
#define REQUESTS 25
static struct sockaddr_un addr = { .sun_family = AF_UNIX };
static pthread_mutex_t backend_lock = PTHREAD_MUTEX_INITIALIZER;
static int backend = -1;
static uint64_t sums[THREADS];

static void *serve(void *arg) {
    int s = (int)(intptr_t)arg; uint64_t q;
    while (read(s, &q, sizeof q) == sizeof q) {
        struct timespec seek = { 0, 5 * 1000 * 1000 };   /* the disk */
        nanosleep(&seek, NULL);
        q = q * 2654435761u % 1000003;
        if (write(s, &q, sizeof q) != sizeof q) break;
    }
    close(s);
    return NULL;
}

static void store(int l) {
    for (;;) {
        int s = accept(l, NULL, NULL); pthread_t t;
        if (s < 0) _exit(0);
        pthread_create(&t, NULL, serve, (void *)(intptr_t)s);
        pthread_detach(t);
    }
}

static int dial(void) {
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(s, (void *)&addr, sizeof addr)) { perror("connect"); exit(1); }
    return s;
}

static uint64_t ask(int s, uint64_t q) {
    uint64_t a = 0;
    pthread_mutex_lock(&backend_lock);
    if (write(s, &q, sizeof q) != sizeof q || read(s, &a, sizeof a) != sizeof a) { perror("store"); exit(1); }
    pthread_mutex_unlock(&backend_lock);
    return a;
}

static void *requests(void *arg) {
    int me = (int)(intptr_t)arg;
    int s = backend;
    for (int i = 0; i < REQUESTS; i++) sums[me] += ask(s, me * 1000 + i);
    return NULL;
}

int main(void) {
    snprintf(addr.sun_path, sizeof addr.sun_path, "/tmp/store-%d.sock", (int)getpid());
    int l = socket(AF_UNIX, SOCK_STREAM, 0);
    unlink(addr.sun_path);
    if (bind(l, (void *)&addr, sizeof addr) || listen(l, 16)) return 1;
    pid_t pid = fork();
    if (!pid) store(l);
    close(l);
    backend = dial();
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, requests, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++) { pthread_join(t[i], NULL); printf("thread %d: %llu\n", i, (unsigned long long)sums[i]); }
    kill(pid, 15); waitpid(pid, NULL, 0);
    unlink(addr.sun_path);
    (void)backend_lock; (void)backend;
}
