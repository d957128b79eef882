/* What rewriters of system calls are known to get wrong (K23, Middleware 2025). It does what lines on standard input say:
 *   bare N    this program anew, without environment: N calls of getppid there              done
 *   made N    N calls of getppid by code that was just made                                 done
 *   data      looks whether bytes of a `syscall` that are none are as they were             fine, or what has changed
 *   null      calls address 0 and looks whether that is the fault that it was               fine, or what came instead
 *   pages     looks whether code can be written                                             fine, or the mapping
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

/* A constant whose bytes are those of a `syscall`, and data among code that hold them too: as they would be in a wrapper,
 * then alone. Only their symbol tells that they are data. */
__asm__(".text\n.globl in_constant\nin_constant:\n\tmov $0x050f050f, %eax\n\tadd $0x11050f11, %eax\n\tret\n"
        ".globl among_code\n.type among_code, @object\n.size among_code, 16\namong_code:\n\t.byte 0xb8, 0x27, 0, 0, 0, 0x0f, 0x05, 0xc3, 0x0f, 0x05, 0x0f, 0x05, 0x90, 0x0f, 0x05, 0xc3\n");
extern unsigned in_constant(void);
extern const unsigned char among_code[16];

static sigjmp_buf back;
static uintptr_t fault_at, fault_ip;

static void on_fault(int signal, siginfo_t *info, void *context) {
    (void)signal;
    fault_at = (uintptr_t)info->si_addr;
    fault_ip = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    siglongjmp(back, 1);
}

static void null(void) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    void (*volatile nowhere)(void) = NULL;
    if (!sigsetjmp(back, 1)) {
        nowhere();
        puts("address 0 could be called");
    } else if (fault_at || fault_ip) {
        printf("a fault at %lx, by code at %lx\n", (long)fault_at, (long)fault_ip);
    } else {
        puts("fine");
    }
}

static void data(void) {
    static const unsigned char was[16] = {0xb8, 0x27, 0, 0, 0, 0x0f, 0x05, 0xc3, 0x0f, 0x05, 0x0f, 0x05, 0x90, 0x0f, 0x05, 0xc3};
    unsigned constant = in_constant();
    if (constant != 0x050f050fu + 0x11050f11u) printf("a constant became %x\n", constant);
    else if (memcmp(among_code, was, sizeof was)) puts("data among code has changed");
    else puts("fine");
}

static void pages(void) {
    char line[600], rights[8];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        // The path may hold these letters, too.
        if (sscanf(line, "%*s %7s", rights) == 1 && strstr(rights, "wx")) { fputs(line, stdout); fclose(maps); return; }
    if (maps) fclose(maps);
    puts("fine");
}

static void made(int n) {
    static const unsigned char code[] = {0xb8, SYS_getppid, 0, 0, 0, 0x0f, 0x05, 0xc3};
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, code, sizeof code);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    while (n--) ((void (*)(void))page)();
    munmap(page, 4096);
    puts("done");
}

int main(int argc, char **argv) {
    if (argc > 1) {
        for (int n = atoi(argv[1]); n > 0; n--) syscall(SYS_getppid);
        return 0;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    char line[100];
    while (fgets(line, sizeof line, stdin)) {
        int n = 0;
        if (sscanf(line, "bare %d", &n) == 1) {
            char count[12];
            snprintf(count, sizeof count, "%d", n);
            if (!fork()) {
                execve("/proc/self/exe", (char *[]){argv[0], count, NULL}, (char *[]){NULL});
                _exit(1);
            }
            wait(NULL);
            puts("done");
        } else if (sscanf(line, "made %d", &n) == 1) made(n);
        else if (!strcmp(line, "data\n")) data();
        else if (!strcmp(line, "null\n")) null();
        else if (!strcmp(line, "pages\n")) pages();
        else puts("what?");
    }
    return 0;
}
