#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORKERS 5
static pid_t pids[WORKERS];
static volatile sig_atomic_t stop;
static void on_term(int s) { (void)s; stop = 1; }

static void worker(int id, int ready) {
    struct sigaction sa = { .sa_handler = on_term };
    sigset_t block, old;
    sigemptyset(&block); sigaddset(&block, SIGTERM);
    sigprocmask(SIG_BLOCK, &block, &old);
    sigaction(SIGTERM, &sa, NULL);
    unsigned long h = id;
    for (int i = 0; i < 2000000; i++) h = h * 6364136223846793005ul + 1442695040888963407ul;
    if (write(ready, "r", 1) != 1) _exit(9);
    while (!stop) sigsuspend(&old);
    /* drain: the last answers go out at the pace of the peer */
    struct timespec drain = { 0, 130 * 1000 * 1000 };
    nanosleep(&drain, NULL);
    _exit(h ? id : 0);
}

static int stop_worker(pid_t pid) {
    int status;
    kill(pid, SIGTERM);
    while (waitpid(pid, &status, WNOHANG) == 0)
        usleep(100 * 1000);
    return WEXITSTATUS(status);
}

int main(void) {
    int ready[2]; char c;
    if (pipe(ready)) return 1;
    for (int i = 0; i < WORKERS; i++)
        if ((pids[i] = fork()) == 0) worker(i + 1, ready[1]);
    for (int i = 0; i < WORKERS; i++) if (read(ready[0], &c, 1) != 1) return 1;
    printf("%d workers are up\n", WORKERS);
    for (int i = 0; i < WORKERS; i++) printf("worker %d: exit %d\n", i + 1, stop_worker(pids[i]));
}
