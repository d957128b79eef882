/* Sets what a program may set of itself, as HOW says, and prints what it then has and can do: prctl(2), personality(2),
 * clone(2), clone3(2), arch_prctl(2), unshare(2) and their neighbours. */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static void *thread(void *unused)
{
    for (int i = 0; i < 100; i++)
        getppid();
    return unused;
}

/* What any program does. */
static void goes_on(void)
{
    for (int i = 0; i < 1000; i++)
        getppid();
    pthread_t t;
    int error = pthread_create(&t, 0, thread, 0);
    if (!error)
        pthread_join(t, 0);
    printf("thread %s, ", strerror(error));
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        getppid();
        _exit(7);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("child %x, ", status);
    fflush(stdout);
    printf("shell %x\n", system("echo shell; ls -d /proc/self/"));
    void *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("code %s\n", code == MAP_FAILED ? strerror(errno) : "mapped");
}

static volatile int caught;
static volatile long which;
static sigjmp_buf back;

static void on_signal(int signal, siginfo_t *info, void *context)
{
    caught = signal;
    which = info->si_code;
    siglongjmp(back, 1);
}

static void catches(int signal)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigaction(signal, &action, 0);
}

#define TRIES(what, ...) \
    do { \
        caught = 0; \
        if (!sigsetjmp(back, 1)) { __VA_ARGS__; } \
        printf(what " %d\n", caught); \
    } while (0)

static const char *of(long result)
{
    return result == -1 ? strerror(errno) : "good";
}

/* Options that are set to a value, and what is told of it. */
static int option(const char *how)
{
    static const struct { const char *name; int option; unsigned long value, value2; int get; } all[] = {
        {"dumpable", PR_SET_DUMPABLE, 0, 0, PR_GET_DUMPABLE},
        {"no_new_privs", PR_SET_NO_NEW_PRIVS, 1, 0, PR_GET_NO_NEW_PRIVS},
        {"mdwe", 65, 1, 0, 66},
        {"mdwe_no_inherit", 65, 3, 0, 66},
        {"thp", PR_SET_THP_DISABLE, 1, 0, PR_GET_THP_DISABLE},
        {"subreaper", PR_SET_CHILD_SUBREAPER, 1, 0, 0},
        {"slack", PR_SET_TIMERSLACK, 1, 0, PR_GET_TIMERSLACK},
        {"pdeathsig", PR_SET_PDEATHSIG, SIGUSR1, 0, 0},
        {"keepcaps", PR_SET_KEEPCAPS, 1, 0, PR_GET_KEEPCAPS},
        {"securebits", PR_SET_SECUREBITS, 0, 0, PR_GET_SECUREBITS},
        {"capbset", PR_CAPBSET_DROP, 7, 0, 0},
        {"ambient", PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0},
        {"speculation", PR_SET_SPECULATION_CTRL, 0, PR_SPEC_DISABLE, 0},
        {"speculation2", PR_SET_SPECULATION_CTRL, 1, PR_SPEC_FORCE_DISABLE, 0},
        {"flusher", PR_SET_IO_FLUSHER, 1, 0, PR_GET_IO_FLUSHER},
        {"core", PR_SCHED_CORE, PR_SCHED_CORE_CREATE, 0, 0},
        {"merge", 67, 1, 0, 68},
        {"mce", PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_EARLY, PR_MCE_KILL_GET},
        {"perf", PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0},
        {"fpemu", PR_SET_FPEMU, 1, 0, 0},
        {"timing", PR_SET_TIMING, 0, 0, PR_GET_TIMING},
        {"endian", PR_SET_ENDIAN, 0, 0, 0},
        {"tagged", PR_SET_TAGGED_ADDR_CTRL, 1, 0, 0},
        {"ptracer", PR_SET_PTRACER, 1, 0, 0},
        {"unknown", 4711, 1, 2, 0},
    };
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(how, all[i].name)) {
            printf("%s: %s", how, of(prctl(all[i].option, all[i].value, all[i].value2, 0, 0)));
            if (all[i].get)
                printf(", is %d", prctl(all[i].get, 0, 0, 0, 0));
            puts("");
            goes_on();
            return 0;
        }
    return 2;
}

static int time_stamps(const char *how)
{
    catches(SIGSEGV);
    prctl(PR_SET_TSC, strcmp(how, "kept") ? PR_TSC_SIGSEGV : PR_TSC_ENABLE, 0, 0, 0);
    TRIES("clock", __builtin_ia32_rdtsc());
    prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0);
    TRIES("clock again", __builtin_ia32_rdtsc());
    goes_on();
    return 0;
}

