/* Every road by which a process might write code of systoll's, or another process's counters.
 *
 *   hostile_roads dropped N   root; a child gives root up and tries all roads; N calls of getppid by root
 *   hostile_roads same N      a child that is what its maker is tries all roads to the code
 *
 *   hostile_roads maker N     root; a maker gives root up right after it has made a child that stays root
 *
 * The maker says what it saw: whether code has changed, how many forks came back. */
#include "hostile.h"

static int tried, won;

/* Writes something else to the last bytes of each page: nothing runs there, and the maker sees it. */
static void spoil(uint64_t start, uint64_t end) {
  won++;
  for (uint64_t page = start; page < end && page < start + (4 << 20); page += 4096)
    *(volatile uint64_t *)(page + 4088) ^= 0x5a5a5a5a5a5a5a5aul;
}

static void by_protection(uint64_t start, uint64_t end) {
  static const int wanted[] = {PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE | PROT_EXEC, PROT_WRITE};
  for (int i = 0; i < 3; i++, tried++)
    if (!mprotect((void *)start, end - start, wanted[i])) return spoil(start, end);
}

static void by_moving(uint64_t start, uint64_t end) {
  for (uint64_t size = end - start; size <= 4 * (end - start); size *= 2, tried++) {
    char *again = mremap((void *)start, 0, size, MREMAP_MAYMOVE);
    if (again == MAP_FAILED) continue;
    by_protection((uint64_t)again, (uint64_t)again + (end - start));
    munmap(again, size);
  }
}

/* A file of systoll's that could be opened. */
static void by_file(int fd, int may_be_own) {
  static const unsigned char junk[64] = {0xcc};
  for (off_t at = 0x10000 - 64; at < 0x20000; at += 4096, tried++)
    if (!may_be_own && pwrite(fd, junk, sizeof junk, at) > 0) won++;
  char *mapped = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0x10000);
  if (mapped != MAP_FAILED) {
    if (!may_be_own) spoil((uint64_t)mapped, (uint64_t)mapped + (1 << 20));
    munmap(mapped, 1 << 20);
  }
  tried += 4;
  if (!ftruncate(fd, 4096) || !ftruncate(fd, 1ul << 40)) won++;
  if (!may_be_own && !fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0x10000, 1 << 20)) won++;
  fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
  fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

static void by_files_of(const char *folder, int may_be_own) {
  DIR *all = opendir(folder);
  struct dirent *e;
  while (all && (e = readdir(all))) {
    char path[600], link[300] = "";
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    if (readlink(path, link, sizeof link - 1) < 0 || !strstr(link, "memfd:systoll")) continue;
    for (int mode = O_RDONLY; mode <= O_RDWR; mode++, tried++) {
      int fd = open(path, mode | O_CLOEXEC);
      if (fd < 0) continue;
      by_file(fd, may_be_own);
      close(fd);
    }
  }
  if (all) closedir(all);
}

static void by_memory(int pid, uint64_t start) {
  char path[64], byte = 0x5a;
  struct iovec ours = {&byte, 1}, theirs = {(void *)(start + 4090), 1};
  snprintf(path, sizeof path, "/proc/%d/mem", pid);
  int fd = open(path, O_RDWR);
  if (fd >= 0) {
    if (pwrite(fd, &byte, 1, start + 4090) == 1) won++;
    close(fd);
  }
  if (process_vm_writev(pid, &ours, 1, &theirs, 1, 0) == 1) won++;
  tried += 2;
}

/* Words by which our own slots, and those that may be another's, lead threads. */
static void by_words(void) {
  for (uint64_t n = 0; n < 70; n++) {
    if (*slot(n, SELF) == 0) continue;
    for (uint64_t word = REQUEST; word <= REPLY; word += 8) *slot(n, word) = 0x4141414141414141ul;
    if (n) *slot(n, RESUME) = 0x414141414141ul;
    for (uint64_t record = 0; record < 400; record++) *slot(n, RECORDS + record * RECORD_SIZE) += 1000000007;
  }
  for (uint64_t node = 0; node < 300; node++) *at(NODES + node * NODE_SIZE + OFFSET) = 0x4242424242424242ul;
}

