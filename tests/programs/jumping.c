/* Jumps by every name they have: with libc's functions and with others that stand for them the
 * lines must be the same. jumping PART... */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sigjmp_buf outer, inner;
static __thread sigjmp_buf own;

static void show(const char *what)
{
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, 0, &now);
    printf("%s: USR1 %d\n", what, sigismember(&now, SIGUSR1));
}
static void block(int how)
{
    sigset_t set;
    sigemptyset(&set), sigaddset(&set, SIGUSR1);
    pthread_sigmask(how, &set, 0);
}

static __attribute__((noinline)) void leave(sigjmp_buf to, int with) { siglongjmp(to, with); }

static void values(void)
{
    static const int with[] = {1, 0, -1, 7, 1 << 30};
    for (volatile int i = 0; i < 5; i++) {
        register long kept = 1000 + i;
        __asm__ volatile("" : "+r"(kept));
        int came = sigsetjmp(outer, 1);
        if (!came)
            leave(outer, with[i]);
        printf("%d: %d\n", i, came);
    }
}
static void nested(void)
{
    volatile int level = 0;
    int came = sigsetjmp(outer, 1);
    if (came == 0) {
        for (level = 0; level < 3; level++)
            if (sigsetjmp(inner, level) == 0)
                leave(inner, 5);
            else
                printf("inner %d\n", level);
        leave(outer, 9);
    }
    printf("outer %d %d\n", came, level);
}
static void plain(void)
{
    jmp_buf b;
    volatile int rounds = 0;
    if (setjmp(b) < 3)
        longjmp(b, ++rounds);
    printf("setjmp %d\n", rounds);
    rounds = 0;
    if (_setjmp(b) < 4)
        _longjmp(b, ++rounds);
    printf("_setjmp %d\n", rounds);
}
/* The function, which saves the mask, where the header's macro does not. */
#undef setjmp
extern int setjmp(jmp_buf) __attribute__((returns_twice));
static void function(void)
{
    jmp_buf b;
    volatile int rounds = 0;
    if (setjmp(b) < 5)
        longjmp(b, ++rounds);
    printf("function %d\n", rounds);
}
static void *worker(void *sum)
{
    for (volatile int i = 0; i < 500; i++) {
        int came = sigsetjmp(own, 1);
        if (!came)
            leave(own, i + 1);
        *(volatile long *)sum += came;
    }
    return 0;
}
static void threads(void)
{
    pthread_t t[4];
    long sums[4] = {0};
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], 0, worker, &sums[i]);
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], 0);
        printf("%ld\n", sums[i]);
    }
}
static void unsaved(void)
{
    if (sigsetjmp(outer, 0) == 0) {
        block(SIG_BLOCK);
        leave(outer, 1);
    }
    show("not saved");
    block(SIG_UNBLOCK);
}
static void kept_mask(void)
{
    block(SIG_BLOCK);
    if (sigsetjmp(outer, 1) == 0)
        leave(outer, 1);
    show("kept");
    block(SIG_UNBLOCK);
}
/* Not so with a cure that saves no mask: this is what it gives up. */
static void handler(int signal) { leave(outer, signal); }
static void from_handler(void)
{
    signal(SIGUSR1, handler);
    if (sigsetjmp(outer, 1) == 0)
        raise(SIGUSR1);
    show("from a handler");
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*run)(void); } parts[] = {
        {"values", values}, {"nested", nested}, {"plain", plain}, {"function", function}, {"threads", threads},
        {"unsaved", unsaved}, {"kept_mask", kept_mask}, {"from_handler", from_handler},
    };
    for (int i = 1; i < argc; i++)
        for (unsigned k = 0; k < sizeof parts / sizeof *parts; k++)
            if (!strcmp(parts[k].name, argv[i])) {
                printf("-- %s\n", argv[i]);
                parts[k].run();
            }
    return 4;
}
