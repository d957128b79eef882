/* Becomes argv[3] under a seccomp filter that kills (argv[2] "kill"), sends SIGSYS to ("trap") or refuses ("errno") who
   makes one of the calls whose numbers argv[1] lists. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#define MOST 60
int main(int argc, char **argv) {
    struct sock_filter f[2 * MOST + 2] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    int n = 1;
    unsigned action = SECCOMP_RET_KILL_PROCESS;
    if (!strcmp(argv[2], "trap")) action = SECCOMP_RET_TRAP;
    if (!strcmp(argv[2], "errno")) action = SECCOMP_RET_ERRNO | EPERM;
    for (char *nr = strtok(argv[1], ","); nr && n < 2 * MOST; nr = strtok(NULL, ",")) {
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, atoi(nr), 0, 1);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
    }
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog p = {n, f};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p)) return 99;
    execvp(argv[3], argv + 3);
    return 98;
}
