/* Makes a child that no tracer is told of: by clone, or by clone3 where argv[1] is 3. The child makes 100
   calls. */
#define _GNU_SOURCE
#include <sched.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct clone_args args = {.flags = CLONE_UNTRACED, .exit_signal = SIGCHLD};
    unsigned long flags = argc > 2 ? 0 : CLONE_UNTRACED;
    long pid;
    args.flags = flags;
    if (atoi(argv[1]) == 3)
        pid = syscall(SYS_clone3, &args, sizeof args);
    else
        pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        for (int i = 0; i < 100; i++)
            syscall(SYS_getppid);
        _exit(7);
    }
    int status;
    waitpid(pid, &status, __WALL);
    return WEXITSTATUS(status);
}
