/* Saves contexts as interpreters do that keep one for each block and each rescue: nested, so that they lie
 * on several pages of the stack, and on a coroutine's stack; with a thread that signals every 10 ms of
 * processor time, as theirs do to switch threads. Calls by number, new memory and masks that are set
 * without asking for the old one come in between. Usage: saved ROUNDS [SHIFT]. Prints how often it came to the bottom. */
#define _GNU_SOURCE
#include <alloca.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

static volatile sig_atomic_t ticks;
static volatile unsigned long bottom;
static ucontext_t home, other;
static char stack[1 << 16] __attribute__((aligned(4096)));

static void tick(int signal) { (void)signal, ticks++; }

struct frame {
    ucontext_t context;
    struct frame *outer;
    volatile int thrown;
};
static struct frame *innermost;

__attribute__((noinline)) static void block(int depth) {
    volatile char room[3000];
    struct frame frame;
    room[0] = 1;
    frame.outer = innermost, frame.thrown = 0, innermost = &frame;
    getcontext(&frame.context);
    if (frame.thrown == 0) {
        if (depth > 0) block(depth - 1);
        else bottom++;
        if (depth == 2) frame.thrown = 1, setcontext(&frame.context);
    }
    innermost = frame.outer;
    if (room[0] != 1) abort();
}

static void coroutine(void) {
    for (;;) block(1), swapcontext(&other, &home);
}

int main(int argc, char **argv) {
    long rounds = argc > 1 ? atol(argv[1]) : 1000;
    volatile char *shift = alloca(argc > 2 ? (size_t)atol(argv[2]) + 1 : 1);
    shift[0] = 0;
    signal(SIGVTALRM, tick);
    struct itimerval every = {{0, 10000}, {0, 10000}};
    setitimer(ITIMER_VIRTUAL, &every, 0);
    getcontext(&other);
    other.uc_stack.ss_sp = stack, other.uc_stack.ss_size = sizeof stack, other.uc_link = &home;
    makecontext(&other, coroutine, 0);
    sigset_t none;
    sigemptyset(&none);
    for (long i = 0; i < rounds; i++) {
        block(3);
        swapcontext(&home, &other);
        sigprocmask(SIG_BLOCK, &none, 0);
        if (i % 4 == 0) syscall(SYS_getppid);
        if (i % 64 == 0) mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    printf("%lu\n", bottom);
    return 0;
}
