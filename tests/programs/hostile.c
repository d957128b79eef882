/* A program that writes over what it shares with systoll, one way or at random, while its threads and
 * children make calls, ask, come and go.
 *
 *   hostile WAY SEED SECONDS
 *
 * It may crash, and begins again then until its time is over. */
#include "hostile.h"

static const uint64_t edges[] = {0, 1, 2, 3, 9, 0x7f, 0xff, 4095, 0x7fffffff, 0xffffffff, 1ul << 32, 1ul << 47, 1ul << 63, ~0ul, ~1ul, IMAGE, IMAGE + NODES, IMAGE + SLOTS, IMAGE + SLOTS + SLOT_SIZE, IMAGE + ROOTS, IMAGE - 0x1000, 0x1000};

static uint64_t word(void) {
  switch (chance() % 6) {
    case 0: return chance();
    case 1: return IMAGE + chance() % (1ul << 34) / 8 * 8;
    case 2: return IMAGE + NODES + chance() % 400 * NODE_SIZE;
    case 3: return IMAGE + SLOTS + chance() % 80 * SLOT_SIZE;
    case 4: return chance() % 70000;
    default: return edges[chance() % (sizeof edges / sizeof *edges)];
  }
}

static uint64_t some_slot(void) { return chance() % 4 ? chance() % 8 : chance() % 70; }

/* What a thread is to call is picked among what does no harm: this runs as root too, on a box of others'. */
static uint64_t request(void) { return (const uint64_t[]){39, 102, 202, 9, 11, 10, 99999, ~0ul}[chance() % 8]; }

static void in_slot(uint64_t offset, uint64_t value) { *slot(some_slot(), offset) = offset == REQUEST ? request() : value; }

static void parents(void) {
  for (uint64_t n = 1; n < 70; n++) {
    if (!*slot(n, SELF)) continue;
    *slot(n, PARENT) = IMAGE + SLOTS + (chance() % 3 ? n : chance() % 70) * SLOT_SIZE;
    *slot(n, PID) = 100000 + chance() % 3000000;
    if (chance() % 8 == 0) *slot(n, MADE_AS) = *slot(n, TID) = chance() % 4000000;
  }
}

static void queue(void) {
  static const int64_t steps[] = {-1, -2, -256, -300, 1, 255, 256, 257, 1000, 1ul << 62};
  volatile uint64_t *ticket = at(TICKET);
  if (chance() % 4 == 0) *ticket += steps[chance() % 10];
  if (chance() % 64 == 0) *ticket = word();
  for (int i = 0; i < 64; i++)
    at(RING)[chance() % 256] = chance() % 3 ? *at(ID) << 16 | chance() % 4098 : word();
}

static void handshake(void) {
  static const uint64_t offsets[] = {STATE, RESUME, ANSWER, REQUEST, REQUEST + 8, REPLY, SAVED_RSP, SAVED_RBP, REGISTERS, REGISTERS + 8, REGISTERS + 16, NODE_UNDER_WAY, 0x08, 0x20, 0x28, 0x58, 0x498, 0x4a8};
  uint64_t n = some_slot();
  uint64_t offset = offsets[chance() % 18];
  if (offset == STATE) *slot(n, STATE) = (const int[]){0, 1, 3, 5, 9}[chance() % 5];
  else if (offset == RESUME) *slot(n, RESUME) = (*slot(n, RESUME) & 0xffffffffffff) | (chance() % 0x28) << 48;
  else *slot(n, offset) = offset == REQUEST ? request() : word();
  if (chance() % 4 == 0) at(RING)[(*at(TICKET))++ % 256] = *at(ID) << 16 | (n + 1);
}

static void trees(void) {
  uint64_t where = chance() % 3 ? NODES + chance() % 1000 * NODE_SIZE : ROOTS + chance() % 4000 * NODE_SIZE;
  uint64_t to = IMAGE + NODES + chance() % 1000 * NODE_SIZE;
  switch (chance() % 5) {
    case 0: *at(where + CHILD) = chance() % 2 ? to : IMAGE + where; break;
    case 1: *at(where + SIBLING) = chance() % 2 ? to : IMAGE + where; break;
    case 2: *at(where + RECORD) = chance() % 2 ? RECORDS + chance() % 8000 * RECORD_SIZE : word(); break;
    case 3: *at(where + WINDOW_AT) = chance() % 2 ? chance() % 9 : word(); break;
    default: *at(where + 8 * (chance() % 8)) = word();
  }
}

