/* What the benchmarks run, with and without an observer: one kind of work in many short batches, timed
   by the program itself through the vDSO, which no observer sees.

   work KIND MILLISECONDS [THREADS]   prints: fastest batch, median batch, batches (ns for one piece of work)
   work sight|window MILLISECONDS     the same of single calls: from places never seen; above a microsecond
   work million                       1,000,000 getppid, then 'end' */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define MAX_THREADS 8
#define MAX_BATCHES (1 << 18)

extern char **environ;

static double batches[MAX_THREADS][MAX_BATCHES];
static long done[MAX_THREADS];
static pthread_barrier_t ready;
static double budget_ns;
static pid_t own_pid, own_tid;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void on_signal(int number) { (void)number; }
static void *nothing(void *arg) { return arg; }

static void must(int ok, const char *what)
{
    if (!ok) {
        perror(what);
        exit(1);
    }
}

static void call(void) { getppid(); }
static void any(void) { syscall(SYS_getppid); }

/* Calls that can be answered in place. */
static void identity(void) { getpid(); }
static sigjmp_buf mark;
static void saved_mask(void) { sigsetjmp(mark, 1); }
static ucontext_t context;
static void saved_context(void) { getcontext(&context); }

/* 1,024 places, each of which calls once. */
#define FOUR(x) x x x x
#define PLACE { double start = now(); getppid(); batches[0][done[0]++] = now() - start; }
static void __attribute__((noinline)) places(void)
{
    FOUR(FOUR(FOUR(FOUR(FOUR(PLACE)))))
}

/* Calls timed one by one: those that took more than a microsecond, or if there is none, all. */
static void slow_calls(void)
{
    double end = now() + budget_ns;
    for (long n = 0; done[0] < MAX_BATCHES && now() < end; n++) {
        double start = now();
        getppid();
        double taken = now() - start;
        if (taken > 1000)
            batches[0][done[0]++] = taken;
    }
    for (long n = 0; done[0] == 0 || (done[0] == n && n < 1000); n++) {
        double start = now();
        getppid();
        batches[0][done[0]++] = now() - start;
    }
}

/* Not raise(), which sets the signal mask twice besides. */
static void send_signal(void) { syscall(SYS_tgkill, own_pid, own_tid, SIGUSR1); }

static void make_thread(void)
{
    pthread_t thread;
    must(pthread_create(&thread, NULL, nothing, NULL) == 0, "pthread_create");
    pthread_join(thread, NULL);
}

static void make_child(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    must(child > 0 && waitpid(child, NULL, 0) == child, "fork");
}

static void make_program(void)
{
    char *argv[] = {"/bin/true", NULL};
    pid_t child;
    must(posix_spawn(&child, argv[0], NULL, NULL, argv, environ) == 0, "posix_spawn");
    must(waitpid(child, NULL, 0) == child, "waitpid");
}

static const struct kind {
    const char *name;
    void (*work)(void);
    int batch;
} kinds[] = {
    {"call", call, 100}, {"any", any, 100}, {"getpid", identity, 100}, {"sigsetjmp", saved_mask, 100}, {"getcontext", saved_context, 100}, {"signal", send_signal, 20}, {"thread", make_thread, 5}, {"fork", make_child, 3}, {"exec", make_program, 1},
};
static const struct kind *chosen;

static void *measure(void *arg)
{
    long thread = (long)arg;
    pthread_barrier_wait(&ready);
    double end = now() + budget_ns;
    for (long n = 0; n < MAX_BATCHES; n++) {
        double start = now();
        if (start > end)
            break;
        for (int i = 0; i < chosen->batch; i++)
            chosen->work();
        batches[thread][n] = (now() - start) / chosen->batch;
        done[thread] = n + 1;
    }
    return NULL;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print(double *all, long count)
{
    qsort(all, count, sizeof *all, by_size);
    printf("%.1f %.1f %ld\n", all[0], all[count / 2], count);
}

static void run(long threads)
{
    pthread_t others[MAX_THREADS];
    pthread_barrier_init(&ready, NULL, threads);
    for (long n = 1; n < threads; n++)
        must(pthread_create(&others[n], NULL, measure, (void *)n) == 0, "pthread_create");
    measure((void *)0);
    double *all = batches[0];
    long count = done[0];
    for (long n = 1; n < threads; n++) {
        pthread_join(others[n], NULL);
        memmove(all + count, batches[n], done[n] * sizeof *all);
        count += done[n];
    }
    print(all, count);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "million") == 0) {
        for (int i = 0; i < 1000000; i++)
            syscall(SYS_getppid);
        must(write(1, "end\n", 4) == 4, "write");
        return 0;
    }
    if (argc >= 3 && (strcmp(argv[1], "sight") == 0 || strcmp(argv[1], "window") == 0)) {
        budget_ns = atof(argv[2]) * 1e6;
        if (argv[1][0] == 's')
            places();
        else
            slow_calls();
        print(batches[0], done[0]);
        return 0;
    }
    if (argc >= 3)
        for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (strcmp(kinds[i].name, argv[1]) == 0)
                chosen = &kinds[i];
    long threads = argc > 3 ? atol(argv[3]) : 1;
    if (!chosen || threads < 1 || threads > MAX_THREADS) {
        fprintf(stderr, "usage: work KIND MILLISECONDS [THREADS] | work million\n");
        return 2;
    }
    budget_ns = atof(argv[2]) * 1e6;
    own_pid = getpid();
    own_tid = syscall(SYS_gettid);
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    run(threads);
    return 0;
}
