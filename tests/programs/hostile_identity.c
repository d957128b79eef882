/* Changes of credentials at the worst moments.
 *
 *   hostile_identity HOW SEED
 *
 * Says how many children came back and how many calls of getppid were made by those that were let live,
 * itself included. */
#include "hostile.h"
#include <sys/eventfd.h>
#include <sys/socket.h>

#define LET_GO 65534

static volatile int go;
static int calls_each = 10;

static void change(void) { syscall(SYS_setresuid, LET_GO, LET_GO, LET_GO); }

static void *changes(void *unused) {
  while (!go) sched_yield();
  for (int i = 0; i < calls_each; i++) {
    syscall(SYS_getppid);
    if (i == calls_each / 2) change();
  }
  return unused;
}

static int crowd(int threads) {
  pthread_t all[64];
  int made = 0;
  while (made < threads && !pthread_create(&all[made], 0, changes, 0)) made++;
  go = 1;
  for (int i = 0; i < made; i++) pthread_join(all[i], 0);
  return made == threads ? 0 : 3;
}

static int stop_swapping;

/* Other files come to lie where one has just been made. */
static void *swaps(void *unused) {
  int files[6], pair[2];
  struct linger linger = {1, 3600};
  socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
  files[0] = pair[0];
  files[1] = eventfd(0, 0);
  files[2] = open("/dev/zero", O_RDWR);
  files[3] = syscall(SYS_memfd_create, "systoll", 2);
  files[4] = syscall(SYS_memfd_create, "huge", 2 | 4);
  files[5] = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(files[5], SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
  while (!stop_swapping)
    for (int fd = 9; fd < 24; fd++) {
      if (chance() % 3) dup2(files[chance() % 6], fd);
      else close(fd);
      if (chance() % 64 == 0 && files[3] >= 0) ftruncate(files[3], chance() % 9000);
    }
  return unused;
}

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "burst";
  random_state = (argc > 2 ? strtoul(argv[2], 0, 10) : 1) * 0x9e3779b97f4a7c15ul | 1;
  int children = !strcmp(how, "threads") ? 2 : !strcmp(how, "killed") ? 30 : 8, back = 0;
  int threads = !strcmp(how, "threads") ? 50 : !strcmp(how, "burst") ? 12 : 3;
  long calls = 0;
  int pids[64];
  for (int n = 0; n < children; n++) {
    int vforks = !strcmp(how, "vfork");
    pids[n] = vforks ? vfork() : fork();
    if (vforks && !pids[n]) {
      change();
      execl("/bin/true", "true", (char *)0);
      _exit(1);
    }
    if (!pids[n]) {
      if (!strcmp(how, "nofile")) setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, 3});
      if (!strcmp(how, "swapped")) {
        pthread_t thread;
        for (int i = 0; i < 20; i++) open("/dev/null", O_RDWR);
        pthread_create(&thread, 0, swaps, 0);
        usleep(chance() % 3000);
        for (int i = 0; i < calls_each; i++) syscall(SYS_getppid);
        change();
        stop_swapping = 1;
        _exit(0);
      }
      if (!strcmp(how, "undumpable")) prctl(PR_SET_DUMPABLE, 0);
      _exit(crowd(threads));
    }
    if (!strcmp(how, "killed")) {
      usleep(chance() % 4000);
      kill(pids[n], SIGKILL);
    } else if (!vforks)
      calls += calls_each * (!strcmp(how, "swapped") ? 1 : threads);
  }
  for (int i = 0; i < 500; i++) syscall(SYS_getppid);
  for (int n = 0; n < children; n++) {
    int status;
    back += waitpid(pids[n], &status, 0) == pids[n] && (status == 0 || !strcmp(how, "killed"));
  }
  printf("%d of %d came back, %ld calls\n", back, children, calls + 500);
  return 0;
}
