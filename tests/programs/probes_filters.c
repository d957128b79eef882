// Asks what the kernel knows of seccomp, as libseccomp does when it is loaded, then starts `ls` in three children.
//   probes_filters none|child|first    who puts on a filter that allows everything: nobody, each child, their maker
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void confine(void) {
    struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {1, all};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

int main(int count, char **words) {
    const char *who = count > 1 ? words[1] : "none";
    unsigned int action = SECCOMP_RET_LOG;
    struct seccomp_notif_sizes sizes;
    syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL);
    for (int flag = 1; flag <= 16; flag *= 2) syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flag, NULL);
    syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action);
    syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL);
    if (strcmp(who, "first") == 0) confine();
    for (int i = 0; i < 3; i++)
        if (fork() == 0) {
            if (strcmp(who, "child") == 0) confine();
            for (int j = 0; j < 50; j++) syscall(SYS_getppid);
            execl("/bin/ls", "ls", "/", NULL);
            _exit(1);
        }
    while (wait(NULL) > 0) continue;
    return 0;
}
