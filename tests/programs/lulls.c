/* lulls: seven sleeps of 20 ms by main, five of 10 ms by a thread, one after the other; and 3,000 calls that take no
   time. */
#include <pthread.h>
#include <unistd.h>

static void *other(void *unused) {
  for (int i = 0; i < 5; i++) usleep(10000);
  return unused;
}

int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, 0, other, 0) || pthread_join(thread, 0)) return 1;
  for (int i = 0; i < 7; i++) usleep(20000);
  for (int i = 0; i < 3000; i++) getppid();
  return 0;
}
