/* Says as whom it runs: set-uid copies must keep their privilege when a watched program calls them. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    printf("euid %d egid %d\n", (int)geteuid(), (int)getegid());
    return 0;
}
