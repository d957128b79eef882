/* Stores into a table of 64 pages that is else read only. The sick twin opens the page of each store, the cured one
 * the table for all of them. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
enum { PAGE = 4096, PAGES = 64 };
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 20000;
    unsigned char *table = mmap(0, PAGE * PAGES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
#ifdef CURED
    mprotect(table, PAGE * PAGES, PROT_READ | PROT_WRITE);
#endif
    for (int i = 0; i < n; i++) {
        unsigned char *page = table + (long)PAGE * (i * 7 % PAGES);
#ifndef CURED
        mprotect(page, PAGE, PROT_READ | PROT_WRITE);
#endif
        page[i % PAGE]++;
#ifndef CURED
        mprotect(page, PAGE, PROT_READ);
#endif
    }
#ifdef CURED
    mprotect(table, PAGE * PAGES, PROT_READ);
#endif
    long sum = 0;
    for (int i = 0; i < PAGE * PAGES; i++)
        sum += table[i];
    printf("%ld\n", sum);
    return 0;
}
