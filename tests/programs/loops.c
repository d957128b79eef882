/* Sixteen functions, one after the other, each with a loop that asks for a missing name 2,000 times, faster than a launcher
 * reads what is looked at. tests/suites/ledgers.py */
#include <sys/stat.h>

#define ASKS(n)                                                                                                        \
	__attribute__((noinline)) static void asks_##n(void)                                                                 \
	{                                                                                                                    \
		struct stat s;                                                                                                     \
		for (int i = 0; i < 2000; i++)                                                                                     \
			stat("/nowhere/" #n, &s);                                                                                        \
		__asm__ volatile("");                                                                                              \
	}
#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define CALLS(n) asks_##n();

EACH(ASKS)

int main(void)
{
	EACH(CALLS)
	return 0;
}
