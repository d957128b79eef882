/* Becomes another program under a filter as containers have it: HOW PROGRAM ARGUMENT...
 * All but a long list of calls is denied ("denied"), or kills ("killed"); or open, which C
 * libraries have given up for openat, is denied or kills ("open-denied", "open-kills"); or to have memory
 * written and run at once is ("both-denied", "both-kills"). */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct sock_filter code[256];
static unsigned short len;

static void add(unsigned short op, unsigned char yes, unsigned char no, unsigned value)
{
    code[len++] = (struct sock_filter){op, yes, no, value};
}

static void answer(unsigned number, unsigned value)
{
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, number);
    add(BPF_RET | BPF_K, 0, 0, value);
}

int main(int argc, char **argv)
{
    static const unsigned char not_for_you[] = {
        SYS_pivot_root, SYS_mount, SYS_umount2, SYS_swapon, SYS_swapoff, SYS_reboot,
        SYS_init_module, SYS_delete_module, SYS_kexec_load, SYS_add_key,
    };
    const char *how = argc > 2 ? argv[1] : "";
    int kills = !strcmp(how, "killed") || strstr(how, "-kills");
    unsigned otherwise = kills ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM;
    add(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
    if (!strncmp(how, "open", 4)) {
        answer(SYS_open, otherwise);
    } else if (!strncmp(how, "both", 4)) {
        add(BPF_JMP | BPF_JEQ | BPF_K, 0, 4, SYS_mprotect);
        add(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, args[2]));
        add(BPF_ALU | BPF_AND | BPF_K, 0, 0, PROT_WRITE | PROT_EXEC);
        answer(PROT_WRITE | PROT_EXEC, otherwise);
    } else {
        answer(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
        for (unsigned i = 0; i < sizeof not_for_you; i++)
            answer(not_for_you[i], otherwise);
        /* bpf, userfaultfd and what newer kernels have: but for rseq, pidfd_open, openat2, faccessat2. */
        add(BPF_JMP | BPF_JEQ | BPF_K, 6, 0, SYS_rseq);
        add(BPF_JMP | BPF_JEQ | BPF_K, 5, 0, 332 /* statx */);
        add(BPF_JMP | BPF_JEQ | BPF_K, 4, 0, 434 /* pidfd_open */);
        add(BPF_JMP | BPF_JEQ | BPF_K, 3, 0, 437 /* openat2 */);
        add(BPF_JMP | BPF_JEQ | BPF_K, 2, 0, 439 /* faccessat2 */);
        add(BPF_JMP | BPF_JGT | BPF_K, 0, 1, SYS_memfd_create);
        add(BPF_RET | BPF_K, 0, 0, otherwise);
    }
    add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {len, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
        return 2;
    execv(argv[2], argv + 2);
    return 3;
}
