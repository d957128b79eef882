/* Makes calls of getpid by code that is in no file. The first argument says where the code lies:
 *   copy      a copy of libc's own code, moved over it
 *   private   a private page          shared   a shared page without a file
 *   deleted   a file that is gone     memfd    a file in memory
 *   any       a private page with a function that makes any call, as libc's `syscall` does
 *   patched   libc's own code, of which getppid was changed: it is a jump to a page that makes the call
 * The page is there before "ready" is written. Each line on standard input is a number of calls to make. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static uintptr_t low, high;

static int find_libc(struct dl_phdr_info *info, size_t size, void *data) {
    if (!strstr(info->dlpi_name, "libc.so")) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
            low = (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr) & ~4095ul;
            high = (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz + 4095) & ~4095ul;
        }
    return 0;
}

/* mov $39,%eax; syscall; ret */
static const unsigned char own[] = {0xb8, 39, 0, 0, 0, 0x0f, 5, 0xc3};
/* mov %rdi,%rax; syscall; ret */
static const unsigned char any[] = {0x48, 0x89, 0xf8, 0x0f, 5, 0xc3, 0xc3, 0xc3};
/* push $110; pop %rax; syscall; ret: nothing before the `syscall` looks like a number that is loaded */
static const unsigned char parent[] = {0x6a, 110, 0x58, 0x0f, 5, 0xc3, 0xc3, 0xc3};

int main(int argc, char **argv) {
    const char *where = argv[1];
    const unsigned char *code = !strcmp(where, "any") ? any : !strcmp(where, "patched") ? parent : own;
    long (*call)(long) = NULL;
    int fd = -1, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    if (!strcmp(where, "copy")) {
        dl_iterate_phdr(find_libc, NULL);
        char *copy = mmap(NULL, high - low, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memcpy(copy, (void *)low, high - low);
        mprotect(copy, high - low, PROT_READ | PROT_EXEC);
        syscall(SYS_mremap, copy, high - low, high - low, MREMAP_MAYMOVE | MREMAP_FIXED, low);
    } else {
        if (!strcmp(where, "shared")) flags = MAP_SHARED | MAP_ANONYMOUS;
        if (!strcmp(where, "deleted")) {
            fd = open("code", O_RDWR | O_CREAT, 0700);
            flags = MAP_PRIVATE;
            unlink("code");
        }
        if (!strcmp(where, "memfd")) {
            fd = memfd_create("code", 0);
            flags = MAP_SHARED;
        }
        if (fd >= 0 && ftruncate(fd, 4096)) return 1;
        char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags, fd, 0);
        memcpy(page, code, 8);
        mprotect(page, 4096, PROT_READ | PROT_EXEC);
        call = (long (*)(long))page;
        if (!strcmp(where, "patched")) {
            unsigned char *at = (unsigned char *)getppid, jump[12] = {0x48, 0xb8, [10] = 0xff, 0xe0};
            uintptr_t from = (uintptr_t)at & ~4095ul;
            memcpy(jump + 2, &page, 8);
            mprotect((void *)from, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
            memcpy(at, jump, sizeof jump);
            mprotect((void *)from, 8192, PROT_READ | PROT_EXEC);
            call = NULL;
        }
    }
    puts("ready");
    fflush(stdout);
    long count;
    while (scanf("%ld", &count) == 1) {
        for (long i = 0; i < count; i++) {
            if (call) call(SYS_getpid);
            else if (!strcmp(where, "patched")) getppid();
            else syscall(SYS_getpid);
        }
        puts("done");
        fflush(stdout);
    }
    return 0;
}
