/* drops_rights THREADS HOW...: a server that forks workers, each of which changes what it may do by HOW and
 * goes on: known numbers of getppid before and after, in children of its own, and in another program
 * at the end. The maker writes how the first worker's calls are to be told apart from its own: not. */
#define _GNU_SOURCE
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BEFORE = 70, AFTER = 50, BELOW = 30, WORKERS = 3 };

static atomic_int stop;

static void calls(int n) {
    while (n-- > 0) syscall(SYS_getppid);
}

static void *spin(void *arg) {
    int *made = arg;
    while (!stop) calls(100), *made += 100;
    return 0;
}

/* 0 where all went well. */
static int change(const char *how) {
    if (!strcmp(how, "user")) return setgroups(0, 0) || setgid(65534) || setuid(65534);
    if (!strcmp(how, "raw")) return syscall(SYS_setresgid, 65534, 65534, 65534) || syscall(SYS_setresuid, 65534, 65534, 65534);
    if (!strcmp(how, "namespace")) return unshare(CLONE_NEWNS);
    if (!strcmp(how, "root")) return chroot("/");
    if (!strcmp(how, "fails")) return setuid(65534) == 0 && setuid(0) == 0;
    return 1;
}

static int worker(int threads, const char *how, int execs) {
    pthread_t made[16];
    static int counts[16];
    for (int i = 0; i < threads; i++) pthread_create(&made[i], 0, spin, &counts[i]);
    calls(BEFORE);
    if (change(how)) return 9;
    calls(AFTER);
    pid_t child = fork();
    if (child == 0) {
        calls(BELOW);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    stop = 1;
    long all = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(made[i], 0);
        all += counts[i];
    }
    printf("%ld\n", BEFORE + AFTER + BELOW + all);
    fflush(stdout);
    if (execs) execl("/bin/true", "true", (char *)0);
    return WEXITSTATUS(status);
}

int main(int argc, char **argv) {
    int threads = atoi(argv[1]);
    calls(BEFORE);
    for (int i = 0; i < WORKERS; i++) {
        pid_t pid = fork();
        if (pid == 0) _exit(worker(threads, argv[2 + i % (argc - 2)], i == WORKERS - 1));
        int status;
        waitpid(pid, &status, 0);
        if (status) return 10 + WEXITSTATUS(status);
    }
    calls(AFTER);
    printf("%d\n", BEFORE + AFTER);
    return 0;
}
