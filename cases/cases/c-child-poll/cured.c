#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A build driver: every step is a child; steps depend on one another. */
struct step { const char *name; int arg; };

static int work(int n)
{
	unsigned h = 17;
	for (int i = 0; i < 20000 * n; i++)
		h = h * 31 + (unsigned)i;
	return (int)(h % 50);
}

static pid_t launch(const struct step *s)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(work(s->arg));
	return pid;
}

static int finish(pid_t pid)
{
	int status;
	for (;;) {
		pid_t got = waitpid(pid, &status, 0);
		if (got == pid)
			return WEXITSTATUS(status);
	}
}

int main(void)
{
	static const char *verbs[] = {"fetch", "unpack", "patch", "compile", "link", "strip"};
	int sum = 0;
	for (int i = 0; i < 18; i++) {
		struct step s = {verbs[i % 6], i % 4 + 1};
		int code = finish(launch(&s));
		printf("%s %d -> %d\n", s.name, i / 6, code);
		sum += code;
	}
	printf("total %d\n", sum);
	return 0;
}
