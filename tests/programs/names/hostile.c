/* Functions whose names the test writes over in the built program: names of any bytes, as no compiler takes them.
 * tests/suites/hostile_names.py */
#include <sys/stat.h>

#define ASKS(name, file)                                                                                               \
	__attribute__((noinline)) void name(void)                                                                            \
	{                                                                                                                    \
		struct stat s;                                                                                                     \
		for (int n = 0; n < 2000; n++)                                                                                     \
			stat(file, &s);                                                                                                  \
		__asm__ volatile("");                                                                                              \
	}

ASKS(here_0_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, "/no=<b>0")
ASKS(here_1_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, "/no=<b>1")
ASKS(here_2_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, "/no=<b>2")
ASKS(here_3_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, "/no=<b>3")
ASKS(here_4_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, "/no=<b>4")
ASKS(LONG, "/no=<b>5")

int main(void)
{
	here_0_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx();
	here_1_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx();
	here_2_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx();
	here_3_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx();
	here_4_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx();
	LONG();
	return 0;
}