static int names(void)
{
    char name[32] = "";
    prctl(PR_SET_NAME, "a very long name of it", 0, 0, 0);
    prctl(PR_GET_NAME, name, 0, 0, 0);
    puts(name);
    void *at = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("vma %s\n", of(prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, at, 8192, "mine")));
    goes_on();
    return 0;
}

static int limits_of_memory(void)
{
    unsigned long heap = (unsigned long)sbrk(0);
    printf("brk %s\n", of(prctl(PR_SET_MM, PR_SET_MM_BRK, heap, 0, 0)));
    printf("arg %s\n", of(prctl(PR_SET_MM, PR_SET_MM_ARG_START, heap - 4096, 0, 0)));
    printf("code %s\n", of(prctl(PR_SET_MM, PR_SET_MM_START_CODE, 0x1000, 0, 0)));
    int self = open("/bin/true", O_RDONLY);
    printf("exe %s\n", of(prctl(PR_SET_MM, PR_SET_MM_EXE_FILE, self, 0, 0)));
    int size = 0;
    printf("map size %s", of(prctl(PR_SET_MM, PR_SET_MM_MAP_SIZE, &size, 0, 0)));
    printf(" %d\n", size);
    goes_on();
    return 0;
}

/* System calls are sent to the program but for those made in RANGE: none, the C library's, or this program's. */
static volatile char selector;
static volatile int sent, sent_numbers[64];
static void on_dispatch(int signal, siginfo_t *info, void *context)
{
    selector = 0;
    if (sent < 64)
        sent_numbers[sent] = info->si_syscall;
    sent++;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = 4242;
}

static void *calls_too(void *unused)
{
    for (int i = 0; i < 2000; i++)
        getppid();
    return unused;
}

static int dispatch(const char *how)
{
    struct sigaction action = {.sa_sigaction = on_dispatch, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &action, 0);
    pthread_t t[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], 0, calls_too, 0);
    unsigned long start = 0, len = 0;
    if (!strcmp(how, "range")) {
        start = (unsigned long)&dispatch & ~4095ul;
        len = 4096;
    }
    long set = strcmp(how, "number") ? prctl(59, 1, start, len, &selector) : syscall(SYS_prctl, 59, 1, start, len, &selector);
    printf("set %s\n", of(set));
    int wrong = 0, alien = 0;
    for (int i = 0; i < 50; i++) {
        selector = 1;
        long result = syscall(SYS_getuid + i % 3);
        selector = 0;
        wrong += result != 4242;
        char path[] = "/etc";
        selector = 1;
        result = open(path, O_RDONLY);
        selector = 0;
        wrong += result != 4242;
    }
    for (int i = 0; i < 64 && i < sent; i++)
        alien += sent_numbers[i] != SYS_openat && (sent_numbers[i] < SYS_getuid || sent_numbers[i] > SYS_getuid + 2);
    printf("sent %d, wrong %d, alien %d\n", sent, wrong, alien);
    printf("off %s\n", of(prctl(59, 0, 0, 0, 0)));
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], 0);
    goes_on();
    return 0;
}

static int person(const char *how)
{
    static const struct { const char *name; unsigned long flags; } all[] = {
        {"plain", 0}, {"norandom", ADDR_NO_RANDOMIZE}, {"exec", READ_IMPLIES_EXEC}, {"compat", ADDR_COMPAT_LAYOUT},
        {"zero", MMAP_PAGE_ZERO}, {"linux32", PER_LINUX32}, {"3gb", ADDR_LIMIT_3GB}, {"32bit", ADDR_LIMIT_32BIT},
        {"short", SHORT_INODE}, {"whole", WHOLE_SECONDS}, {"sticky", STICKY_TIMEOUTS}, {"uname26", UNAME26},
        {"svr4", PER_SVR4}, {"fdpic", FDPIC_FUNCPTRS},
    };
    if (!strcmp(how, "again")) {
        struct utsname u;
        uname(&u);
        void *low = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char line[256], seen[8] = "";
        FILE *maps = fopen("/proc/self/maps", "r");
        while (maps && fgets(line, sizeof line, maps)) {
            unsigned long start = 0;
            char perms[8];
            sscanf(line, "%lx-%*x %7s", &start, perms);
            if (start == (unsigned long)low)
                strcpy(seen, perms);
        }
        printf("%lx %s %.1s %s %s\n", (long)personality(~0u), u.machine, u.release, (unsigned long)low < 1ul << 46 ? "low" : "high", seen);
        goes_on();
        return 0;
    }
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(how, all[i].name)) {
            printf("%s\n", of(personality(all[i].flags)));
            void *page = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            printf("%s\n", page == MAP_FAILED ? "no" : "mapped");
            goes_on();
            fflush(stdout);
            execl("/proc/self/exe", "own_settings", "person", "again", (char *)0);
        }
    return 2;
}

