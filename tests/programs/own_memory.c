/* Does to its own address space what a program may: HOW, alone or (with a second word) beside threads that make calls
 * all the time or wait in one. Prints what it gets. mmap(2), munmap(2), mremap(2), mprotect(2), madvise(2), shmat(2). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOW ((char *)0x400000000000)
#define SIZE 0x150000000000ul

static volatile int over;
static volatile long calls;
static int moments[2];

static void *busy(void *unused)
{
    while (!over)
        calls += getppid() > 0 && close(-1) < 0;
    return unused;
}

/* Waits in calls whose end comes late. */
static void *waits(void *unused)
{
    char byte;
    while (read(moments[0], &byte, 1) == 1)
        calls++;
    return unused;
}

static void more(void)
{
    for (int i = 0; i < 1000; i++)
        getppid();
    printf("pid %s, child ", getpid() > 1 ? "good" : "bad");
    fflush(stdout);
    pid_t child = fork();
    if (!child)
        _exit(getppid() > 0 ? 7 : 8);
    int status;
    waitpid(child, &status, 0);
    printf("%x, ", status);
    fflush(stdout);
    printf("shell %x\n", system("echo shell"));
    void *block = malloc(1 << 24);
    printf("malloc %d\n", !!block);
    free(block);
}

/* What this program knows of its memory: its own and the libraries' files, heap, stack, what the kernel maps, and what
 * has no name and is private (the C library's, threads' stacks). */
static int known(const char *perms, const char *name)
{
    return name[0] == '/' && !strstr(name, "/memfd:") || name[0] == '[' || !name[0] && perms[3] == 'p' && perms[2] == '-';
}

struct range { char *start; size_t len; };

static int unknown(struct range *ranges, int most)
{
    static char text[1 << 20];
    int fd = open("/proc/self/maps", O_RDONLY), found = 0;
    size_t len = 0;
    for (ssize_t n; (n = read(fd, text + len, sizeof text - 1 - len)) > 0;)
        len += n;
    text[len] = 0;
    close(fd);
    for (char *line = strtok(text, "\n"); line && found < most; line = strtok(0, "\n")) {
        unsigned long start, end;
        char perms[8] = "", name[512] = "";
        sscanf(line, "%lx-%lx %7s %*s %*s %*s %511[^\n]", &start, &end, perms, name);
        if (!known(perms, name))
            ranges[found++] = (struct range){(char *)start, end - start};
    }
    return found;
}

static const char *outcome(const void *at, const void *wanted)
{
    return at == wanted ? "ok" : at == MAP_FAILED ? strerror(errno) : "elsewhere";
}

static void touch(char *at, size_t len)
{
    for (size_t o = 0; o < len; o += len / 64)
        at[o] = 1;
}

static int run(const char *how)
{
    static struct range ranges[256];
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    if (!strcmp(how, "fixed") || !strcmp(how, "none") || !strcmp(how, "number")) {
        int protection = strcmp(how, "none") ? PROT_READ | PROT_WRITE : PROT_NONE;
        char *at = strcmp(how, "number") ? mmap(LOW, SIZE, protection, flags | MAP_FIXED, -1, 0)
                                         : (char *)syscall(SYS_mmap, LOW, SIZE, protection, flags | MAP_FIXED, -1, 0);
        printf("%s\n", outcome(at, LOW));
        if (at == LOW && protection)
            touch(at, SIZE);
    } else if (!strcmp(how, "noreplace")) {
        char *at = mmap(LOW, SIZE, PROT_READ | PROT_WRITE, flags | MAP_FIXED_NOREPLACE, -1, 0);
        printf("%s\n", outcome(at, LOW));
    } else if (!strcmp(how, "unmap")) {
        printf("%d\n", munmap(LOW, SIZE));
    } else if (!strcmp(how, "protect")) {
        /* It fails at the first hole, behind what is there. */
        printf("%d\n", mprotect(LOW, SIZE, PROT_NONE) ? errno : 0);
    } else if (!strcmp(how, "remap")) {
        char *from = mmap(0, 1ul << 36, PROT_READ | PROT_WRITE, flags, -1, 0);
        char *to = LOW + 0x100000000000;
        char *at = mremap(from, 1ul << 36, 1ul << 36, MREMAP_MAYMOVE | MREMAP_FIXED, to);
        printf("%s\n", outcome(at, to));
        if (at == to)
            touch(at, 1ul << 36);
    } else if (!strcmp(how, "shm")) {
        int id = shmget(IPC_PRIVATE, 1 << 26, IPC_CREAT | 0600);
        char *to = LOW + 0x100010000000, *at = shmat(id, to, SHM_REMAP);
        printf("%s\n", outcome(at, to));
        shmctl(id, IPC_RMID, 0);
        if (at == to)
            touch(at, 1 << 26);
    } else {
        /* Of all it does not know. */
        int found = unknown(ranges, 256), failed = 0;
        for (int i = 0; i < found; i++) {
            char *at = ranges[i].start;
            size_t len = ranges[i].len;
            if (!strcmp(how, "unmaps"))
                failed += munmap(at, len) != 0;
            else if (!strcmp(how, "protects"))
                failed += mprotect(at, len, PROT_NONE) != 0;
            else if (!strcmp(how, "reserves"))
                failed += mmap(at, len, PROT_NONE, flags | MAP_FIXED, -1, 0) != at;
            else if (!strcmp(how, "dontfork"))
                madvise(at, len, MADV_DONTFORK);
            else if (!strcmp(how, "dontneed"))
                madvise(at, len, MADV_DONTNEED);
            else if (!strcmp(how, "remove"))
                madvise(at, len, MADV_REMOVE);
            else if (!strcmp(how, "moves"))
                failed += mremap(at, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, LOW + 0x080000000000 + (size_t)i * 0x1000000000) == MAP_FAILED;
            else
                return 2;
        }
        printf("%d failed\n", failed);
        if (!strcmp(how, "unmaps"))
            printf("unknown left: %d\n", unknown(ranges, 256));
    }
    return 0;
}

int main(int argc, char **argv)
{
    pthread_t threads[4];
    int with = argc > 2 ? 4 : 0;
    if (pipe(moments))
        return 3;
    setvbuf(stdout, 0, _IOLBF, 4096);
    for (int i = 0; i < with; i++)
        pthread_create(&threads[i], 0, i < 2 ? busy : waits, 0);
    while (with && calls < 1000)
        usleep(100);
    int bad = argc > 1 ? run(argv[1]) : 2;
    more();
    over = 1;
    close(moments[1]);
    for (int i = 0; i < with; i++)
        pthread_join(threads[i], 0);
    puts("done");
    return bad;
}
