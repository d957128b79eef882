/* Forbids itself and what it starts memory that is written and run, then becomes another program. */
#include <sys/prctl.h>
#include <unistd.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif

int main(int argc, char **argv)
{
	(void)argc;
	if (prctl(PR_SET_MDWE, 1L, 0L, 0L, 0L))
		return 77;
	execvp(argv[1], argv + 1);
	return 1;
}