static char stack[4][65536] __attribute__((aligned(16)));
static volatile int shared;
static int made_pid;

static int made(void *arg)
{
    for (int i = 0; i < 50; i++)
        getppid();
    shared += 1;
    char text[32];
    int n = snprintf(text, sizeof text, "made %d\n", (int)(long)arg);
    write(1, text, n);
    return 5;
}

static int clones(const char *how)
{
    static const struct { const char *name; unsigned long flags; } all[] = {
        {"none", SIGCHLD}, {"vm", CLONE_VM | SIGCHLD}, {"vfork", CLONE_VM | CLONE_VFORK | SIGCHLD}, {"vforkonly", CLONE_VFORK | SIGCHLD},
        {"files", CLONE_FILES | SIGCHLD}, {"fs", CLONE_FS | SIGCHLD}, {"sighand", CLONE_VM | CLONE_SIGHAND | SIGCHLD},
        {"nosignal", 0}, {"usr1", SIGUSR1}, {"io", CLONE_IO | SIGCHLD}, {"sysvsem", CLONE_SYSVSEM | SIGCHLD},
        {"untraced", CLONE_UNTRACED | SIGCHLD}, {"ptrace", CLONE_PTRACE | SIGCHLD},
        {"parent", CLONE_PARENT | SIGCHLD}, {"parentsettid", CLONE_PARENT_SETTID | SIGCHLD},
        {"childsettid", CLONE_CHILD_SETTID | SIGCHLD}, {"cleartid", CLONE_VM | CLONE_CHILD_CLEARTID | SIGCHLD},
        {"pidfd", CLONE_PIDFD | SIGCHLD}, {"newns", CLONE_NEWNS | SIGCHLD}, {"newpid", CLONE_NEWPID | SIGCHLD},
        {"newuser", CLONE_NEWUSER | SIGCHLD}, {"newuts", CLONE_NEWUTS | SIGCHLD}, {"newipc", CLONE_NEWIPC | SIGCHLD},
        {"newnet", CLONE_NEWNET | SIGCHLD}, {"newcgroup", CLONE_NEWCGROUP | SIGCHLD},
        {"all", CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_IO | CLONE_SYSVSEM | SIGCHLD},
        {"bad", CLONE_SIGHAND | SIGCHLD}, {"badthread", CLONE_THREAD | SIGCHLD}, {"badns", CLONE_NEWNS | CLONE_FS | SIGCHLD},
    };
    signal(SIGUSR1, SIG_IGN);
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(how, all[i].name)) {
            pid_t tid = 0, tid2 = 0;
            fflush(stdout);
            pid_t child = clone(made, stack[0] + sizeof stack[0], all[i].flags, (void *)(long)(i + 1), &tid, 0, &tid2);
            if (child < 0) {
                printf("%s\n", strerror(errno));
            } else {
                int status = 0;
                usleep(!strcmp(how, "parent") ? 100000 : 0);
                pid_t ended = waitpid(child, &status, __WALL);
                printf("%s %x shared %d tid %d\n", ended == child ? "ended" : strerror(errno), status, shared, tid > 0);
            }
            goes_on();
            return 0;
        }
    return 2;
}

struct arguments3 { uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup; };

static int clones3(const char *how)
{
    struct arguments3 a = {.exit_signal = SIGCHLD};
    size_t size = sizeof a;
    pid_t tids[1] = {0};
    int pidfd = -1;
    if (!strcmp(how, "plain"))
        ;
    else if (!strcmp(how, "short"))
        size = 64;
    else if (!strcmp(how, "tiny"))
        size = 8;
    else if (!strcmp(how, "clear"))
        a.flags = 0x100000000ull;
    else if (!strcmp(how, "pidfd"))
        a.flags = CLONE_PIDFD, a.pidfd = (uint64_t)&pidfd;
    else if (!strcmp(how, "settid"))
        tids[0] = 30000, a.set_tid = (uint64_t)tids, a.set_tid_size = 1;
    else if (!strcmp(how, "cgroup"))
        a.flags = 0x200000000ull, a.cgroup = open("/sys/fs/cgroup", O_RDONLY | O_DIRECTORY);
    else if (!strcmp(how, "badcgroup"))
        a.flags = 0x200000000ull, a.cgroup = 999;
    else if (!strcmp(how, "nosignal"))
        a.exit_signal = 0;
    else if (!strcmp(how, "vfork"))
        a.flags = CLONE_VFORK;
    else if (!strcmp(how, "newtime"))
        a.flags = 0x80;
    else if (!strcmp(how, "fault"))
        return printf("%s\n", of(syscall(SYS_clone3, 8, size))), goes_on(), 0;
    else
        return 2;
    catches(SIGUSR2);
    fflush(stdout);
    long child = syscall(SYS_clone3, &a, size);
    if (!child) {
        struct sigaction now;
        sigaction(SIGUSR2, 0, &now);
        for (int i = 0; i < 50; i++)
            getppid();
        _exit(now.sa_handler == SIG_DFL ? 9 : 8);
    }
    if (child < 0)
        printf("%s\n", strerror(errno));
    else {
        int status = 0;
        pid_t ended = waitpid(child, &status, __WALL);
        printf("%s %x %d %d\n", ended == child ? "ended" : strerror(errno), status, pidfd >= 0, tids[0] == child);
    }
    goes_on();
    return 0;
}

