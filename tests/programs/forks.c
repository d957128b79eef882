/* N children, one after the other or in tens at once; each makes three getppid and is gone. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    long children = argc > 1 ? atol(argv[1]) : 100, at_once = argc > 2 ? atol(argv[2]) : 1;
    for (long i = 0; i < children; i += at_once) {
        for (long j = 0; j < at_once; j++) {
            pid_t pid = fork();
            if (pid < 0)
                return 1;
            if (pid == 0) {
                for (int k = 0; k < 3; k++)
                    syscall(SYS_getppid);
                _exit(0);
            }
        }
        for (long j = 0; j < at_once; j++)
            wait(0);
    }
    return 0;
}
