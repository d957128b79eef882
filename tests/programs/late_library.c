/* Waits for a file, then loads a library that makes its own system calls, and uses it.
 *
 *   late_library READY GO LIBRARY   writes READY once it waits for GO; says how many calls the library made
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  close(open(argv[1], O_CREAT | O_WRONLY, 0644));
  while (access(argv[2], F_OK)) usleep(10000);
  void *library = dlopen(argv[3], RTLD_NOW);
  int (*calls)(int) = library ? (int (*)(int))dlsym(library, "calls") : 0;
  if (!calls) return 3;
  printf("%d calls\n", calls(1000));
  return 0;
}
