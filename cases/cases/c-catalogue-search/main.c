/* Messages in the user's language. The sick twin looks for their catalogue each time, though there is none; the
 * cured one remembers that there is none. */
#include <stdio.h>
#include <stdlib.h>
static int translated(int i)
{
    static int absent;
    if (absent) return 0;
    FILE *f = fopen("/usr/share/locale/xx_YY/LC_MESSAGES/systoll-case.mo", "r");
    if (f) return fclose(f) == 0;
#ifdef CURED
    absent = 1;
#endif
    return i < 0;
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 20000;
    long plain = 0;
    for (int i = 0; i < n; i++) plain += !translated(i);
    printf("%ld\n", plain);
    return 0;
}
