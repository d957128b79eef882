/* Sleeps made from given places take a part of their time: nanosleep, clock_nanosleep, usleep, sleep, and poll, select and
 * epoll_wait with a timeout. Nothing else is changed: what is ready is reported at once, as ever.
 *
 * SYSTOLL_SHORTEN holds thousandths of the time, and places: 500 app+4f3a libx.so.1+11d0. A place is a file's
 * name without folders and the address in it, in hex, of the instruction that calls the function, or of its last byte. Facts: nanosleep(2), select(2), dl_iterate_phdr(3). */
#include "kernel.h"
#include <stddef.h>
#include <stdint.h>

struct timespec {
    long sec, nsec;
};
struct timeval {
    long sec, usec;
};
/* The same in glibc's and musl's link.h, up to the fields that are used. */
struct program_header {
    uint32_t type, flags;
    uint64_t offset, vaddr, paddr, filesz, memsz, align;
};
struct object {
    uint64_t bias;
    const char *name;
    const struct program_header *headers;
    uint16_t count;
};

enum { SYS_poll = 7, SYS_select = 23, SYS_nanosleep = 35, SYS_readlink = 89, SYS_clock_gettime = 228 };
enum { SYS_clock_nanosleep = 230, SYS_epoll_wait = 232, SYS_pselect6 = 270, SYS_ppoll = 271, SYS_epoll_pwait = 281 };
enum { PT_LOAD = 1, TIMER_ABSTIME = 1, SECOND = 1000000000, MASK = 8, EINVAL = 22, EINTR = 4 };
/* Bytes of a call instruction, at most; what follows one that sleeps needs more before the next. */
enum { CALL = 7, MOST_SECONDS = INT32_MAX / 1024 };
enum { PLACES = 64, WHOLE = 1000, PATH = 4096 };
#define RTLD_NEXT ((void *)-1l)

extern char **environ;
extern __attribute__((weak)) void *dlsym(void *handle, const char *name);
extern __attribute__((weak)) int dl_iterate_phdr(int (*each)(struct object *, size_t, void *), void *data);

static struct {
    const char *file;
    size_t length;
    uint64_t address;
} places[PLACES];
static unsigned known;
static long part = WHOLE;
static char program[PATH];

/* Returns a file's name without its folders, and its length. */
static const char *base(const char *path, size_t *length)
{
    const char *last = path, *at = path;
    for (; *at; at++)
        if (*at == '/')
            last = at + 1;
    *length = (size_t)(at - last);
    return last;
}

static int same(const char *one, const char *other, size_t length)
{
    while (length && *one == *other)
        one++, other++, length--;
    return !length;
}

struct question {
    uint64_t address;
    int found;
};

static int look(struct object *object, size_t size, void *data)
{
    (void)size;
    struct question *question = data;
    uint64_t at = question->address - object->bias;
    int inside = 0;
    for (unsigned n = 0; n < object->count; n++) {
        const struct program_header *header = &object->headers[n];
        inside |= header->type == PT_LOAD && at - header->vaddr < header->memsz;
    }
    if (!inside)
        return 0;
    size_t length;
    const char *name = base(object->name && *object->name ? object->name : program, &length);
    for (unsigned n = 0; n < known; n++)
        question->found |= at > places[n].address && at - places[n].address <= CALL && places[n].length == length && same(places[n].file, name, length);
    return 1;
}

/* Whether a call that returns to this address is one of those to be shortened. */
static int is_meant(void *address)
{
    struct question question = { (uint64_t)address, 0 };
    if (known && dl_iterate_phdr)
        dl_iterate_phdr(look, &question);
    return question.found;
}

static __attribute__((constructor)) void read_places(void)
{
    static const char name[] = "SYSTOLL_SHORTEN=";
    const char *at = 0;
    for (char **all = environ; all && *all; all++)
        if (same(*all, name, sizeof name - 1))
            at = *all + sizeof name - 1;
    if (!at)
        return;
    long length = kernel(SYS_readlink, (long)"/proc/self/exe", (long)program, PATH - 1, 0, 0, 0);
    program[length > 0 ? length : 0] = 0;
    long thousandths = 0;
    for (; *at >= '0' && *at <= '9'; at++)
        thousandths = thousandths * 10 + (*at - '0');
    while (*at == ' ' && known < PLACES) {
        const char *file = ++at;
        const char *plus = 0;
        for (; *at && *at != ' '; at++)
            if (*at == '+')
                plus = at;
        uint64_t address = 0;
        for (const char *digit = plus ? plus + 1 : at; digit < at; digit++)
            address = address * 16 + (uint64_t)(*digit <= '9' ? *digit - '0' : *digit - 'a' + 10);
        places[known].file = file;
        places[known].length = plus ? (size_t)(plus - file) : 0;
        places[known++].address = address;
    }
    if (thousandths > 0 && thousandths < WHOLE)
        part = thousandths;
}

