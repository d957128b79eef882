/* Asks for its parent's id 20,000 times, and reads a byte that is there 10,000 times, then one that comes
   after 0.3 s, all by the same call. */
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ASKED = 20000, READY = 10000 };

int main(void) {
    int ends[2];
    char byte = 1;
    long sum = 0;
    for (int i = 0; i < ASKED; i++)
        sum += syscall(SYS_getppid) > 0;
    if (pipe(ends))
        return 1;
    for (int i = 0; i <= READY; i++) {
        if (i < READY) {
            if (write(ends[1], &byte, 1) != 1)
                return 1;
        } else if (fork() == 0) {
            usleep(300000);
            _exit(write(ends[1], &byte, 1) != 1);
        }
        if (read(ends[0], &byte, 1) != 1)
            return 1;
    }
    wait(NULL);
    printf("%ld\n", sum);
    return 0;
}
