/* What hostile programs know of systoll's memory: where it lies, and what stands where. */
#define _GNU_SOURCE
#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x10
#endif

#define IMAGE 0x500000000000ul
/* Of the image's header. */
#define ID 0x08
#define NEXT_SLOT 0x10
#define HOMELESS 0x18
#define GIVEN 0x70
#define IMAGE_DEAD 0x400
#define TICKET 0x408
#define RING 0x800
#define CODE_COUNT 0x1000
#define NODES 0x4000
#define TICKETS 0x4000000ul
#define ROOTS 0x4100000ul
#define SLOTS 0x10000000ul
#define SLOT_SIZE (1ul << 22)
#define SLOT_COUNT 4096ul
/* Of a slot. */
#define NODE_UNDER_WAY 0x10
#define STATE 0x40
#define RESUME 0x48
#define ANSWER 0x50
#define REGISTERS 0x60
#define SAVED_RSP (REGISTERS + 8 * 7)
#define SAVED_RBP (REGISTERS + 8 * 9)
#define REQUEST 0xd0
#define REPLY 0x108
#define SELF 0x400
#define TAG 0x408
#define PARENT 0x410
#define MADE_AS 0x420
#define TID 0x430
#define PID 0x438
#define ERRORS 0x2000
#define RECORDS 0x8000
#define RECORD_SIZE 0x2c0
/* Of a node. */
#define NODE_SIZE 64
#define RECORD 0x08
#define OFFSET 0x10
#define CHILD 0x18
#define SIBLING 0x20
#define WINDOW_AT 0x38

struct map {
  uint64_t start, end;
  char mode[5];
};

/* Mappings of systoll's in this process. */
static int maps(struct map *all, int most) {
  FILE *f = fopen("/proc/self/maps", "r");
  char line[512];
  int n = 0;
  while (f && n < most && fgets(line, sizeof line, f))
    if (strstr(line, "memfd:systoll") && sscanf(line, "%lx-%lx %4s", &all[n].start, &all[n].end, all[n].mode) == 3)
      n++;
  if (f) fclose(f);
  return n;
}

static volatile uint64_t *at(uint64_t offset) { return (volatile uint64_t *)(IMAGE + offset); }

static volatile uint64_t *slot(uint64_t index, uint64_t offset) {
  return at(SLOTS + index * SLOT_SIZE + offset);
}

static uint64_t random_state = 88172645463325252ul;

static uint64_t chance(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  return random_state ^= random_state << 17;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

/* The systoll that watches this process, of all there may be on the box: who comes before it. Those of others run
 * beside us, and what root does to them is no road. */
static int watcher(void) {
  for (pid_t pid = getppid(), up; pid > 1; pid = up) {
    char path[64], stat[300] = {0};
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY);
    if (fd < 0) return 0;
    ssize_t got = read(fd, stat, sizeof stat - 1);
    close(fd);
    if (got <= 0) return 0;
    if (strstr(stat, "(systoll)")) return pid;
    char *end = strrchr(stat, ')');
    if (!end || sscanf(end + 1, " %*c %d", &up) != 1) return 0;
  }
  return 0;
}
