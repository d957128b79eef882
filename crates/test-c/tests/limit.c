/* A test in C, and in C++: how many files may a function open? Ends with 0 where the counts are right, 77 where there are none. */
#include "systoll_block.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void load(void) {
    for (int i = 0; i < 3; i++) close(open("/proc/self/comm", O_RDONLY));
}

int main(void) {
    char *why = systoll_block_begin(NULL);
    if (why) {
        printf("skipped: %s\n", why);
        systoll_block_free_text(why);
        return 77;
    }
    load();
    systoll_block *block = systoll_block_end();
    char *callers = systoll_block_text(block);
    /* What is called open is made as openat. */
    int right = systoll_block_calls(block, "open") == 3 && systoll_block_calls(block, "openat") == 3
        && systoll_block_calls(block, "total") == 6 && systoll_block_calls(block, "opneat") == UINT64_MAX
        && !systoll_block_incomplete(block) && strstr(callers, "3 x openat: ") != NULL;
    if (!right) printf("%s\n", callers);
    systoll_block_free_text(callers);
    systoll_block_free(block);
    return right ? 0 : 1;
}