static void header(void) {
  static const uint64_t offsets[] = {0, ID, NEXT_SLOT, HOMELESS, 0x20, 0x28, 0x30, 0x38, 0x40, 0x48, 0x50, 0x58, 0x60, 0x68, GIVEN, 0x80, 0x88, 0x90, IMAGE_DEAD, TICKET, CODE_COUNT};
  if (chance() % 2) *at(offsets[chance() % 21]) = word();
  else if (chance() % 2) *at(CODE_COUNT + 8 * (chance() % 200)) = word();
  else *(volatile uint32_t *)at(TICKETS + chance() % 8192 * 4) = word();
}

static void counts(void) {
  uint64_t n = chance() % 4 ? 0 : some_slot(), record = RECORDS + chance() % 300 * RECORD_SIZE;
  for (int i = 0; i < 8; i++) *slot(n, record + 8 * i) = chance() % 2 ? ~0ul - chance() % 3 : word();
  *slot(n, ERRORS + 16 * (chance() % 1024)) = chance() % 2 ? word() : record << 12 | chance() % 135;
  *slot(n, ERRORS + 16 * (chance() % 1024) + 8) = ~0ul;
  *slot(n, record + 0x40 + 8 * (chance() % 64)) = ~0ul;
}

static void anything(void) {
  in_slot(8 * (chance() % 2 ? chance() % 0xa0 : chance() % (RECORDS / 8 + 2000)), word());
  *at(8 * (chance() % 2 ? chance() % 0x600 : chance() % (NODES / 8 + 8000))) = word();
  trees();
}

/* Ways that change the mapping itself, once; then calls go on. */
static int image_descriptor(void) {
  char path[300], link[300];
  for (int all = 0; all < 2; all++) {
    snprintf(path, sizeof path, all ? "/proc/%d/fd" : "/proc/self/map_files", watcher());
    DIR *folder = opendir(path);
    struct dirent *e;
    while (folder && (e = readdir(folder))) {
      char file[600];
      memset(link, 0, sizeof link);
      snprintf(file, sizeof file, "%s/%s", path, e->d_name);
      if (readlink(file, link, sizeof link - 1) < 0 || !strstr(link, "memfd:systoll")) continue;
      int fd = open(file, O_RDWR);
      struct stat s;
      /* An image, by its size; of siblings we would not know ours, whose number is in it. */
      uint64_t id = 0;
      if (fd >= 0 && fstat(fd, &s) == 0 && s.st_size > 1l << 33 && pread(fd, &id, 8, ID) == 8 && id == *at(ID)) return fd;
      if (fd >= 0) close(fd);
    }
    if (folder) closedir(folder);
  }
  return -1;
}

static void change_mapping(const char *way) {
  char *image = (char *)IMAGE;
  uint64_t size = SLOTS + SLOT_COUNT * SLOT_SIZE;
  int fd = strcmp(way, "unmapped") ? image_descriptor() : -1;
  if (!strcmp(way, "unmapped")) munmap(image, size);
  if (!strcmp(way, "moved")) mremap(image, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, 0x300000000000);
  if (!strcmp(way, "twice")) mremap(image, 0, size, MREMAP_MAYMOVE);
  if (!strcmp(way, "private") && fd >= 0) mmap(image, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd, 0);
  if (!strcmp(way, "anonymous")) mmap(image, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE | MAP_ANONYMOUS, -1, 0);
  if (!strcmp(way, "readonly")) mprotect(image, size, PROT_READ);
  if (!strcmp(way, "punched")) madvise(image, SLOTS + 80 * SLOT_SIZE, MADV_REMOVE);
  if (!strcmp(way, "sealed") && fd >= 0) fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
  if (!strcmp(way, "closed") && fd >= 0) fcntl(fd, F_ADD_SEALS, 1 /* F_SEAL_SEAL */);
  if (!strcmp(way, "truncated") && fd >= 0) ftruncate(fd, 0), ftruncate(fd, 4096), ftruncate(fd, 1l << 50);
  if (!strcmp(way, "filled")) {
    *at(NEXT_SLOT) = *at(GIVEN) = 5000;
    for (uint64_t page = NODES; page < SLOTS; page += 4096) *at(page) = page;
    for (uint64_t page = SLOTS; page < SLOTS + (2ul << 30); page += 4096) {
      if (page % SLOT_SIZE == 0) *at(page + SELF) = IMAGE + page, *at(page + PID) = getpid();
      *at(page + 0x800) = ~page;
    }
  }
  if (fd >= 0 && strcmp(way, "held")) close(fd);
}