/* Other libraries' functions of these names: with them a sleep can still be cancelled. */
static void *next(void **kept, const char *name)
{
    void *found = __atomic_load_n(kept, __ATOMIC_RELAXED);
    if (!found && dlsym) {
        found = dlsym(RTLD_NEXT, name);
        __atomic_store_n(kept, found, __ATOMIC_RELAXED);
    }
    return found;
}
#define NEXT(name) static void *kept; __typeof__(&name) other = (__typeof__(&name))next(&kept, #name)

/* Whether it is a time to shorten: one of years stays as it is. */
static int is_time(const struct timespec *time)
{
    return time && time->sec >= 0 && time->sec < MOST_SECONDS && time->nsec >= 0 && time->nsec < SECOND;
}

static struct timespec times(struct timespec time, long of, long by)
{
    uint64_t ns = (uint64_t)time.sec * SECOND + (uint64_t)time.nsec;
    ns = ns / (uint64_t)by * (uint64_t)of + ns % (uint64_t)by * (uint64_t)of / (uint64_t)by;
    return (struct timespec){ (long)(ns / SECOND), (long)(ns % SECOND) };
}

static int raw(long result)
{
    return (int)told(result);
}

static int sleep_for(const struct timespec *time, struct timespec *left);

int nanosleep(const struct timespec *time, struct timespec *left)
{
    NEXT(nanosleep);
    if (!is_meant(__builtin_return_address(0)) || !is_time(time))
        return other ? other(time, left) : raw(kernel(SYS_nanosleep, (long)time, (long)left, 0, 0, 0, 0));
    return sleep_for(time, left);
}

/* Sleeps for a part of the time. If a signal ends the sleep, the time left is given as that of the whole sleep. */
static int sleep_for(const struct timespec *time, struct timespec *left)
{
    static void *kept;
    int (*other)(const struct timespec *, struct timespec *) = next(&kept, "nanosleep");
    struct timespec less = times(*time, part, WHOLE), rest = { 0, 0 };
    int result = other ? other(&less, &rest) : raw(kernel(SYS_nanosleep, (long)&less, (long)&rest, 0, 0, 0, 0));
    if (result && left)
        *left = times(rest, WHOLE, part);
    return result;
}

/* Returns the error, as pthread's functions do. */
int clock_nanosleep(int clock, int flags, const struct timespec *time, struct timespec *left)
{
    NEXT(clock_nanosleep);
    struct timespec less, rest = { 0, 0 }, now;
    int meant = is_meant(__builtin_return_address(0)) && is_time(time);
    if (meant && flags & TIMER_ABSTIME) {
        meant = kernel(SYS_clock_gettime, clock, (long)&now, 0, 0, 0, 0) == 0;
        long long ahead = (time->sec - now.sec) * (long long)SECOND + time->nsec - now.nsec;
        meant = meant && time->sec - now.sec < MOST_SECONDS && ahead > 0;
        if (meant) {
            less = times((struct timespec){ ahead / SECOND, ahead % SECOND }, part, WHOLE);
            less.sec += now.sec + (less.nsec + now.nsec) / SECOND;
            less.nsec = (less.nsec + now.nsec) % SECOND;
        }
    } else if (meant) {
        less = times(*time, part, WHOLE);
    }
    if (!meant)
        return other ? other(clock, flags, time, left) : -(int)kernel(SYS_clock_nanosleep, clock, flags, (long)time, (long)left, 0, 0);
    int result = other ? other(clock, flags, &less, &rest) : -(int)kernel(SYS_clock_nanosleep, clock, flags, (long)&less, (long)&rest, 0, 0);
    if (result == EINTR && left && !(flags & TIMER_ABSTIME))
        *left = times(rest, WHOLE, part);
    return result;
}

