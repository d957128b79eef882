// Exceptions thrown by a signal handler through the call it interrupts: caught, destructors run.
#include <csignal>
#include <cstdio>
#include <cstring>
#include <cstdlib>
#include <pthread.h>
#include <unistd.h>

static int destroyed, caught, fds[2];

struct Guard {
    ~Guard() { destroyed++; }
};

static void handler(int n)
{
    throw n;
}

__attribute__((noinline)) static void blocked()
{
    Guard guard;
    char byte;
    (void)!read(fds[0], &byte, 1);
}

static void *poke(void *target)
{
    pthread_t main_thread = *(pthread_t *)target;
    while (!__atomic_load_n(&destroyed, __ATOMIC_SEQ_CST) && usleep(20000) == 0)
        pthread_kill(main_thread, SIGUSR1);
    return nullptr;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 10, all = 0;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_NODEFER;
    if (pipe(fds))
        return 1;
    for (int round = 0; round < rounds; round++) {
        pthread_t self = pthread_self(), t;
        sigaction(SIGUSR1, &action, nullptr);
        destroyed = 0;
        bool waiting = true;
        pthread_create(&t, nullptr, poke, &self);
        try {
            blocked();
        } catch (int n) {
            caught++;
        }
        signal(SIGUSR1, SIG_IGN);
        pthread_join(t, nullptr);
        all += destroyed;
    }
    printf("%d caught, %d destroyed\n", caught, all);
    return 0;
}
