/* All ways to make a process or a program: fork, vfork, clone with and without CLONE_VM, clone3,
 * posix_spawn, execveat of a memfd, dlopen in a child. Each child makes calls of its own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int calls(void *times)
{
    for (long i = 0; i < (long)times; i++)
        syscall(SYS_getppid);
    return 3;
}

static int ended(pid_t pid)
{
    int status = 0;
    waitpid(pid, &status, __WALL);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int by_memfd(char *self)
{
    char buffer[4096], *args[] = {"copy", "3", 0};
    int from = open(self, O_RDONLY), to = memfd_create("copy", MFD_CLOEXEC);
    for (ssize_t n; (n = read(from, buffer, sizeof buffer)) > 0;)
        if (write(to, buffer, (size_t)n) != n)
            return -1;
    close(from);
    pid_t pid = fork();
    if (pid == 0) {
        syscall(SYS_execveat, to, "", args, environ, AT_EMPTY_PATH);
        _exit(9);
    }
    close(to);
    return ended(pid);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return calls((void *)atol(argv[1]));
    static char stack[65536];
    int results[8], n = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(calls((void *)5));
    results[n++] = ended(pid);
    pid = vfork();
    if (pid == 0)
        _exit(calls((void *)7));
    results[n++] = ended(pid);
    results[n++] = ended(clone(calls, stack + sizeof stack, SIGCHLD, (void *)11));
    results[n++] = ended(clone(calls, stack + sizeof stack, CLONE_VM | SIGCHLD, (void *)13));
    struct clone_args how = {.exit_signal = SIGCHLD};
    pid = (pid_t)syscall(SYS_clone3, &how, sizeof how);
    if (pid == 0)
        _exit(calls((void *)17));
    results[n++] = ended(pid);
    char *args[] = {argv[0], "19", 0};
    if (posix_spawn(&pid, argv[0], 0, 0, args, environ) == 0)
        results[n++] = ended(pid);
    results[n++] = by_memfd(argv[0]);
    void *library = dlopen("libm.so.6", RTLD_NOW);
    results[n++] = library && dlclose(library) == 0;
    for (int i = 0; i < n; i++)
        printf("%d ", results[i]);
    puts("");
    return 0;
}
