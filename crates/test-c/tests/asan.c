/* Work of a program built with AddressSanitizer, counted or between two marks. */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void on_signal(int signal) { (void)signal; getppid(); }

static void work(void) {
    struct stat s;
    for (int i = 0; i < 50; i++) {
        char *copy = strdup("/proc/self/comm");
        int file = open(copy, O_RDONLY);
        char text[16];
        if (read(file, text, sizeof text) < 0 || stat(copy, &s)) abort();
        close(file);
        free(copy);
    }
    struct sigaction action = {.sa_handler = on_signal};
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
}

int main(int argc, char **argv) {
    struct stat s;
    if (argc != 3) return 2;
    work();
    if (!strcmp(argv[1], "plain")) {
        stat("/systoll-mark", &s);
        work();
        stat("/systoll-mark", &s);
        return 0;
    }
    void *library = dlopen(argv[2], RTLD_NOW);
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
    char *(*begin)(void *) = (char *(*)(void *))dlsym(library, "systoll_block_begin");
    void *(*end)(void) = (void *(*)(void))dlsym(library, "systoll_block_end");
    char *(*counts)(void *) = (char *(*)(void *))dlsym(library, "systoll_block_counts");
    void (*free_block)(void *) = (void (*)(void *))dlsym(library, "systoll_block_free");
    void (*free_text)(void *) = (void (*)(void *))dlsym(library, "systoll_block_free_text");
    char *why = begin(NULL);
    if (why) return printf("skipped: %s\n", why), 0;
    work();
    void *ended = end();
    char *text = counts(ended);
    puts(text);
    free_text(text);
    free_block(ended);
    return 0;
}
