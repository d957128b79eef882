/* Requests that are looked up in a table. The sick twin reads the table's file for each; the cured one once. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char table[128 << 10];
static void load(void)
{
    int fd = open("table.txt", O_RDONLY);
    if (fd < 0 || read(fd, table, sizeof table) != sizeof table) exit(1);
    close(fd);
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 4000;
    long found = 0;
    load();
    for (int i = 0; i < n; i++) {
#ifndef CURED
        load();
#endif
        found += memchr(table + i % 1000, 'z', 200) != 0;
    }
    printf("%ld\n", found);
    return 0;
}
