/* Says its pid, waits for a line below functions with names, and goes on. */
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) int innermost(void)
{
    char line[8];
    int n = read(0, line, sizeof line);
    return n + 1;
}

__attribute__((noinline)) int middle(void)
{
    return innermost() * 2;
}

int main(void)
{
    printf("ready %d\n", getpid());
    fflush(stdout);
    int n = middle();
    puts("went on");
    return n == 6 ? 5 : 1;
}