static int unshares(const char *how)
{
    static const struct { const char *name; int flags; } all[] = {
        {"files", CLONE_FILES}, {"fs", CLONE_FS}, {"sysvsem", CLONE_SYSVSEM}, {"ns", CLONE_NEWNS}, {"uts", CLONE_NEWUTS},
        {"ipc", CLONE_NEWIPC}, {"net", CLONE_NEWNET}, {"pid", CLONE_NEWPID}, {"user", CLONE_NEWUSER}, {"cgroup", CLONE_NEWCGROUP},
        {"time", 0x80}, {"thread", CLONE_THREAD}, {"bad", 1},
    };
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(how, all[i].name)) {
            printf("%s\n", of(unshare(all[i].flags)));
            goes_on();
            return 0;
        }
    return 2;
}

static int arch(const char *how)
{
    unsigned long word = 0;
    static unsigned long block[16] = {0x1234};
    catches(SIGSEGV);
    if (!strcmp(how, "gs")) {
        printf("%s\n", of(syscall(SYS_arch_prctl, ARCH_SET_GS, block)));
        __asm__ volatile("mov %%gs:0, %0" : "=r"(word));
        printf("%lx\n", word);
    } else if (!strcmp(how, "getgs")) {
        printf("%s %s\n", of(syscall(SYS_arch_prctl, ARCH_GET_GS, &word)), word ? "set" : "zero");
    } else if (!strcmp(how, "getfs")) {
        printf("%s %d\n", of(syscall(SYS_arch_prctl, ARCH_GET_FS, &word)), word == (unsigned long)pthread_self());
    } else if (!strcmp(how, "cpuid")) {
        printf("%s\n", of(syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0)));
        unsigned a = 0, b, c, d;
        TRIES("cpuid", __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "=c"(c), "=d"(d)));
        syscall(SYS_arch_prctl, ARCH_SET_CPUID, 1);
    } else if (!strcmp(how, "shstk")) {
        printf("%s\n", of(syscall(SYS_arch_prctl, 0x5001, 1)));
        printf("%s\n", of(syscall(SYS_arch_prctl, 0x5003, 1)));
    } else if (!strcmp(how, "tagged")) {
        printf("%s\n", of(syscall(SYS_arch_prctl, 0x4004, 0)));
        printf("%s\n", of(syscall(SYS_arch_prctl, 0x4002, 6)));
    } else if (!strcmp(how, "xcomp")) {
        printf("%s %d\n", of(syscall(SYS_arch_prctl, 0x1022, &word)), word != 0);
    } else if (!strcmp(how, "ldt")) {
        unsigned entry[4] = {0, 0, 0xfffff, 0x51};
        printf("%s\n", of(syscall(SYS_modify_ldt, 1, entry, sizeof entry)));
    } else if (!strcmp(how, "iopl")) {
        printf("%s\n", of(syscall(SYS_iopl, 0)));
        printf("%s\n", of(syscall(SYS_ioperm, 0x80, 1, 0)));
    } else
        return 2;
    goes_on();
    return 0;
}

static int keys(const char *unused)
{
    (void)unused;
    catches(SIGSEGV);
    int key = pkey_alloc(0, 0);
    printf("key %s\n", key >= 0 ? "had" : strerror(errno));
    if (key >= 0) {
        char *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        pkey_mprotect(page, 4096, PROT_READ | PROT_WRITE, key);
        pkey_set(key, PKEY_DISABLE_ACCESS);
        TRIES("page", page[0] = 1);
    }
    goes_on();
    return 0;
}

