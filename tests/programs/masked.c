/* All signals blocked, a handler for SIGTRAP: neither is touched while calls are seen for the first
 * time, a library is loaded, threads start and children are made. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int traps;

static void trapped(int signal)
{
    traps++;
}

static int as_set(const char *when, int blocked)
{
    struct sigaction action;
    sigset_t mask, pending;
    sigaction(SIGTRAP, 0, &action);
    sigprocmask(SIG_BLOCK, 0, &mask);
    sigpending(&pending);
    int right = action.sa_handler == trapped && action.sa_flags & SA_NODEFER && !sigismember(&pending, SIGTRAP);
    for (int s = 1; s < 32; s++)
        right &= s == SIGKILL || s == SIGSTOP || sigismember(&mask, s) == blocked;
    if (!right)
        printf("not as set: %s\n", when);
    return right;
}

static void many_first_sights(void)
{
    char buffer[64];
    struct stat st;
    struct rlimit limit;
    struct rusage usage;
    struct timespec t;
    struct timeval v;
    int fds[2], on = 1;
    getpid(), getppid(), getuid(), geteuid(), getgid(), getegid(), getpgrp(), getsid(0), gettid();
    sched_yield(), sched_getscheduler(0), getpriority(PRIO_PROCESS, 0), umask(022), alarm(0);
    pipe(fds), write(fds[1], "x", 1), read(fds[0], buffer, 1), fstat(fds[0], &st), dup2(fds[0], 40);
    fcntl(40, F_GETFL), close(40), close(fds[0]), close(fds[1]), stat("/", &st), lstat("/", &st);
    access("/", R_OK), readlink("/proc/self/exe", buffer, 60), getcwd(buffer, 60), chdir(".");
    getrlimit(RLIMIT_CORE, &limit), getrusage(RUSAGE_SELF, &usage), clock_getres(CLOCK_REALTIME, &t);
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), listen(s, 1), close(s);
    void *p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(p, 4096, PROT_READ), madvise(p, 4096, MADV_DONTNEED), munmap(p, 4096);
    open("/nonexistent", 0), mkdir("/", 0), rmdir("/nonexistent"), unlink("/nonexistent"), sync_file_range(-1, 0, 0, 0);
    getitimer(ITIMER_REAL, (struct itimerval[1]){}), times((void *)buffer), uname((void *)(char[400]){}), sysinfo((void *)(char[200]){});
}

static void *thread(void *unused)
{
    many_first_sights();
    return (void *)(long)as_set("in a thread", 1);
}

int main(void)
{
    struct sigaction action;
    sigset_t all;
    void *result;
    pthread_t t;
    int status;
    memset(&action, 0, sizeof action);
    action.sa_handler = trapped;
    action.sa_flags = SA_NODEFER | SA_ONSTACK;
    sigaction(SIGTRAP, &action, 0);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, 0);
    as_set("at first", 1);
    many_first_sights();
    as_set("after calls", 1);
    dlopen("libm.so.6", RTLD_NOW), dlopen("libresolv.so.2", RTLD_NOW), dlopen("libcrypt.so.1", RTLD_NOW);
    as_set("after loading", 1);
    pthread_create(&t, 0, thread, 0);
    pthread_join(t, &result);
    if (fork() == 0)
        many_first_sights(), _exit(!as_set("in a child", 1));
    wait(&status);
    if (vfork() == 0)
        _exit(getppid() == 1);
    wait(0);
    raise(SIGTRAP);
    int before = traps;
    sigset_t trap;
    sigemptyset(&trap), sigaddset(&trap, SIGTRAP);
    sigprocmask(SIG_UNBLOCK, &trap, 0);
    printf("%d %d, %d then %d\n", result != 0, status, before, traps);
    return 0;
}
