/* All that programs do with contexts, said in lines: with glibc's functions and with others that
 * stand for them the lines must be the same. contexts PART...; each part is a function below. */
#include <cfenv>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <execinfo.h>
#include <pthread.h>
#include <stdexcept>
#include <ucontext.h>
#include <unistd.h>

static const size_t STACK = 128 * 1024;

struct Routine {
    ucontext_t own, *back;
    char *stack;
    explicit Routine(ucontext_t *link) : back(link), stack((char *)aligned_alloc(64, STACK)) {
        getcontext(&own);
        own.uc_stack.ss_sp = stack;
        own.uc_stack.ss_size = STACK;
        own.uc_link = link;
    }
    ~Routine() { free(stack); }
};

/* Arguments: none to eight, whole words, odd sizes of stack. */
static void none() { printf("none\n"); }
static void one(int a) { printf("%d\n", a); }
static void two(int a, int b) { printf("%d %d\n", a, b); }
static void three(int a, int b, int c) { printf("%d %d %d\n", a, b, c); }
static void six(int a, int b, int c, int d, int e, int f) { printf("%d %d %d %d %d %d\n", a, b, c, d, e, f); }
static void seven(int a, int b, int c, int d, int e, int f, int g) { printf("%d %d %d %d %d %d %d\n", a, b, c, d, e, f, g); }
static void eight(int a, int b, int c, int d, int e, int f, int g, int h)
{
    long double aligned = a; /* a function's stack is aligned, or this faults */
    volatile long double *p = &aligned;
    printf("%d %d %d %d %d %d %d %d, aligned %d\n", a, b, c, d, e, f, g, h, (int)((uintptr_t)p % 16));
}
static void words(void *a, long b) { printf("%p %ld\n", a, b); }

static void arguments()
{
    typedef void (*F)();
    ucontext_t here;
    for (size_t shift = 0; shift < 16; shift += 5)
        for (int n = 0; n <= 8; n++) {
            Routine r(&here);
            r.own.uc_stack.ss_size -= shift;
            switch (n) {
            case 0: makecontext(&r.own, none, 0); break;
            case 1: makecontext(&r.own, (F)one, 1, -1); break;
            case 2: makecontext(&r.own, (F)two, 2, 1, 2); break;
            case 3: makecontext(&r.own, (F)three, 3, 1, 2, 3); break;
            case 4: makecontext(&r.own, (F)words, 2, (void *)0x123456789abcul, -5l); break;
            case 5: makecontext(&r.own, (F)one, -1, 7); break;
            case 6: makecontext(&r.own, (F)six, 6, 1, 2, 3, 4, 5, 6); break;
            case 7: makecontext(&r.own, (F)seven, 7, 1, 2, 3, 4, 5, 6, 7); break;
            case 8: makecontext(&r.own, (F)eight, 8, 1, 2, 3, 4, 5, 6, 7, -8); break;
            }
            if (n != 5)
                printf("%d ", swapcontext(&here, &r.own));
        }
}

/* Each of ten contexts enters the next and comes back by uc_link. */
static ucontext_t levels[11];
static void level(int n)
{
    if (n < 10) {
        Routine next(&levels[n]);
        makecontext(&next.own, (void (*)())level, 1, n + 1);
        swapcontext(&levels[n], &next.own);
    }
    printf("level %d, backtrace of %s\n", n, [] { void *f[64]; int k = backtrace(f, 64); return k < 8 ? "a few" : "many"; }());
}
static void nested() { level(0); }

