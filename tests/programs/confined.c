/* Confines itself and calls on: by a filter that kills at anything but a few calls ("list"), one
 * that denies with an errno ("deny"), the strict mode ("strict"), or a filter that an exec'ed
 * program inherits ("inherit"). Before any of it ("deny"), asks as libseccomp does whether there are
 * filters: by a strict mode that the kernel refuses. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void filter(struct sock_filter *code, unsigned short len)
{
    struct sock_fprog program = {len, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
        _exit(2);
}

static void say(const char *text)
{
    if (write(1, text, strlen(text)) < 0)
        _exit(3);
}

/* From places never met before the filter came. */
__attribute__((noinline)) static int after(int denied)
{
    int good = 0;
    for (int i = 0; i < 50; i++) {
        good += syscall(SYS_getppid) > 0;
        errno = 0;
        good += denied ? syscall(SYS_getuid) == -1 && errno == EPERM : 1;
    }
    return good == 100;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    struct sock_filter list[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_filter deny[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getuid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    if (!strcmp(how, "deny") && (syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, 0) != -1 || errno != EINVAL))
        return 8;
    if (!strcmp(how, "list"))
        filter(list, 6);
    else if (!strcmp(how, "deny") || !strcmp(how, "inherit"))
        filter(deny, 4);
    if (!strcmp(how, "inherit")) {
        execl(argv[0], argv[0], "inherited", (char *)0);
        return 4;
    }
    if (!strcmp(how, "strict")) {
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
            return 5;
        say("strict\n");
        for (int i = 0; i < 50; i++)
            say(".");
        syscall(SYS_exit, 6);
    }
    say(after(strcmp(how, "list")) ? "well\n" : "ill\n");
    _exit(7);
}
