/* A program that misleads who looks at it from outside: the watcher itself, names, files.
 *
 *   hostile_tricks TRICK CALLS
 *
 * Plays the trick, calls getppid so often, with other calls between, and says on standard error that it is through. */
#include "hostile.h"
#include <link.h>

/* With all that a terminal would take for orders. */
#define ESCAPES "\033[2J\033]0;owned\007\r\n\b\x9b" "31m\xff\xe2\x80\xae<script>"

static int calls;

static __attribute__((noinline)) void call(int n) {
  syscall(SYS_getppid);
  if (n % 16 == 0) close(open("/", O_RDONLY));
  if (n % 64 == 0) access("/" ESCAPES, R_OK);
}

/* Stops the watcher where the kernel lets us; who tests has it go on. */
static void stops(void) {
  pid_t pid = watcher();
  if (!pid) _exit(4);
  kill(pid, SIGSTOP);
}

static void *stack_eats(void *unused) {
  (void)unused;
  /* Frame pointers and return addresses that lead in circles. */
  uint64_t frame[64];
  for (int i = 0; i < 64; i++) frame[i] = (uint64_t)&frame[i % 2 ? i - 1 : i];
  __asm__ volatile("push %%rbp; mov %0, %%rbp; mov $111, %%eax; syscall; pop %%rbp" ::"r"(frame) : "rax", "rcx", "r11", "memory");
  return 0;
}

/* Garbage in the link map, in what debuggers know of it, and in our own headers' copies. */
static void garbled(void) {
  struct r_debug *debug = 0;
  for (ElfW(Dyn) *d = _DYNAMIC; d->d_tag; d++)
    if (d->d_tag == DT_DEBUG) debug = (struct r_debug *)d->d_un.d_ptr;
  for (struct link_map *map = debug ? debug->r_map : 0, *next; map; map = next) {
    next = map->l_next;
    map->l_addr = chance();
    map->l_name = (char *)chance();
    map->l_next = map->l_prev = map;
  }
  if (debug) debug->r_map = (struct link_map *)chance(), debug->r_brk = chance();
  /* The first pages of each mapping of ours and of libraries: ELF headers, symbols, tables of functions. */
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[600];
  uint64_t start[64], end[64];
  int all = 0;
  while (maps && fgets(line, sizeof line, maps) && all < 64) {
    char mode[5];
    if (sscanf(line, "%lx-%lx %4s", &start[all], &end[all], mode) == 3 && !strcmp(mode, "r--p") && strchr(line, '/')) all++;
  }
  if (maps) fclose(maps);
  for (int i = 0; i < all; i++)
    if (mprotect((void *)start[i], end[i] - start[i], PROT_READ | PROT_WRITE) == 0)
      for (uint64_t *p = (uint64_t *)start[i]; p < (uint64_t *)(start[i] + 64); p++) *p = chance();
  for (int i = 0; i < 50; i++) stack_eats(0);
}

static void escapes(char **argv) {
  memset(argv[0], 0, strlen(argv[0]));
  prctl(PR_SET_NAME, "\033[2J\r\n\007x");
  char path[300];
  snprintf(path, sizeof path, "%s/" ESCAPES, getenv("TMPDIR"));
  int fd = open(path, O_RDWR | O_CREAT, 0700);
  for (int i = 0; i < 64; i++) { char c; read(fd, &c, 1); }
  close(fd);
  unlink(path);
}

/* A child that lives under a name full of orders. */
static void child_of_bad_name(char *calls_said) {
  char path[300], self[300] = {0};
  snprintf(path, sizeof path, "%s/" "\033[31mbad\r\n", getenv("TMPDIR"));
  if (readlink("/proc/self/exe", self, sizeof self - 1) > 0 && fork() == 0) {
    int from = open(self, O_RDONLY), to = open(path, O_RDWR | O_CREAT | O_TRUNC, 0700);
    char buffer[65536];
    ssize_t n;
    while ((n = read(from, buffer, sizeof buffer)) > 0) write(to, buffer, n);
    close(to);
    char *environ[] = {"A=" ESCAPES, 0}, *argv[] = {ESCAPES, "none", calls_said, 0};
    execve(path, argv, environ);
    _exit(3);
  }
  int status;
  wait(&status);
  unlink(path);
}

static char perf[64];

static void perf_map(int fifo) {
  snprintf(perf, sizeof perf, "/tmp/perf-%d.map", getpid());
  unlink(perf);
  if (fifo) { mkfifo(perf, 0600); return; }
  int fd = open(perf, O_RDWR | O_CREAT | O_TRUNC, 0600);
  for (int i = 0; i < 4000; i++) dprintf(fd, "%lx 40 " ESCAPES "%d\n", chance() >> 17, i);
  ftruncate(fd, 1l << 30);
  close(fd);
}

/* Code that no file has, from which calls are made. */
static void made_code(void) {
  static const unsigned char code[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x08, 0xc3};
  unsigned char *at = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(at, code, sizeof code);
  mprotect(at, 4096, PROT_READ | PROT_EXEC);
  for (int i = 0; i < 200; i++) ((void (*)(int (*)(void)))at)((int (*)(void))getuid);
}

static void nowhere(void) {
  char path[300];
  snprintf(path, sizeof path, "%s/gone", getenv("TMPDIR"));
  mkdir(path, 0700);
  chdir(path);
  rmdir(path);
}

static void replaced(int gone) {
  char self[300] = {0};
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) _exit(2);
  unlink(self);
  if (gone) return;
  int fd = open(self, O_RDWR | O_CREAT | O_TRUNC, 0700);
  for (int i = 0; i < 4000; i++) { uint64_t word = i ? chance() : 0x00010102464c457f; write(fd, &word, 8); }
  close(fd);
}

int main(int argc, char **argv) {
  const char *trick = argv[1];
  char calls_said[16];
  calls = atoi(argv[2]);
  snprintf(calls_said, sizeof calls_said, "%d", calls);
  for (int n = 0; n < 8; n++) call(n);
  if (!strcmp(trick, "stops")) stops();
  if (!strcmp(trick, "escapes")) child_of_bad_name(calls_said), escapes(argv);
  if (!strcmp(trick, "perf_sparse")) perf_map(0), made_code();
  if (!strcmp(trick, "perf_fifo")) perf_map(1), made_code();
  if (!strcmp(trick, "nowhere")) nowhere();
  if (!strcmp(trick, "replaced")) replaced(0);
  if (!strcmp(trick, "deleted")) replaced(1);
  if (!strcmp(trick, "garbled")) garbled();
  for (int n = 8; n < calls; n++) call(n);
  if (*perf) unlink(perf);
  /* The library's own memory may be garbage. */
  static const char through[] = "through\n";
  syscall(SYS_write, 2, through, sizeof through - 1);
  syscall(SYS_exit_group, 0);
}