/* Registers that a callee keeps, held against being lost. */
static ucontext_t here, there;
static void other()
{
    for (;;) {
        asm volatile("xor %%ebx,%%ebx; xor %%r12d,%%r12d; xor %%r13d,%%r13d; xor %%r14d,%%r14d; xor %%r15d,%%r15d"
                     ::: "rbx", "r12", "r13", "r14", "r15");
        swapcontext(&there, &here);
    }
}
long kept[6];
static void registers()
{
    Routine r(nullptr);
    makecontext(&r.own, other, 0);
    there = r.own;
    there.uc_mcontext.fpregs = (fpregset_t)&there.__fpregs_mem;
    for (int i = 0; i < 3; i++) {
        asm volatile("push %%rbp; mov %%rsp,%%rbp; and $-16,%%rsp\n"
                     "mov $11,%%rbx; mov $12,%%r12; mov $13,%%r13; mov $14,%%r14; mov $15,%%r15\n"
                     "mov %0,%%rdi; mov %1,%%rsi; call swapcontext@plt\n"
                     "mov %%rbx,%2; mov %%r12,8+%2; mov %%r13,16+%2; mov %%r14,24+%2; mov %%r15,32+%2\n"
                     "cltq; mov %%rax,40+%2; mov %%rbp,%%rsp; pop %%rbp"
                     :: "i"(&here), "i"(&there), "m"(kept)
                     : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
                       "memory", "cc");
        printf("%ld %ld %ld %ld %ld, %ld\n", kept[0], kept[1], kept[2], kept[3], kept[4], kept[5]);
    }
}

/* Rounding and exceptions raised belong to a context: control words of both units, x87's status. */
static double third(double n) { volatile double x = n; return 1 / x; }
static int x87_status() { unsigned short s; asm volatile("fnstsw %0" : "=a"(s)); return s & 0x3f; }
static void rounding(int mode)
{
    fesetround(mode);
    printf("  %a %La %d\n", third(3), (long double)1 / third(7), fegetround());
    volatile long double zero = 0, inf = 1 / zero;
    printf("  raised %d %Lf\n", x87_status() != 0, inf);
    swapcontext(&there, &here);
    printf("  %a %La %d\n", third(3), (long double)1 / third(7), fegetround());
}
static void floating()
{
    for (int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST}) {
        feclearexcept(FE_ALL_EXCEPT);
        Routine r(&here);
        makecontext(&r.own, (void (*)())rounding, 1, mode);
        swapcontext(&here, &r.own);
        printf("%a %d, raised %d\n", third(3), fegetround(), x87_status());
        swapcontext(&here, &there);
        printf("%a %d, raised %d\n", third(3), fegetround(), x87_status());
    }
}

/* Exceptions thrown and caught on a context's stack, and carried to another. */
static std::exception_ptr carried;
static void throws(int n)
{
    try {
        try {
            throw std::runtime_error("inner");
        } catch (std::exception &e) {
            printf("%s %d\n", e.what(), n);
            swapcontext(&there, &here);
            throw;
        }
    } catch (...) {
        carried = std::current_exception();
    }
}
static void exceptions()
{
    Routine r(&here);
    makecontext(&r.own, (void (*)())throws, 1, 5);
    swapcontext(&here, &r.own);
    swapcontext(&here, &there);
    try {
        std::rethrow_exception(carried);
    } catch (std::runtime_error &e) {
        printf("carried: %s\n", e.what());
    }
}
static void throws_for_good() { throw 1; }
static void uncaught()
{
    fflush(stdout);
    Routine r(&here);
    makecontext(&r.own, throws_for_good, 0);
    swapcontext(&here, &r.own);
}

/* Out of a context's function by longjmp, and back into where getcontext was called. */
static jmp_buf out;
static void leaves(int n) { longjmp(out, n); }
static void jumps()
{
    for (volatile int i = 1; i < 4; i++) {
        Routine r(&here);
        makecontext(&r.own, (void (*)())leaves, 1, (int)i);
        int came = _setjmp(out);
        if (!came)
            swapcontext(&here, &r.own);
        printf("jumped %d\n", came);
    }
    volatile int rounds = 0;
    ucontext_t again;
    printf("get %d\n", getcontext(&again));
    if (++rounds < 4)
        setcontext(&again);
    printf("%d rounds\n", rounds);
}

