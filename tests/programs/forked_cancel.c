/* forked_cancel CHILDREN CALLS: children, one after the other, each with another number of threads that it cancels: libgcc_s is loaded for that, at
 * a place of each child's own. Where one child has the library, others have a thread's stack. Each then makes CALLS of getpgid. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void *waits(void *pipe) {
    char byte;
    read(*(int *)pipe, &byte, 1);
    return NULL;
}

int main(int argc, char **argv) {
    int children = atoi(argv[1]), calls = atoi(argv[2]);
    for (int child = 0; child < children; child++) {
        pid_t pid = fork();
        if (!pid) {
            int ends[2], count = 1 + child * 7 % 6;
            pthread_t threads[16];
            if (pipe(ends)) _exit(1);
            for (int i = 0; i < count; i++) pthread_create(&threads[i], NULL, waits, ends);
            usleep(1000);
            for (int i = 0; i < count; i++) pthread_cancel(threads[i]);
            for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
            for (int i = 0; i < calls; i++) syscall(SYS_getpgid, 0);
            _exit(0);
        }
        waitpid(pid, NULL, 0);
    }
    return 0;
}
