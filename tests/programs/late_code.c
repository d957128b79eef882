/* Code that comes while the program runs: its own text mapped again, writable first ("file"), and one of
 * its calls made another before it is run ("changed"); a page
 * it writes and then makes executable, with a call in it ("made") or none ("harmless"); pages to be
 * written and run at once, likewise ("in-place", "harmless-in-place"); a page that has no call at first, but is made writable, written
 * and made executable again ("again"); a page mapped in two places, one to be written and one to be run,
 * the latter before ("two-early") or after it is written ("two-late"). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern const char __executable_start[], etext[];

/* Position-independent and on its own, so that a copy of the text will do. */
__attribute__((noinline, aligned(64))) static long calls(long n)
{
    long good = 0;
    while (n--) {
        long r = 110 /* getppid */;
        __asm__ volatile("mov $110, %%eax\n\tsyscall\n\tmov %%rax, %0\n\tnop\n\tnop" : "=r"(r) : : "rax", "rcx", "r11", "memory");
        good += r > 0;
    }
    return good;
}

__attribute__((noinline, aligned(64))) static long others(long n)
{
    long good = 0;
    while (n--) {
        long r = 104 /* getgid */;
        __asm__ volatile("mov $104, %%eax\n\tsyscall\n\tmov %%rax, %0\n\tnop\n\tnop" : "=r"(r) : : "rax", "rcx", "r11", "memory");
        good += r >= 0;
    }
    return good;
}

/* Makes the copy's getppid a getuid. */
static int change(unsigned char *at, size_t size)
{
    static const unsigned char was[] = {0xb8, 110, 0, 0, 0, 0x0f, 0x05};
    unsigned char *found = memmem(at, size, was, sizeof was);
    if (!found)
        return 0;
    found[1] = 102;
    return 1;
}

static int from_file(int by_number, int changed)
{
    uintptr_t page = (uintptr_t)calls & ~4095ul;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    size_t size = 8192;
    char *at = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, page - (uintptr_t)__executable_start);
    close(fd);
    if (at == MAP_FAILED)
        return 2;
    at[size - 1] ^= 1;
    if (changed && !change((unsigned char *)at + ((uintptr_t)calls - page), 128))
        return 4;
    if (by_number ? syscall(SYS_mprotect, at, size, PROT_READ | PROT_EXEC) : mprotect(at, size, PROT_READ | PROT_EXEC))
        return 3;
    long (*copy)(long) = (long (*)(long))(at + ((uintptr_t)calls - page));
    long (*other)(long) = (long (*)(long))(at + ((uintptr_t)others - page));
    printf("%ld\n", changed ? copy(50) * 0 + other(20) : copy(50));
    return 0;
}

static int in_memory(const unsigned char *code, size_t len, int at_once)
{
    long sum = 0;
    for (int i = 0; i < 3; i++) {
        unsigned char *at = mmap(0, 4096, PROT_READ | PROT_WRITE | (at_once ? PROT_EXEC : 0), MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED)
            return 2;
        memcpy(at + 100, code, len);
        if (!at_once && mprotect(at, 4096, PROT_READ | PROT_EXEC))
            return 3;
        sum += ((long (*)(void))(at + 100))() > 0;
    }
    printf("%ld\n", sum);
    return 0;
}

static int written_again(const unsigned char *first, size_t first_len, const unsigned char *then, size_t then_len)
{
    long sum = 0;
    unsigned char *at = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return 2;
    for (int i = 0; i < 2; i++) {
        if (i && mprotect(at, 4096, PROT_READ | PROT_WRITE))
            return 3;
        memcpy(at, i ? then : first, i ? then_len : first_len);
        if (mprotect(at, 4096, PROT_READ | PROT_EXEC))
            return 4;
        sum += ((long (*)(void))at)() > 0;
    }
    printf("%ld\n", sum);
    return 0;
}

static int in_two_places(const unsigned char *code, size_t len, int early)
{
    int fd = memfd_create("code", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, 4096))
        return 2;
    unsigned char *to_write = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), *to_run = 0;
    if (early)
        to_run = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    memcpy(to_write, code, len);
    if (!early)
        to_run = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    if (to_write == MAP_FAILED || to_run == MAP_FAILED)
        return 3;
    long sum = 0;
    for (int i = 0; i < 3; i++)
        sum += ((long (*)(void))to_run)() > 0;
    printf("%ld\n", sum);
    return 0;
}

int main(int argc, char **argv)
{
    static const unsigned char call[] = {0xb8, 110, 0, 0, 0, 0x0f, 0x05, 0xc3};
    static const unsigned char none[] = {0xb8, 42, 0, 0, 0, 0xc3};
    const char *how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "file"))
        return from_file(0, 0) || from_file(1, 0);
    if (!strcmp(how, "changed"))
        return from_file(0, 1) || from_file(1, 1);
    if (!strcmp(how, "made"))
        return in_memory(call, sizeof call, 0);
    if (!strcmp(how, "again"))
        return written_again(none, sizeof none, call, sizeof call);
    if (!strncmp(how, "two-", 4))
        return in_two_places(call, sizeof call, !strcmp(how, "two-early"));
    if (!strcmp(how, "in-place"))
        return in_memory(call, sizeof call, 1);
    return in_memory(none, sizeof none, !strcmp(how, "harmless-in-place"));
}
