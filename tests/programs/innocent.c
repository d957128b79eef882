/* A healthy neighbour: `innocent N` makes N calls of getppid, in N / 100 forks and as many threads too,
 * and says what came of them. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static long right;

static void *ask(void *from) {
  right += syscall(SYS_getppid) == (long)from;
  return 0;
}

int main(int argc, char **argv) {
  long n = argc > 1 ? atol(argv[1]) : 1000, parent = getppid(), back = 0;
  for (long i = 0; i < n - n / 100 - n / 100; i++) {
    right += syscall(SYS_getppid) == parent;
    if (i % 50 == 0) usleep(argc > 2 ? atoi(argv[2]) : 0);
  }
  for (long i = 0; i < n / 100; i++) {
    pthread_t thread;
    pthread_create(&thread, 0, ask, (void *)parent);
    pthread_join(thread, 0);
    int child = fork(), status;
    if (!child) _exit(syscall(SYS_getppid) != getppid());
    back += waitpid(child, &status, 0) == child && status == 0;
  }
  printf("%ld right, %ld came back\n", right, back);
  return 0;
}