/* Contexts of several threads, and one that goes on in another thread. */
static ucontext_t main_here, in_thread, *wandering;
static __thread ucontext_t thread_here;
static void counts(long *sum, long n, ucontext_t *back, ucontext_t *self)
{
    for (long i = 0; i < n; i++) {
        *sum += i;
        if (i % 2)
            swapcontext(self, back);
    }
}
static void *worker(void *)
{
    long sum = 0;
    for (int i = 0; i < 50; i++) {
        Routine r(&thread_here);
        makecontext(&r.own, (void (*)())counts, 4, &sum, 40l, &thread_here, &r.own);
        for (int k = 0; k < 21; k++)
            swapcontext(&thread_here, &r.own);
    }
    return (void *)sum;
}
static void wanders(long n)
{
    printf("first %ld\n", n);
    swapcontext(wandering, &in_thread);
    printf("then %ld\n", n);
}
static void *begins(void *) { swapcontext(&in_thread, wandering); return nullptr; }
static void threads()
{
    pthread_t t[4];
    for (auto &thread : t)
        pthread_create(&thread, nullptr, worker, nullptr);
    for (auto &thread : t) {
        void *sum;
        pthread_join(thread, &sum);
        printf("sum %ld\n", (long)sum);
    }
    Routine r(&main_here);
    wandering = &r.own;
    makecontext(&r.own, (void (*)())wanders, 1, 9l);
    pthread_create(&t[0], nullptr, begins, nullptr);
    pthread_join(t[0], nullptr);
    swapcontext(&main_here, &r.own);
    printf("back\n");
}

/* The signal mask: what must be as without us whoever stands for glibc. */
static void show(const char *what)
{
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, nullptr, &now);
    printf("%s: USR1 %d USR2 %d\n", what, sigismember(&now, SIGUSR1), sigismember(&now, SIGUSR2));
}
static void shows() { show("in its own mask"); swapcontext(&there, &here); show("again"); }
static void own_mask()
{
    Routine r(&here);
    sigaddset(&r.own.uc_sigmask, SIGUSR2);
    makecontext(&r.own, shows, 0);
    show("before");
    swapcontext(&here, &r.own);
    show("outside");
    swapcontext(&here, &there);
    show("after");
}
static void saved_mask()
{
    sigset_t set;
    sigemptyset(&set), sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    show("blocked");
    ucontext_t c;
    volatile int first = 1;
    getcontext(&c);
    show("saved");
    if (first) {
        first = 0;
        setcontext(&c);
    }
}
/* Not so where the mask changes between two switches: this is what the cure gives up. */
static void blocks() { sigset_t s; sigemptyset(&s), sigaddset(&s, SIGUSR1); pthread_sigmask(SIG_BLOCK, &s, nullptr); }
static void changed_mask()
{
    Routine r(&here);
    makecontext(&r.own, blocks, 0);
    swapcontext(&here, &r.own);
    show("given up");
}
/* As do threads that a timer's handler switches between. */
static void switches(int) { swapcontext(&there, &here); }
static void interrupted() { raise(SIGUSR1); printf("on again\n"); }
static void from_handler()
{
    signal(SIGUSR1, switches);
    Routine r(&here);
    makecontext(&r.own, interrupted, 0);
    swapcontext(&here, &r.own);
    show("away from a handler");
    swapcontext(&here, &there);
    show("back");
}
static void ends() { printf("the end\n"); }
static void last()
{
    Routine r(nullptr);
    makecontext(&r.own, ends, 0);
    setcontext(&r.own);
}
static void spins()
{
    for (int i = 0; i < 5000; i++)
        swapcontext(&there, &here);
}
static void many()
{
    Routine r(&here);
    makecontext(&r.own, spins, 0);
    there = r.own;
    there.uc_mcontext.fpregs = (fpregset_t)&there.__fpregs_mem;
    for (int i = 0; i < 5000; i++)
        swapcontext(&here, &there);
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*run)(); } parts[] = {
        {"arguments", arguments}, {"nested", nested}, {"registers", registers}, {"floating", floating},
        {"exceptions", exceptions}, {"uncaught", uncaught}, {"jumps", jumps}, {"threads", threads},
        {"own_mask", own_mask}, {"saved_mask", saved_mask}, {"changed_mask", changed_mask}, {"from_handler", from_handler}, {"last", last},
        {"many", many},
    };
    for (int i = 1; i < argc; i++)
        for (auto &part : parts)
            if (!strcmp(part.name, argv[i])) {
                printf("-- %s\n", part.name);
                part.run();
            }
    return 3;
}
