// Habits of a program, one a mode: round_habits MODE FOLDER TIMES
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *folder;
static long times;
static char block[4096];

static int opened(const char *name, int flags) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, flags, 0600);
    if (fd < 0) abort();
    return fd;
}

// A file grows right before the write that would have grown it.
static void grow(void) {
    int fd = opened("blob.dat", O_RDWR | O_CREAT | O_TRUNC);
    for (long i = 0; i < times; i++) {
        memset(block, (int)i, sizeof block);
        *(long *)block = i;
        if (ftruncate(fd, (i + 1) * 4096) || pwrite(fd, block, sizeof block, i * 4096) != sizeof block) abort();
    }
    close(fd);
}

// Four files in rotation, each opened, mapped, looked into, given up.
static void rotate(void) {
    char name[32];
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "segment%d", i);
        int fd = opened(name, O_RDWR | O_CREAT);
        if (ftruncate(fd, 512 << 10)) abort();
        close(fd);
    }
    long sum = 0;
    for (long i = 0; i < times; i++) {
        snprintf(name, sizeof name, "segment%ld", i % 4);
        int fd = opened(name, O_RDONLY);
        struct stat st;
        if (fstat(fd, &st)) abort();
        char *at = mmap(NULL, st.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (at == MAP_FAILED) abort();
        sum += at[i % 4096];
        munmap(at, st.st_size);
        close(fd);
    }
    if (sum) abort();
}

// A file for each item, read in four pieces.
static void nested(void) {
    int made = opened("item", O_RDWR | O_CREAT | O_TRUNC);
    for (int i = 0; i < 4; i++) if (write(made, block, sizeof block) != sizeof block) abort();
    close(made);
    for (long i = 0; i < times; i++) {
        int fd = opened("item", O_RDONLY);
        for (int piece = 0; piece < 4; piece++) if (read(fd, block, sizeof block) != sizeof block) abort();
        close(fd);
    }
}

// A server: one waits for requests, answers, and logs every fifth; the other asks.
static int ends[2];

static void *client(void *unused) {
    char buffer[64];
    for (long i = 0; i < times; i++) {
        memset(buffer, 0, sizeof buffer);
        *(long *)buffer = i;
        if (send(ends[1], buffer, sizeof buffer, 0) != sizeof buffer) abort();
        if (recv(ends[1], buffer, sizeof buffer, 0) <= 0) abort();
    }
    return unused;
}

static void serve(void) {
    int log = opened("log", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) abort();
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = ends[0]};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event)) abort();
    pthread_t thread;
    if (pthread_create(&thread, NULL, client, NULL)) abort();
    for (long i = 0; i < times; i++) {
        char buffer[64];
        while (epoll_wait(epoll, &event, 1, -1) < 1) {}
        if (recv(ends[0], buffer, sizeof buffer, 0) != sizeof buffer) abort();
        if (i % 5 == 0 && write(log, buffer, sizeof buffer) != sizeof buffer) abort();
        if (send(ends[0], buffer, 32, 0) != 32) abort();
    }
    pthread_join(thread, NULL);
}

// Threads that all do the same.
static void *worker(void *unused) {
    for (long i = 0; i < times; i++) {
        int fd = opened("item", O_RDONLY);
        char one[64];
        if (pread(fd, one, sizeof one, 64 * (i % 64)) != sizeof one) abort();
        close(fd);
    }
    return unused;
}

static void threads(void) {
    int made = opened("item", O_RDWR | O_CREAT | O_TRUNC);
    if (write(made, block, sizeof block) != sizeof block) abort();
    close(made);
    pthread_t all[4];
    for (int i = 0; i < 4; i++) if (pthread_create(&all[i], NULL, worker, NULL)) abort();
    for (int i = 0; i < 4; i++) pthread_join(all[i], NULL);
}

// Hardly any call for its time, even where the stops of a tracer wait for a processor. The file is in memory: a busy
// disk makes writers wait.
static void work(void) {
    int fd = memfd_create("blob.dat", 0);
    volatile unsigned long sum = 0;
    for (long i = 0; i < times; i++) {
        for (int j = 0; j < 2000000; j++) sum += j;
        *(long *)block = i;
        if (write(fd, block, sizeof block) != sizeof block) abort();
    }
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    folder = argv[2];
    times = atol(argv[3]);
    struct { const char *name; void (*run)(void); } modes[] = {
        {"grow", grow}, {"rotate", rotate}, {"nested", nested}, {"serve", serve}, {"threads", threads}, {"work", work},
    };
    for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++)
        if (!strcmp(argv[1], modes[i].name)) return modes[i].run(), 0;
    return 2;
}
