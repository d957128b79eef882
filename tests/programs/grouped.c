/* grouped FILE N: 2 N seeks from two lines of one function, half of them by a thread; N getppid from
   another function; all on one file. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static int fd;
static long rounds;
static volatile long sink;

__attribute__((noinline)) static void seek(int there) {
  for (long i = 0; i < rounds; i++)
    if (there)
      sink += lseek(fd, 0, SEEK_CUR);
    else
      sink -= lseek(fd, 0, SEEK_CUR);
}

__attribute__((noinline)) static void ask(void) {
  for (long i = 0; i < rounds; i++) sink += getppid();
}

static void *other(void *unused) {
  seek(1);
  return unused;
}

int main(int argc, char **argv) {
  pthread_t thread;
  rounds = argc > 2 ? atol(argv[2]) : 1000;
  fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (fd < 0 || write(fd, "x", 1) != 1) return 1;
  if (pthread_create(&thread, 0, other, 0) || pthread_join(thread, 0)) return 1;
  seek(0);
  ask();
  return 0;
}
