/* The number of processors, by sysconf, get_nprocs and get_nprocs_conf: asked once, then kept.
 * Everything else that sysconf knows goes on. */

/* The same numbers in glibc's and musl's unistd.h. */
enum { SC_NPROCESSORS_CONF = 83, SC_NPROCESSORS_ONLN = 84 };

/* glibc's sysconf by its other name; musl has none. */
extern __attribute__((weak)) long __sysconf(int name);
extern __attribute__((weak)) void *dlsym(void *handle, const char *name);
#define RTLD_NEXT ((void *)-1l)

static long next(int name)
{
    if (__sysconf)
        return __sysconf(name);
    long (*other)(int) = dlsym ? (long (*)(int))dlsym(RTLD_NEXT, "sysconf") : 0;
    return other ? other(name) : -1;
}

static long kept[2];

static long once(int name)
{
    long *place = &kept[name - SC_NPROCESSORS_CONF];
    long number = __atomic_load_n(place, __ATOMIC_RELAXED);
    if (number <= 0) {
        number = next(name);
        __atomic_store_n(place, number, __ATOMIC_RELAXED);
    }
    return number;
}

long sysconf(int name)
{
    return name == SC_NPROCESSORS_CONF || name == SC_NPROCESSORS_ONLN ? once(name) : next(name);
}

int get_nprocs(void)
{
    return (int)once(SC_NPROCESSORS_ONLN);
}

int get_nprocs_conf(void)
{
    return (int)once(SC_NPROCESSORS_CONF);
}