static int ends_at_once;

static void *come_and_go(void *seed) {
  (void)seed;
  syscall(SYS_getppid);
  return 0;
}

/* Calls of all kinds, as long as it goes well. */
static void *work(void *seed) {
  uint64_t own = (uint64_t)seed * 2654435761u + 1;
  int is_root = geteuid() == 0;
  for (unsigned n = 0; !ends_at_once; n++) {
    own ^= own << 13, own ^= own >> 7, own ^= own << 17;
    pthread_t thread;
    int child;
    char byte;
    switch (own % 16) {
      case 0:
        if (!pthread_create(&thread, 0, come_and_go, 0)) pthread_join(thread, 0);
        break;
      case 1:
        if (n % 4 == 0 && !(child = fork())) _exit(syscall(SYS_getppid) == 0);
        break;
      case 2:
        if (n % 8 == 0 && !(child = vfork())) execl("/bin/true", "true", (char *)0), _exit(1);
        break;
      case 3:
        if (is_root && n % 8 == 0 && !(child = fork())) {
          syscall(SYS_setresuid, 65534, 65534, 65534);
          for (int i = 0; i < 20; i++) anything(), syscall(SYS_getppid);
          _exit(0);
        }
        break;
      case 4:
        munmap(mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
        break;
      case 5: syscall(SYS_getuid), syscall(own % 470 == 60 || own % 470 == 231 ? 39 : 39); break;
      case 6: close(open("/etc/passwd", O_RDONLY)); break;
      case 7: close(open("/nowhere", O_RDONLY)); break;
      case 8: read(-1, &byte, 1); break;
      case 9: execl("/nowhere", "nowhere", (char *)0); break;
      default: getppid();
    }
    while (waitpid(-1, 0, WNOHANG) > 0)
      ;
  }
  return 0;
}

int main(int argc, char **argv) {
  const char *way = argc > 1 ? argv[1] : "random";
  static const struct {
    const char *name;
    void (*vandalise)(void);
  } ways[] = {{"parents", parents}, {"queue", queue}, {"handshake", handshake}, {"trees", trees}, {"header", header}, {"counts", counts}, {"random", anything}};
  void (*vandalise)(void) = 0, (*all[7])(void);
  for (int i = 0; i < 7; i++) {
    all[i] = ways[i].vandalise;
    if (!strcmp(way, ways[i].name)) vandalise = all[i];
  }
  uint64_t seed = argc > 2 ? strtoul(argv[2], 0, 10) : 1;
  double end = now() + (argc > 3 ? atof(argv[3]) : 1);
  signal(SIGPIPE, SIG_IGN);
  for (int life = 0; now() < end && life < 1000; life++) {
    random_state = (seed * 1000003 + life) * 0x9e3779b97f4a7c15ul | 1;
    int child = fork();
    if (child < 0) break;
    if (child) {
      int status;
      while (waitpid(child, &status, 0) != child && errno == EINTR)
        ;
      continue;
    }
    alarm(argc > 3 ? 1 + atoi(argv[3]) : 2);
    for (uintptr_t i = 1; i <= 3; i++) {
      pthread_t thread;
      pthread_create(&thread, 0, work, (void *)(seed * 7 + i + life * 3));
    }
    usleep(chance() % 20000);
    if (!vandalise) change_mapping(way);
    while (now() < end) {
      if (vandalise && !strcmp(way, "random"))
        for (int i = chance() % 7, n = 0; n < 30; n++) all[chance() % 4 ? i : chance() % 7]();
      else if (vandalise) vandalise();
      else getppid();
      if (chance() % 16 == 0) usleep(chance() % 300);
    }
    ends_at_once = 1;
    if (chance() % 2) syscall(SYS_exit_group, 0);
    _exit(0);
  }
  return 0;
}
