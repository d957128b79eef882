/* Calls under every kind of handler: SA_RESTART, SA_NODEFER, SA_ONSTACK, left by siglongjmp, and
 * contexts of ucontext. All signals are its own and come at known places. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static volatile sig_atomic_t depth, handled;
static sigjmp_buf out;
static ucontext_t here, there;

static void deeper(int signal)
{
    handled++;
    syscall(SYS_getppid);
    if (++depth < 5)
        raise(signal);
    depth--;
}

static void jumps(int signal)
{
    handled++;
    syscall(SYS_getuid);
    siglongjmp(out, signal);
}

static void handle(int signal, void (*handler)(int), int flags)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = flags;
    sigaction(signal, &action, 0);
}

static void coroutine(void)
{
    for (int i = 0; i < 20; i++) {
        syscall(SYS_getgid);
        swapcontext(&there, &here);
    }
}

int main(void)
{
    static char stack[65536], other[65536];
    stack_t alternative = {.ss_sp = other, .ss_size = sizeof other};
    sigaltstack(&alternative, 0);
    handle(SIGUSR1, deeper, SA_NODEFER | SA_RESTART);
    handle(SIGUSR2, deeper, SA_NODEFER | SA_ONSTACK);
    handle(SIGURG, jumps, 0);
    handle(SIGWINCH, jumps, SA_ONSTACK);
    for (int i = 0; i < 20; i++) {
        raise(i % 2 ? SIGUSR1 : SIGUSR2);
        if (sigsetjmp(out, 1) == 0)
            kill(getpid(), i % 2 ? SIGURG : SIGWINCH);
        syscall(SYS_geteuid);
    }
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = sizeof stack;
    there.uc_link = &here;
    makecontext(&there, coroutine, 0);
    for (int i = 0; i < 20; i++)
        swapcontext(&here, &there);
    printf("%d handled\n", (int)handled);
    return 0;
}
