/* The program of the docs' pictures: a log whose every line has the time in it. */
#include <stdio.h>
#include <time.h>

static void log_line(FILE *to, time_t at) {
  char text[64];
  strftime(text, sizeof text, "%H:%M:%S", localtime(&at));
  fprintf(to, "%s a line\n", text);
}

int main(void) {
  for (time_t at = 0; at < 100000; at++) log_line(stdout, at);
  return 0;
}
