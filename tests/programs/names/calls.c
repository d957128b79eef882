/* Calls whose names are known. A line that ends in "//= SYSCALL API FUNCTION" makes that system call
 * through that API in that function, and nothing else does; "//+": others do as well; "//?": here or
 * where else it is marked so, as the compiler likes. "-" is no API, "a|b" is either.
 * tests/suites/names.py reads this. */
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "direct.h"

#define OWN __attribute__((noinline, noclone, used))
static volatile long sink;
static int (*volatile pointer)(int) = getpgid;

/* Three deep, and not by tail calls. */
OWN long render(void)
{
	sink += getppid(); //= getppid getppid render
	return sink;
}
OWN long serve(void) { return render() + sink; }
OWN long listen_for(void) { return serve() + sink; }

static inline __attribute__((always_inline)) long inlined(void)
{
	return getsid(0); //= getsid getsid inlined
}
OWN long around(void)
{
	sink += inlined();
	return sink;
}

OWN int compare(const void *a, const void *b)
{
	sink += getuid(); //= getuid getuid compare
	return *(const int *)a - *(const int *)b;
}
OWN void sorted(void)
{
	int v[3] = {3, 1, 2};
	qsort(v, 3, sizeof *v, compare);
	sink += v[0];
}

OWN void *thread(void *p)
{
	sink += geteuid(); //= geteuid geteuid thread
	return p;
}
OWN void handler(int s)
{
	sink += getgid() + s; //= getgid getgid handler
}
OWN void handled(void)
{
	signal(SIGUSR1, handler); //+ rt_sigaction signal handled
	raise(SIGUSR1); //= tgkill|tkill raise handled
	sink++;
}

#ifdef __GLIBC__
static ucontext_t there, back;
OWN void coroutine(void)
{
	sink += getegid(); //= getegid getegid coroutine
}
OWN void switched(void)
{
	static char stack[65536] __attribute__((aligned(64)));
	getcontext(&there); //+ rt_sigprocmask getcontext switched
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof stack;
	there.uc_link = &back;
	makecontext(&there, coroutine, 0);
	swapcontext(&back, &there); //+ rt_sigprocmask swapcontext switched
	sink++;
}
#else
OWN void switched(void) { sink++; }
#endif

static sigjmp_buf jump;
OWN void guarded(void)
{
	if (sigsetjmp(jump, 1) == 0) //+ rt_sigprocmask sigsetjmp guarded
		sink++;
}

OWN void wide(int n)
{
	volatile char here[32] __attribute__((aligned(64)));
	char *more = alloca(n);
	struct tms t;
	more[n - 1] = here[0] = 1;
	sink += times(&t); //= times times wide
	sink += more[n - 1];
}

OWN void pointed(void)
{
	sink += pointer(0); //= getpgid getpgid pointed
}

#ifdef __GLIBC__
OWN int chosen(int n)
{
	return getpriority(PRIO_PROCESS, n) + sink; //= getpriority getpriority chosen
}
static int (*choose(void))(int) { return chosen; }
int picked(int n) __attribute__((ifunc("choose")));
OWN void choosing(void) { sink += picked(0); }
#else
OWN void choosing(void)
{
	sink += getpriority(PRIO_PROCESS, 0); //= getpriority getpriority choosing
}
#endif

OWN void numbered(void)
{
	sink += syscall(SYS_sched_get_priority_max, 1); //= sched_get_priority_max syscall numbered
}
OWN void direct(void)
{
	sink += CALL_DIRECTLY(SYS_sched_get_priority_min, 1); //= sched_get_priority_min - direct
}

/* gcc turns these into jumps, whatever comes before them on the way. */
OWN int last(void)
{
	return umask(022); //? umask umask last
}
OWN void lasting(void)
{
	sink += last(); //? umask umask lasting
}

OWN void told(void)
{
	struct stat st;
	sink += stat("/etc/hosts", &st); //+ newfstatat|stat stat told
	time_t now = 0;
	char text[64];
	struct utsname u;
	sink += uname(&u); //= uname uname told
	char *big = malloc(1 << 20); //+ mmap malloc told
	big[0] = 1;
	free(big); //+ munmap free told
	sink += strftime(text, sizeof text, "%Y", gmtime(&now));
	FILE *f = fopen("/etc/passwd", "r"); //+ openat|open fopen told
	sink += fgetc(f); //+ read|readv fgetc|getc told
	fclose(f); //+ close fclose told
	if (getcwd(text, sizeof text)) //= getcwd getcwd told
		sink++;
}

OWN void below(int n)
{
	if (n)
		below(n - 1);
	else
		sink += sched_yield(); //= sched_yield sched_yield below
	sink++;
}

OWN __attribute__((constructor)) void early(void)
{
	gid_t a, b, c;
	sink += getresgid(&a, &b, &c); //= getresgid getresgid early
}
OWN void late(void)
{
	uid_t a, b, c;
	sink += getresuid(&a, &b, &c); //= getresuid getresuid late
}

int main(void)
{
	pthread_t t;
	atexit(late);
	listen_for();
	around();
	sorted();
	pthread_create(&t, NULL, thread, NULL); //= clone3|clone pthread_create main
	pthread_join(t, NULL);
	handled();
	switched();
	guarded();
	wide(100);
	pointed();
	choosing();
	numbered();
	direct();
	lasting();
	told();
	below(100);
	exit(sink == 1); //= exit_group exit main
}
