/* Calls the system by one function from several callers, as the argument says: m: middle, o: other, mo: both,
   t: middle, in a thread whose stack is small; c: middle, on a stack that ends right before memory that can't be read. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static volatile int sum;
static ucontext_t here, there;

__attribute__((noinline)) static void inner(void) { sum += syscall(SYS_getppid); }
__attribute__((noinline)) static void middle(void) { inner(); sum++; }
__attribute__((noinline)) static void other(void) { inner(); sum++; }

__attribute__((noinline)) static void deep(int depth, void (*call)(void)) {
    volatile char room[1024];
    room[depth] = 1;
    if (depth)
        deep(depth - 1, call);
    else
        for (int i = 0; i < 8000; i++) call();
    sum += room[depth];
}

static void *on_thread(void *arg) { deep(2, middle); return arg; }

static void on_small_stack(void) {
    deep(1, middle);
    swapcontext(&there, &here);
}

static void on_stack_before_nothing(void) {
    size_t size = 1 << 16;
    char *stack = mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(stack + size, 4096, PROT_NONE);
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = size;
    makecontext(&there, on_small_stack, 0);
    swapcontext(&here, &there);
}

int main(int argc, char **argv) {
    for (const char *what = argc > 1 ? argv[1] : "mo"; *what; what++) {
        pthread_t thread;
        switch (*what) {
        case 'm': deep(6, middle); break;
        case 'o': deep(6, other); break;
        case 't': pthread_create(&thread, NULL, on_thread, NULL); pthread_join(thread, NULL); break;
        case 'c': on_stack_before_nothing(); break;
        }
    }
    puts("done");
    return 0;
}
