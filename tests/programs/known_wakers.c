/* Waits of one kind, each for some milliseconds, ended by a known thread. A thread that computes all the while may stand
 * beside: known_wakers KIND [busy]. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TURNS = 60, MS = 1000 };

static volatile int over;

static void *compute(void *unused)
{
    static volatile unsigned long n;
    while (!over)
        n++;
    return unused;
}

static void *idle(void *unused)
{
    while (!over)
        usleep(50 * MS);
    return unused;
}

/* A message has a byte; the one who sends it has worked for 4 ms. */
static void answer(int in, int out)
{
    char byte;
    while (read(in, &byte, 1) == 1) {
        usleep(4 * MS);
        if (write(out, &byte, 1) != 1)
            break;
    }
}

static void ask(int in, int out)
{
    char byte = 'x';
    for (int i = 0; i < TURNS; i++)
        if (write(out, &byte, 1) != 1 || read(in, &byte, 1) != 1)
            abort();
}

/* Two processes, of which one answers the other. */
static void talk(int here_in, int here_out, int there_in, int there_out)
{
    pid_t child = fork();
    if (!child) {
        if (here_out != there_in)
            close(here_out);
        if (here_in != here_out && here_in != there_out)
            close(here_in);
        answer(there_in, there_out);
        _exit(0);
    }
    if (there_in != here_out)
        close(there_in);
    if (there_out != there_in && there_out != here_in)
        close(there_out);
    ask(here_in, here_out);
    close(here_out);
    if (here_in != here_out)
        close(here_in);
    waitpid(child, 0, 0);
}

static void pipes(void)
{
    int to[2], from[2];
    if (pipe(to) || pipe(from))
        abort();
    talk(from[0], to[1], to[0], from[1]);
}

static void pair(void)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        abort();
    talk(ends[0], ends[0], ends[1], ends[1]);
}

static void tcp(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0), here = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (void *)&at, size) || listen(listener, 1) || getsockname(listener, (void *)&at, &size)
        || connect(here, (void *)&at, size))
        abort();
    int there = accept(listener, 0, 0);
    talk(here, here, there, there);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static int turn;

static void *other(void *unused)
{
    for (int i = 0; i < TURNS; i++) {
        pthread_mutex_lock(&lock);
        while (turn == 0)
            pthread_cond_wait(&turned, &lock);
        pthread_mutex_unlock(&lock);
        usleep(4 * MS);
        pthread_mutex_lock(&lock);
        turn = 0;
        pthread_cond_broadcast(&turned);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

static void futex(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, other, 0);
    for (int i = 0; i < TURNS; i++) {
        pthread_mutex_lock(&lock);
        turn = 1;
        pthread_cond_broadcast(&turned);
        while (turn == 1)
            pthread_cond_wait(&turned, &lock);
        pthread_mutex_unlock(&lock);
    }
    pthread_join(thread, 0);
}

static void locks(void)
{
    int kept = open("lock", O_CREAT | O_RDWR, 0600);
    pid_t child = fork();
    int own = open("lock", O_RDWR);
    for (int i = 0; i < TURNS; i++) {
        flock(own, LOCK_EX);
        usleep(4 * MS);
        flock(own, LOCK_UN);
        usleep(MS / 5);
    }
    if (!child)
        _exit(0);
    waitpid(child, 0, 0);
    close(kept);
}

static void children(void)
{
    for (int i = 0; i < TURNS; i++) {
        pid_t child = fork();
        if (!child) {
            usleep(4 * MS);
            _exit(0);
        }
        waitpid(child, 0, 0);
    }
}

static void sleeps(void)
{
    for (int i = 0; i < TURNS; i++)
        usleep(4 * MS);
}

static void syncs(void)
{
    static char block[1 << 20];
    int file = open("data", O_CREAT | O_RDWR, 0600);
    for (int i = 0; i < TURNS / 2; i++) {
        memset(block, i, sizeof block);
        if (write(file, block, sizeof block) != sizeof block || fsync(file))
            abort();
    }
}

static int event, epoll;

static void *counts(void *unused)
{
    for (int i = 0; i < TURNS; i++) {
        unsigned long one = 1;
        usleep(4 * MS);
        if (write(event, &one, sizeof one) != sizeof one)
            abort();
    }
    return unused;
}

static void events(void)
{
    pthread_t thread;
    struct epoll_event wanted = { .events = EPOLLIN }, got;
    event = eventfd(0, 0);
    epoll = epoll_create1(0);
    epoll_ctl(epoll, EPOLL_CTL_ADD, event, &wanted);
    pthread_create(&thread, 0, counts, 0);
    for (unsigned long seen = 0, n; seen < TURNS; seen += n)
        if (epoll_wait(epoll, &got, 1, -1) != 1 || read(event, &n, sizeof n) != sizeof n)
            abort();
    pthread_join(thread, 0);
}

static pthread_t waiting;

static void *signals_it(void *unused)
{
    for (int i = 0; i < TURNS; i++) {
        usleep(4 * MS);
        pthread_kill(waiting, SIGRTMIN);
    }
    return unused;
}

static void signals(void)
{
    pthread_t thread;
    sigset_t set;
    sigemptyset(&set);
    /* Of other signals one may stand for several: a waiter that is late would wait for ever. */
    sigaddset(&set, SIGRTMIN);
    pthread_sigmask(SIG_BLOCK, &set, 0);
    waiting = pthread_self();
    pthread_create(&thread, 0, signals_it, 0);
    for (int i = 0; i < TURNS; i++)
        sigwaitinfo(&set, 0);
    pthread_join(thread, 0);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } kinds[] = { { "futex", futex }, { "pipe", pipes }, { "pair", pair }, { "tcp", tcp }, { "flock", locks },
        { "child", children }, { "sleep", sleeps }, { "fsync", syncs }, { "epoll", events }, { "signal", signals } };
    pthread_t beside[2];
    int is_busy = argc > 2;
    if (is_busy) {
        pthread_create(&beside[0], 0, compute, 0);
        pthread_create(&beside[1], 0, idle, 0);
    }
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (argc > 1 && !strcmp(argv[1], kinds[i].name))
            kinds[i].run();
    over = 1;
    for (int i = 0; is_busy && i < 2; i++)
        pthread_join(beside[i], 0);
    return 0;
}
