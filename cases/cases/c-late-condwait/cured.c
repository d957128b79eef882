#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A request table: submit() hands a request to the I/O thread, wait_done() waits for its completion. */
#define N 12
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t todo = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static int next_req = -1, answer[N], complete[N];

static void *io_thread(void *arg)
{
	(void)arg;
	for (int n = 0; n < N; n++) {
		pthread_mutex_lock(&mu);
		while (next_req < n)
			pthread_cond_wait(&todo, &mu);
		pthread_mutex_unlock(&mu);
		int a = n * n + 3;
		pthread_mutex_lock(&mu);
		answer[n] = a;
		complete[n] = 1;
		pthread_cond_signal(&done);
		pthread_mutex_unlock(&mu);
	}
	return NULL;
}

static void submit(int n)
{
	pthread_mutex_lock(&mu);
	next_req = n;
	pthread_cond_signal(&todo);
	pthread_mutex_unlock(&mu);
}

static void journal(int n)
{
	struct timespec t = {0, 5 * 1000 * 1000}; /* the journal's device */
	(void)n;
	nanosleep(&t, NULL);
}

static int wait_done(int n)
{
	struct timespec end;
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_nsec += 100 * 1000 * 1000;
	if (end.tv_nsec >= 1000000000) {
		end.tv_nsec -= 1000000000;
		end.tv_sec++;
	}
	pthread_mutex_lock(&mu);
	while (!complete[n]) {
		int e = pthread_cond_timedwait(&done, &mu, &end);
		if (e == ETIMEDOUT)
			break;
	}
	int a = complete[n] ? answer[n] : -1;
	pthread_mutex_unlock(&mu);
	return a;
}

int main(void)
{
	pthread_t t;
	pthread_create(&t, NULL, io_thread, NULL);
	for (int n = 0; n < N; n++) {
		submit(n);
		journal(n);
		printf("request %d: %d\n", n, wait_done(n));
	}
	pthread_join(t, NULL);
	return 0;
}
