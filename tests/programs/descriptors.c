/* One descriptor of every kind, numbered from 50, each used a few times by calls that tell its kind. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static int next = 50;

static int as(int fd) {
  if (fd < 0 || dup2(fd, next) < 0) exit(1);
  close(fd);
  return next++;
}

int main(void) {
  char byte = 'x';
  int fds[2], one = 1;
  as(open("/etc/passwd", O_RDONLY));
  as(open("/dev/null", O_RDWR));
  as(open("doomed", O_RDWR | O_CREAT, 0600));
  unlink("doomed");
  as(memfd_create("mine", 0));
  as(epoll_create1(0));
  as(eventfd(1, EFD_NONBLOCK));
  as(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK));
  if (pipe(fds)) return 1;
  as(fds[0]), as(fds[1]);

  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof at;
  int listening = as(socket(AF_INET, SOCK_STREAM, 0));
  if (bind(listening, (void *)&at, length) || listen(listening, 1)) return 1;
  getsockname(listening, (void *)&at, &length);
  int client = as(socket(AF_INET, SOCK_STREAM, 0));
  if (connect(client, (void *)&at, length)) return 1;
  int server = as(accept(listening, 0, 0));
  /* Long enough for whoever wants to look at the ends. */
  struct timespec moment = {0, 60000000};
  for (int i = 0; i < 6; i++) {
    if (send(client, &byte, 1, 0) != 1 || recv(server, &byte, 1, 0) != 1) return 1;
    if (send(server, &byte, 1, MSG_NOSIGNAL) != 1 || recv(client, &byte, 1, 0) != 1) return 1;
    if (i < 2) nanosleep(&moment, 0);
  }
  struct stat stat;
  for (int fd = 50; fd < next; fd++) {
    fstat(fd, &stat);
    fcntl(fd, F_GETFL);
    if (fd < listening) (void)!ioctl(fd, 0x5421 /* FIONBIO */, &one);
  }
  return 0;
}
