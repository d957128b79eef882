/* Steps that stop where memory runs out. The sick twin asks at each; the cured one at each thousandth. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysinfo.h>
#ifdef CURED
enum { EVERY = 1000 };
#else
enum { EVERY = 1 };
#endif
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 20000;
    long steps = 0;
    struct sysinfo box;
    for (int i = 0; i < n; i++) {
        if (i % EVERY == 0 && (sysinfo(&box) || !box.freeram)) return 1;
        steps++;
    }
    printf("%ld\n", steps);
    return 0;
}
