/* The service of the picture of `systoll top`: two workers that answer made-up requests for half a minute. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static FILE *log_file;

static void read_settings(void) {
  char text[256];
  int file = open("/etc/hostname", O_RDONLY);
  if (file >= 0 && read(file, text, sizeof text) >= 0) close(file);
}

static void log_line(int request) {
  char text[64];
  time_t now = time(0);
  strftime(text, sizeof text, "%H:%M:%S", localtime(&now));
  fprintf(log_file, "%s [%d] request %d\n", text, getpid(), request);
  fflush(log_file);
}

static void next_request(void) {
  struct timespec pause = {0, 200000};
  nanosleep(&pause, 0);
}

static void *serve(void *unused) {
  for (int request = 0;; request++) {
    next_request();
    read_settings();
    for (int line = 0; line < 8; line++) log_line(request);
  }
  return unused;
}

int main(void) {
  pthread_t workers[2];
  log_file = fopen("/dev/null", "w");
  for (int n = 0; n < 2; n++) pthread_create(&workers[n], 0, serve, 0);
  sleep(30);
  return 0;
}
