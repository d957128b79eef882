/* Lines wrapped to the terminal's width. The sick twin asks for it with each; the cured one once. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>
static int width(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) ? 80 : size.ws_col;
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 20000, columns = width();
    long lines = 0;
    for (int i = 0; i < n; i++) {
#ifndef CURED
        columns = width();
#endif
        lines += (i % 300 + columns - 1) / columns;
    }
    printf("%ld\n", lines);
    return 0;
}