static void attack(int maker, int dropped) {
  struct map all[64], *code[64];
  int n = maps(all, 64), codes = 0;
  for (int i = 0; i < n; i++)
    if (all[i].mode[1] != 'w') code[codes++] = &all[i];
  char path[64];
  by_files_of("/proc/self/map_files", 1);
  by_files_of("/proc/self/fd", 0);
  if (dropped) {
    snprintf(path, sizeof path, "/proc/%d/fd", maker);
    by_files_of(path, 0);
    snprintf(path, sizeof path, "/proc/%d/map_files", maker);
    by_files_of(path, 0);
  }
  snprintf(path, sizeof path, "/proc/%d/fd", watcher());
  by_files_of(path, !dropped);
  for (int i = 0; i < codes; i++) {
    by_memory(getpid(), code[i]->start);
    if (dropped) by_memory(maker, code[i]->start);
    by_moving(code[i]->start, code[i]->end);
    by_protection(code[i]->start, code[i]->end);
  }
  for (int i = 0; i < n; i++)
    if (all[i].mode[1] == 'w') {
      /* Tables, moved so that more of their file is seen: code must not be in it. */
      char *more = mremap((void *)all[i].start, 0, 1ul << 36, MREMAP_MAYMOVE);
      if (more != MAP_FAILED) {
        for (uint64_t from = 0x10000; from < 1ul << 36; from = from < 1 << 24 ? 1 << 24 : 1ul << 36)
          if (mprotect(more + from, 1 << 20, PROT_READ | PROT_WRITE | PROT_EXEC) == 0 && dropped) tried++;
        munmap(more, 1ul << 36);
      }
    }
  if (dropped) by_words();
}

static uint64_t checksum(void) {
  struct map all[64];
  int n = maps(all, 64);
  uint64_t sum = 0;
  for (int i = 0; i < n; i++)
    if (all[i].mode[2] == 'x')
      /* The first megabyte: what is behind is not used, and would be filled with memory by looking. */
      for (uint64_t p = all[i].start; p < all[i].end && p < all[i].start + (1 << 20); p += 8)
        sum = (sum ^ *(volatile uint64_t *)p) * 0x100000001b3ul;
  return sum;
}

/* A maker gives root up, right after it has made a child that stays root and has not run yet. */
static int maker_drops(int calls) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  int maker = fork();
  if (!maker) {
    int child = fork();
    if (!child) {
      for (double end = now() + 0.3; now() < end;)
        ;
      for (int i = 0; i < calls; i++) syscall(SYS_getppid);
      _exit(7);
    }
    if (setresuid(65534, 65534, 65534)) _exit(2);
    for (int i = 0; i < 300000000; i++)
      if (i % 1000000 == 0) by_words();
    _exit(0);
  }
  int right = 0, status;
  while (waitpid(-1, &status, 0) > 0) right += WIFEXITED(status) && WEXITSTATUS(status) == 7;
  printf("code is as it was\n%d of root's children came back\n", right);
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 2 && !strcmp(argv[1], "maker")) return maker_drops(atoi(argv[2]));
  int dropped = argc > 1 && !strcmp(argv[1], "dropped"), calls = argc > 2 ? atoi(argv[2]) : 100, maker = getpid();
  setvbuf(stdout, 0, _IOLBF, 0);
  for (int i = 0; i < calls / 2; i++) syscall(SYS_getppid);
  /* So that no code comes later that the first sum would not have. */
  int warm = fork();
  if (!warm) _exit(0);
  waitpid(warm, 0, 0);
  uint64_t before = checksum();
  for (int round = 0; round < 2; round++) {
    int child = fork();
    if (!child) {
      alarm(20);
      /* What root does before it gives itself up reaches no code either. */
      if (round && dropped) attack(maker, 0);
      if (dropped && setresuid(65534, 65534, 65534)) _exit(2);
      attack(maker, dropped);
      fprintf(stderr, "tried %d, won %d\n", tried, won);
      _exit(won && dropped);
    }
    int status;
    waitpid(child, &status, 0);
    printf("child %d %s\n", round, WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "won nothing" : WIFSIGNALED(status) ? "was killed" : "won");
  }
  printf("code %s\n", checksum() == before ? "is as it was" : "was written over");
  for (int i = 0; i < calls - calls / 2; i++) syscall(SYS_getppid);
  int stopped = 0;
  for (int i = 0; i < 5; i++) {
    int child = fork();
    if (!child) _exit(7);
    int status;
    stopped += waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7;
  }
  printf("%d forks came back\n", stopped);
  return 0;
}
