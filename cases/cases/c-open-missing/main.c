/* Items with settings that a file may override. The sick twin tries to open the file each time; the cured one
 * remembers that there is none. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int overridden(void)
{
    static int absent;
    if (absent) return 0;
    int fd = open("/etc/systoll-case/overrides.conf", O_RDONLY);
    if (fd >= 0) return close(fd) == 0;
#ifdef CURED
    absent = 1;
#endif
    return 0;
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 20000;
    long plain = 0;
    for (int i = 0; i < n; i++) plain += !overridden();
    printf("%ld\n", plain);
    return 0;
}
