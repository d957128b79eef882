/* A program that makes 500 children a second: each makes one call of getppid, every tenth becomes /bin/true, every other tenth is
 * made by vfork. Ends when standard input does: exit code 0 if every child has ended as it should.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    char *argv[] = {"/bin/true", 0}, *none[] = {0};
    struct pollfd in = {0, POLLIN, 0};
    puts("ready");
    fflush(stdout);
    for (long n = 0; poll(&in, 1, 1) == 0; n++) {
        int status = 1;
        pid_t child;
        if (n % 10 == 5) {
            if (posix_spawn(&child, argv[0], 0, 0, argv, none)) return 2;
        } else {
            child = fork();
            if (child == 0) {
                if (n % 10 == 0) {
                    execve(argv[0], argv, none);
                    _exit(3);
                }
                syscall(SYS_getppid);
                _exit(0);
            }
        }
        if (waitpid(child, &status, 0) != child || status) {
            fprintf(stderr, "child %ld: %x\n", n, status);
            return 1;
        }
    }
    return 0;
}
