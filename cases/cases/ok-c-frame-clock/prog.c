#include <errno.h>
#include <stdio.h>
#include <time.h>

/* A terminal animation at 50 frames a second: every frame has its time, whatever the drawing took. */
static unsigned draw(unsigned state)
{
	for (int i = 0; i < 20000; i++)
		state = state * 1664525u + 1013904223u;
	return state;
}

int main(void)
{
	struct timespec next;
	unsigned state = 5;
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (int frame = 0; frame < 60; frame++) {
		state = draw(state);
		printf("frame %02d: ball at column %u\n", frame, state >> 26);
		fflush(stdout);
		next.tv_nsec += 20000000;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL) == EINTR)
			;
	}
	return 0;
}
