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

// One signal, once the main thread is in the call: an exception can leave the call, but not any
// instruction before it, and not the unwinding of another.
static void *poke(void *target)
{
    char name[64], what[64];
    snprintf(name, sizeof name, "/proc/self/task/%d/syscall", getpid());
    do {
        usleep(2000);
        memset(what, 0, sizeof what);
        FILE *f = fopen(name, "r");
        if (!f || !fgets(what, sizeof what, f))
            exit(2);
        fclose(f);
    } while (strncmp(what, "0 ", 2));
    pthread_kill(*(pthread_t *)target, SIGUSR1);
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
