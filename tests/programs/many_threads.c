/* argv[1] threads that live at once; each makes 20 calls of getppid. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static pthread_barrier_t all;
static void *work(void *arg) {
    for (int i = 0; i < 20; i++) syscall(SYS_getppid);
    pthread_barrier_wait(&all);
    return arg;
}
int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t *threads = calloc(n, sizeof *threads);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 32768);
    pthread_barrier_init(&all, NULL, n + 1);
    for (int i = 0; i < n; i++)
        if (pthread_create(threads + i, &small, work, NULL)) _exit(1);
    pthread_barrier_wait(&all);
    for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
    return 0;
}
