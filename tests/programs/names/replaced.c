/* Calls after another file has taken its place, as an upgrade does. `replaced OTHER SELF` */
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) static int upgraded(void)
{
	return getsid(0) < 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && rename(argv[1], argv[2]))
		return 1;
	return upgraded();
}
