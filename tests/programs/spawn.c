/* vfork, posix_spawn, system, and spawns that fail. */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int main(void)
{
    char *args[] = {"true", 0};
    int failed = 0, status;
    pid_t pid;
    for (int i = 0; i < 20; i++) {
        pid = vfork();
        if (pid == 0) {
            execv(i % 2 ? "/bin/true" : "/nonexistent", args);
            _exit(7);
        }
        waitpid(pid, &status, 0);
        failed += WEXITSTATUS(status) == 7;
        if (posix_spawn(&pid, i % 2 ? "/bin/true" : "/nonexistent", 0, 0, args, environ))
            failed++;
        else
            waitpid(pid, &status, 0);
    }
    status = system("exit 3");
    printf("%d failed, %d\n", failed, WEXITSTATUS(status));
    return 0;
}
