/* Calls getppid 1000 times from `often` and 10 times from `seldom`; then has each node of systoll's trees say that it counts
 * where another one does, and that another address leads there. */
#include "hostile.h"

static void __attribute__((noinline)) often(void) {
  for (int i = 0; i < 1000; i++) getppid();
}

static void __attribute__((noinline)) seldom(void) {
  for (int i = 0; i < 10; i++) getppid();
}

static volatile uint64_t *node(uint64_t n) { return (volatile uint64_t *)(IMAGE + NODES + n * NODE_SIZE); }

int main(void) {
  often();
  seldom();
  uint64_t counting[1000], found = 0;
  for (uint64_t n = 0; n < 1000; n++)
    if (node(n)[RECORD / 8]) counting[found++] = n;
  for (uint64_t n = 0; n + 1 < found; n++) {
    volatile uint64_t *one = node(counting[n]), *other = node(counting[n + 1]);
    for (int word = 0; word < 2; word++) {
      uint64_t kept = one[word];
      one[word] = other[word];
      other[word] = kept;
    }
  }
  printf("%lu\n", found);
  fflush(stdout);
  _exit(0);
}
