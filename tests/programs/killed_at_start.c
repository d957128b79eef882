/* Children that are killed at any moment of their start, and what they did until then.
 *
 *   killed_at_start COUNTS SEED CHILDREN MOST_US
 *
 * Starts so many children, one after the other, in three ways (fork and exec, vfork and exec, fork alone), and
 * kills each within so many microseconds. A child calls getppid until it is killed and notes in the file COUNTS,
 * which all have mapped, what it has begun and what it has done. Prints both, and how many children were killed. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct counts {
    atomic_long begun, done;
};

static struct counts *map(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(struct counts)))
        exit(2);
    struct counts *counts = mmap(0, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (counts == MAP_FAILED)
        exit(2);
    close(fd);
    return counts;
}

static void work(struct counts *counts) {
    for (;;) {
        atomic_fetch_add(&counts->begun, 1);
        syscall(SYS_getppid);
        atomic_fetch_add(&counts->done, 1);
    }
}

static pid_t start(int way, char *self, char *path, struct counts *counts) {
    char *argv[] = {self, path, 0};
    pid_t pid = way == 1 ? vfork() : fork();
    if (pid == 0) {
        if (way == 2)
            work(counts);
        execv(self, argv);
        _exit(3);
    }
    return pid;
}

int main(int argc, char **argv) {
    struct counts *counts = map(argv[1]);
    if (argc == 2)
        work(counts);
    srandom(atoi(argv[2]));
    int children = atoi(argv[3]), most_us = atoi(argv[4]), killed = 0;
    char self[4096] = {0};
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return 2;
    for (int n = 0; n < children; n++) {
        pid_t pid = start(n % 3, self, argv[1], counts);
        long us = random() % most_us;
        struct timespec pause = {0, us * 1000};
        clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, 0);
        kill(pid, SIGKILL);
        int status = 0;
        killed += waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    }
    printf("%ld begun %ld done %d killed\n", counts->begun, counts->done, killed);
    return 0;
}