int usleep(unsigned us)
{
    NEXT(usleep);
    struct timespec time = { us / 1000000, us % 1000000 * 1000 };
    if (is_meant(__builtin_return_address(0)))
        return sleep_for(&time, 0);
    return other ? other(us) : raw(kernel(SYS_nanosleep, (long)&time, 0, 0, 0, 0, 0));
}

unsigned sleep(unsigned seconds)
{
    NEXT(sleep);
    struct timespec time = { seconds, 0 }, left = { 0, 0 };
    if (is_meant(__builtin_return_address(0)))
        return sleep_for(&time, &left) ? (unsigned)left.sec + (left.nsec > 0) : 0;
    if (other)
        return other(seconds);
    return kernel(SYS_nanosleep, (long)&time, (long)&left, 0, 0, 0, 0) ? (unsigned)left.sec : 0;
}

static int less_ms(int timeout)
{
    return timeout > 0 ? (int)(((long)timeout * part + WHOLE - 1) / WHOLE) : timeout;
}

int poll(void *all, unsigned long count, int timeout)
{
    NEXT(poll);
    if (is_meant(__builtin_return_address(0)))
        timeout = less_ms(timeout);
    return other ? other(all, count, timeout) : raw(kernel(SYS_poll, (long)all, (long)count, timeout, 0, 0, 0));
}

int ppoll(void *all, unsigned long count, const struct timespec *timeout, const void *mask)
{
    NEXT(ppoll);
    struct timespec less;
    if (is_meant(__builtin_return_address(0)) && is_time(timeout)) {
        less = times(*timeout, part, WHOLE);
        timeout = &less;
    }
    if (other)
        return other(all, count, timeout, mask);
    struct timespec copy = timeout ? *timeout : (struct timespec){ 0, 0 };
    return raw(kernel(SYS_ppoll, (long)all, (long)count, timeout ? (long)&copy : 0, (long)mask, MASK, 0));
}

int select(int count, void *in, void *out, void *others, struct timeval *timeout)
{
    NEXT(select);
    struct timespec whole = timeout ? (struct timespec){ timeout->sec, timeout->usec * 1000 } : (struct timespec){ -1, 0 };
    if (!is_meant(__builtin_return_address(0)) || !is_time(&whole))
        return other ? other(count, in, out, others, timeout) : raw(kernel(SYS_select, count, (long)in, (long)out, (long)others, (long)timeout, 0));
    whole = times(whole, part, WHOLE);
    struct timeval less = { whole.sec, whole.nsec / 1000 };
    int result = other ? other(count, in, out, others, &less) : raw(kernel(SYS_select, count, (long)in, (long)out, (long)others, (long)&less, 0));
    /* The kernel says what is left. */
    struct timespec left = times((struct timespec){ less.sec, less.usec * 1000 }, WHOLE, part);
    *timeout = (struct timeval){ left.sec, left.nsec / 1000 };
    return result;
}

int pselect(int count, void *in, void *out, void *others, const struct timespec *timeout, const void *mask)
{
    NEXT(pselect);
    struct timespec less;
    if (is_meant(__builtin_return_address(0)) && is_time(timeout)) {
        less = times(*timeout, part, WHOLE);
        timeout = &less;
    }
    if (other)
        return other(count, in, out, others, timeout, mask);
    struct timespec copy = timeout ? *timeout : (struct timespec){ 0, 0 };
    struct {
        const void *mask;
        size_t size;
    } both = { mask, MASK };
    return raw(kernel(SYS_pselect6, count, (long)in, (long)out, (long)others, timeout ? (long)&copy : 0, (long)&both));
}

int epoll_wait(int set, void *events, int most, int timeout)
{
    NEXT(epoll_wait);
    if (is_meant(__builtin_return_address(0)))
        timeout = less_ms(timeout);
    return other ? other(set, events, most, timeout) : raw(kernel(SYS_epoll_wait, set, (long)events, most, timeout, 0, 0));
}

int epoll_pwait(int set, void *events, int most, int timeout, const void *mask)
{
    NEXT(epoll_pwait);
    if (is_meant(__builtin_return_address(0)))
        timeout = less_ms(timeout);
    return other ? other(set, events, most, timeout, mask) : raw(kernel(SYS_epoll_pwait, set, (long)events, most, timeout, (long)mask, MASK));
}
