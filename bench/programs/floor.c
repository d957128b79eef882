/* What watching a program's start in-process takes at least: starts a program COUNT times, and does to each what any
   observer that lives inside it must, without counting anything.

   floor LEVEL COUNT PAGES PROGRAM    prints: wall and processor time of one start, ms, programs and this one together

   LEVEL 0  fork, exec, wait
         1  + the program stops at its exec, and is let go
         2  + it is made to map 18 MiB of shared memory, a file of its own, and touches 16 pages of it, which are
              read at its end
         3  + it maps the C library's text privately and writes PAGES pages of it, as who hooks system calls must, once
              its protection lets it; then that is taken back
   What runs in the program (inside()) makes system calls only. It lies in a file that was open over the exec. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SHARED_AT 0x500000000000UL
#define SHARED_SIZE (18UL << 20)
#define TOUCHED 16
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define CODE_FD 900
#define SHARED_FD 901
#define LIBRARY_FD 902

static void must(int fine, const char *what) {
    if (!fine) {
        perror(what);
        exit(1);
    }
}

static inline __attribute__((always_inline)) long call(long n, long a, long b, long c, long d, long e, long f) {
    long result;
    register long r10 asm("r10") = d, r8 asm("r8") = e, r9 asm("r9") = f;
    asm volatile("syscall" : "=a"(result) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
    return result;
}

/* Runs in the program, at the address at which it is mapped there: no table, no library, no word of data. */
__attribute__((section("in_program"), noinline, used, optimize("O2", "no-stack-protector", "no-tree-loop-distribute-patterns")))
static void inside(long level, long pages, long size, long stride) {
    volatile char *shared = (char *)call(SYS_mmap, SHARED_AT, SHARED_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, SHARED_FD, 0);
    for (long i = 0; i < TOUCHED; i++) {
        shared[i * 65536] = 1;
    }
    if (level > 2) {
        volatile char *text = (char *)call(SYS_mmap, 0, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, LIBRARY_FD, 0);
        call(SYS_mprotect, (long)text, size, PROT_READ | PROT_WRITE | PROT_EXEC, 0, 0, 0);
        for (long i = 0; i < pages; i++) {
            call(SYS_madvise, (long)text + i * stride, 4096, MADV_POPULATE_WRITE, 0, 0, 0);
            text[i * stride] = text[i * stride];
        }
        call(SYS_mprotect, (long)text, size, PROT_READ | PROT_EXEC, 0, 0, 0);
    }
    asm volatile("int3");
}
extern char __start_in_program[], __stop_in_program[];

static void memory_file(const char *name, int at) {
    int fd = memfd_create(name, 0);
    must(fd >= 0 && dup2(fd, at) == at, name);
    close(fd);
}

static int library(struct dl_phdr_info *info, size_t size, void *path) {
    (void)size;
    if (strstr(info->dlpi_name, "libc.so")) {
        strcpy(path, info->dlpi_name);
    }
    return 0;
}

static void stopped(pid_t pid) {
    int status;
    must(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status), "the program did not stop");
}

/* Has the program, stopped at its exec, map the code and run it, and puts all back. */
static void work_in(pid_t pid, long level, long pages, long size) {
    struct user_regs_struct before, regs;
    must(ptrace(PTRACE_GETREGS, pid, 0, &before) == 0, "registers");
    long was = ptrace(PTRACE_PEEKTEXT, pid, before.rip, 0);
    /* syscall; call rax; int3 */
    must(ptrace(PTRACE_POKETEXT, pid, before.rip, (was & ~0xffffffffffL) | 0xccd0ff050fL) == 0, "code");
    regs = before;
    regs.rax = SYS_mmap, regs.rdi = 0, regs.rsi = 4096, regs.rdx = PROT_READ | PROT_EXEC, regs.r10 = MAP_SHARED;
    regs.r8 = CODE_FD, regs.r9 = 0, regs.orig_rax = -1, regs.rsp -= 4096;
    must(ptrace(PTRACE_SETREGS, pid, 0, &regs) == 0 && ptrace(PTRACE_SINGLESTEP, pid, 0, 0) == 0, "mmap");
    stopped(pid);
    must(ptrace(PTRACE_GETREGS, pid, 0, &regs) == 0, "registers");
    must(regs.rax < -4096UL, "mapping the code");
    regs.rax += (char *)inside - __start_in_program, regs.rdi = level, regs.rsi = pages, regs.rdx = size, regs.rcx = size / pages & ~4095L;
    regs.orig_rax = -1;
    must(ptrace(PTRACE_SETREGS, pid, 0, &regs) == 0 && ptrace(PTRACE_CONT, pid, 0, 0) == 0, "running the code");
    stopped(pid);
    must(ptrace(PTRACE_POKETEXT, pid, before.rip, was) == 0 && ptrace(PTRACE_SETREGS, pid, 0, &before) == 0, "putting back");
}

static double ms(struct timeval t) { return t.tv_sec * 1e3 + t.tv_usec / 1e3; }

static double used(void) {
    struct rusage own, children;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    return ms(own.ru_utime) + ms(own.ru_stime) + ms(children.ru_utime) + ms(children.ru_stime);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

int main(int argc, char **argv) {
    must(argc == 5, "floor LEVEL COUNT PAGES PROGRAM");
    long level = atol(argv[1]), count = atol(argv[2]), pages = atol(argv[3]);
    must(level >= 0 && level <= 3 && count > 0 && pages > 0, "floor LEVEL COUNT PAGES PROGRAM");
    char path[4096] = "";
    dl_iterate_phdr(library, path);
    int file = open(path, O_RDONLY);
    must(file >= 0 && dup2(file, LIBRARY_FD) == LIBRARY_FD, "the C library");
    close(file);
    long size = lseek(LIBRARY_FD, 0, SEEK_END) & ~4095L;
    memory_file("code", CODE_FD);
    must(write(CODE_FD, __start_in_program, __stop_in_program - __start_in_program) > 0, "code");
    double begun = now(), before = used();
    for (long i = 0; i < count; i++) {
        if (level > 1) {
            memory_file("shared", SHARED_FD);
            must(ftruncate(SHARED_FD, SHARED_SIZE) == 0, "shared memory");
        }
        pid_t pid = fork();
        must(pid >= 0, "fork");
        if (pid == 0) {
            if (level > 0) {
                ptrace(PTRACE_TRACEME, 0, 0, 0);
            }
            char *const words[] = {argv[4], NULL};
            execv(argv[4], words);
            _exit(127);
        }
        if (level > 0) {
            stopped(pid);
            if (level > 1) {
                work_in(pid, level, pages, size);
            }
            must(ptrace(PTRACE_DETACH, pid, 0, 0) == 0, "letting go");
        }
        int status;
        must(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0, argv[4]);
        for (long i = 0; level > 1 && i < TOUCHED; i++) {
            char page[4096];
            must(pread(SHARED_FD, page, sizeof page, i * 65536) == sizeof page && page[0] == 1, "what the program wrote");
        }
    }
    printf("%.4f %.4f\n", (now() - begun) / count, (used() - before) / count);
    return 0;
}
