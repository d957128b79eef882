// Threads cancelled while they are blocked: their destructors run, in order, whatever blocks them.
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static std::atomic<int> destroyed, order;
static int fds[2], pair[2];

struct Guard {
    int n;
    explicit Guard(int n) : n(n) {}
    ~Guard() { destroyed++; order = order * 10 + n; }
};

static void block(int how)
{
    Guard inner(2);
    char byte;
    struct pollfd p = {fds[0], POLLIN, 0};
    struct timespec long_time = {100, 0};
    switch (how) {
    case 0: (void)!read(fds[0], &byte, 1); break;
    case 1: poll(&p, 1, -1); break;
    case 2: nanosleep(&long_time, nullptr); break;
    case 3: pause(); break;
    case 4: recv(pair[0], &byte, 1, 0); break;
    case 5: { sem_t s; sem_init(&s, 0, 0); sem_wait(&s); break; }
    case 6: {
        pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
        pthread_cond_t c = PTHREAD_COND_INITIALIZER;
        pthread_mutex_lock(&m);
        pthread_cond_wait(&c, &m);
        break;
    }
    default: for (;;) pthread_testcancel(), sched_yield();
    }
}

static void *thread(void *how)
{
    Guard outer(1);
    block((int)(long)how);
    return nullptr;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 30, cancelled = 0, ordered = 0;
    if (pipe(fds) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        return 1;
    for (int round = 0; round < rounds; round++)
        for (long how = 0; how < 8; how++) {
            pthread_t t;
            void *result;
            order = 0;
            pthread_create(&t, nullptr, thread, (void *)how);
            // Now and then before it blocks, now and then long after.
            if (round % 3)
                usleep(round % 3 * 300);
            pthread_cancel(t);
            pthread_join(t, &result);
            cancelled += result == PTHREAD_CANCELED;
            // Cancelled before it began there is nothing to destroy.
            ordered += order == 21 || (order == 0 && round % 3 == 0);
        }
    printf("%d cancelled, %d of %d in order\n", cancelled, ordered, rounds * 8);
    return 0;
}