static int odds(const char *how)
{
    if (!strcmp(how, "membarrier")) {
        for (int i = 0; i < 10; i++)
            printf("%d %s\n", i, of(syscall(SYS_membarrier, i ? 1 << (i - 1) : 0, 0, 0)) );
    } else if (!strcmp(how, "robust")) {
        static struct robust_list_head head = {{&head.list}, 0, 0};
        printf("%s\n", of(syscall(SYS_set_robust_list, &head, sizeof head)));
        printf("%s\n", of(syscall(SYS_set_robust_list, &head, 1)));
        void *got = 0;
        size_t len = 0;
        printf("%s %d\n", of(syscall(SYS_get_robust_list, 0, &got, &len)), got == &head);
    } else if (!strcmp(how, "rseq")) {
        static char area[32] __attribute__((aligned(32)));
        printf("%s\n", of(syscall(SYS_rseq, area, 32, 0, 0x53053053)));
        printf("%s\n", of(syscall(SYS_rseq, area, 32, 1, 0x53053053)));
    } else if (!strcmp(how, "cleartid")) {
        static int word = 7;
        printf("%d\n", syscall(SYS_set_tid_address, &word) == getpid());
    } else if (!strcmp(how, "uring")) {
        char params[120] = "";
        long fd = syscall(SYS_io_uring_setup, 8, params);
        printf("%s\n", of(fd));
        if (fd >= 0) {
            char *ring = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
            printf("%s %s\n", ring == MAP_FAILED ? "no" : "mapped", of(syscall(SYS_io_uring_enter, fd, 0, 0, 0, 0, 0)));
        }
    } else if (!strcmp(how, "keyring")) {
        printf("%s\n", of(syscall(SYS_keyctl, 0, -3, 1)) );
    } else if (!strcmp(how, "altstack")) {
        static char alt[65536];
        stack_t s = {.ss_sp = alt, .ss_size = sizeof alt};
        printf("%s\n", of(sigaltstack(&s, 0)));
        struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
        sigaction(SIGUSR1, &action, 0);
        TRIES("raised", raise(SIGUSR1));
    } else if (!strcmp(how, "brk")) {
        for (int i = 0; i < 8; i++)
            printf("%s\n", sbrk(64 << 20) == (void *)-1 ? "no" : "grown");
    } else if (!strcmp(how, "stack")) {
        struct rlimit r;
        getrlimit(RLIMIT_STACK, &r);
        printf("%lu\n", (unsigned long)r.rlim_cur);
        volatile char deep[4 << 20];
        for (unsigned i = 0; i < sizeof deep; i += 4096)
            deep[i] = 1;
        puts("deep");
    } else if (!strcmp(how, "growsdown")) {
        char *at = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_STACK, -1, 0);
        printf("%s\n", at == MAP_FAILED ? "no" : "mapped");
    } else if (!strcmp(how, "low")) {
        char *at = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
        printf("%s %d\n", at == MAP_FAILED ? "no" : "mapped", (unsigned long)at < 1ul << 32);
        at = mmap((void *)0x10000, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        printf("%s\n", of((long)at));
    } else if (!strcmp(how, "huge")) {
        char *at = mmap(0, 1ul << 45, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        printf("%s\n", at == MAP_FAILED ? strerror(errno) : "mapped");
    } else if (!strcmp(how, "seal")) {
        char *at = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        printf("%s\n", of(syscall(462, at, 4096, 0)));
        printf("%s\n", of(mprotect(at, 4096, PROT_NONE)));
    } else if (!strcmp(how, "sched")) {
        struct sched_param p = {0};
        printf("%s\n", of(sched_setscheduler(0, SCHED_IDLE, &p)));
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(0, &one);
        printf("%s\n", of(sched_setaffinity(0, sizeof one, &one)));
    } else if (!strcmp(how, "vhangup")) {
        printf("%s\n", of(syscall(SYS_setsid)));
        printf("%s\n", of(setpgid(0, 0)));
    } else
        return 2;
    goes_on();
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "", *how = argc > 2 ? argv[2] : "";
    setvbuf(stdout, 0, _IOLBF, 4096);
    static const struct { const char *name; int (*run)(const char *); } all[] = {
        {"option", option}, {"clock", time_stamps}, {"dispatch", dispatch}, {"person", person}, {"clone", clones}, {"clone3", clones3},
        {"unshare", unshares}, {"arch", arch}, {"keys", keys}, {"odd", odds},
    };
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(what, all[i].name))
            return all[i].run(how);
    if (!strcmp(what, "names"))
        return names();
    if (!strcmp(what, "mm"))
        return limits_of_memory();
    return 2;
}
