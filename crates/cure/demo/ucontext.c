/* An interpreter that saves its frame before each block it runs, so that the block
 * can leave early. getcontext and setcontext save and restore the signal mask, which
 * nobody here changes; _setjmp and _longjmp (CURED) do the same job without asking. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

static long finished, left_early;

#ifdef CURED
static jmp_buf frame;
#define SAVE_FRAME() ((void)_setjmp(frame))
#define RESTORE_FRAME() _longjmp(frame, 1)
#else
static ucontext_t frame;
#define SAVE_FRAME() ((void)getcontext(&frame))
#define RESTORE_FRAME() setcontext(&frame)
#endif

static void __attribute__((noinline)) block(long i)
{
    if (i % 16 == 0)
        RESTORE_FRAME();
    finished++;
}

static void __attribute__((noinline)) yield_block(long i)
{
    volatile int entered = 0;
    SAVE_FRAME();
    if (entered) {
        left_early++;
        return;
    }
    entered = 1;
    block(i);
}

int main(int argc, char **argv)
{
    long blocks = argc > 1 ? atol(argv[1]) : 20000;
    for (long i = 0; i < blocks; i++)
        yield_block(i);
    printf("%ld finished, %ld left early\n", finished, left_early);
    return 0;
}
