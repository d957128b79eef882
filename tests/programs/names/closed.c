/* Calls through two libraries in turn, each closed before the next is opened: their code may stand
 * at the same place. `closed FIRST.so SECOND.so` */
#include <dlfcn.h>
#include <unistd.h>

#ifdef LIBRARY
int FUNCTION(void);
int FUNCTION(void)
{
	return CALL(0) < 0;
}
#else
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		void *library = dlopen(argv[i], RTLD_NOW);
		int (*function)(void) = library ? (int (*)(void))dlsym(library, i == 1 ? "first" : "second") : 0;
		if (!function || function())
			return 1;
		dlclose(library);
	}
	return argc != 3;
}
#endif
