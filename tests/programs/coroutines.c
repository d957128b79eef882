/* Coroutines on stacks of their own, which two threads run by turns: each opens, reads and closes a file. A coroutine is
   now on one thread, now on the other. Prints ten times a second how many files have been read. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define COROUTINES 64
#define STACK (64 << 10)

struct coroutine {
    ucontext_t here;
    ucontext_t *home;
    pthread_mutex_t lock;
    int depth;
};

static struct coroutine all[COROUTINES];
static volatile long done;
static const char *path;

static __attribute__((noinline)) int work(int depth)
{
    volatile char room[512];
    room[0] = depth;
    if (depth > 0)
        return work(depth - 1) + room[0];
    char bytes[256];
    int fd = open(path, O_RDONLY);
    if (fd < 0 || read(fd, bytes, sizeof bytes) < 0)
        _exit(1);
    return close(fd);
}

static void run(int index)
{
    struct coroutine *own = &all[index];
    for (;;) {
        work(own->depth);
        __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
        swapcontext(&own->here, own->home);
    }
}

static void *loop(void *first)
{
    ucontext_t home;
    for (long i = (long)first;; i++) {
        struct coroutine *next = &all[i % COROUTINES];
        if (pthread_mutex_trylock(&next->lock))
            continue;
        next->home = &home;
        swapcontext(&home, &next->here);
        pthread_mutex_unlock(&next->lock);
    }
}

int main(int argc, char **argv)
{
    (void)argc;
    path = argv[1];
    for (int i = 0; i < COROUTINES; i++) {
        /* Between two stacks lies a page that can't be read. */
        char *stack = mmap(0, STACK + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(stack, 4096, PROT_NONE);
        pthread_mutex_init(&all[i].lock, 0);
        getcontext(&all[i].here);
        all[i].here.uc_stack.ss_sp = stack + 4096;
        all[i].here.uc_stack.ss_size = STACK;
        all[i].depth = i % 9;
        makecontext(&all[i].here, (void (*)(void))run, 1, i);
    }
    for (long t = 0; t < 2; t++) {
        pthread_t thread;
        pthread_create(&thread, 0, loop, (void *)(t * COROUTINES / 2));
    }
    for (;;) {
        usleep(100000);
        printf("%ld\n", done);
        fflush(stdout);
    }
}
