/* A program that loads libraries and lets them go again, all the time. Ends when standard input does: exit code 0 if each could be loaded
 * and has the function that it should have.
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>

int main(void) {
    static const char *const libraries[][2] = {
        {"libm.so.6", "cos"}, {"libresolv.so.2", "ns_name_ntop"}, {"libnss_compat.so.2", "_nss_compat_getpwnam_r"},
        {"libanl.so.1", 0}, {"libutil.so.1", 0},
    };
    struct pollfd in = {0, POLLIN, 0};
    puts("ready");
    fflush(stdout);
    for (unsigned n = 0; poll(&in, 1, 0) == 0; n++) {
        const char *const *which = libraries[n % 5];
        void *library = dlopen(which[0], RTLD_NOW);
        if (!library || which[1] && !dlsym(library, which[1])) {
            fprintf(stderr, "%s: %s\n", which[0], dlerror());
            return 1;
        }
        if (dlclose(library)) return 2;
    }
    return 0;
}
