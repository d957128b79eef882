#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void) {
    int fd = open("image.raw", O_RDWR | O_CREAT | O_TRUNC, 0600);
    static char block[4096], buf[1 << 16];
    for (int i = 0; i < 4000; i++) {
        memset(block, i % 251 + 1, sizeof block);
        if (pwrite(fd, block, sizeof block, (off_t)i * 65536 + (i % 5) * 8192) != sizeof block) return 1;
    }
    uint64_t h = 1469598103934665603ull, extents = 0, bytes = 0;
    off_t end = lseek(fd, 0, SEEK_END), at = 0;
    while (at < end) {
        off_t data = lseek(fd, at, SEEK_DATA);
        if (data < 0) break;
        off_t hole = lseek(fd, data, SEEK_HOLE);
        extents++;
        for (off_t p = data; p < hole;) {
            ssize_t n = pread(fd, buf, hole - p < (off_t)sizeof buf ? hole - p : (off_t)sizeof buf, p);
            if (n <= 0) return 1;
            for (int r = 0; r < 8; r++) for (ssize_t k = 0; k < n; k++) h = (h ^ (uint8_t)buf[k]) * 1099511628211ull;
            bytes += n; p += n;
        }
        at = hole;
    }
    close(fd);
    printf("%s extents, %s, %016llx\n", extents ? "some" : "no", bytes >= 4000 * 4096ull ? "all bytes" : "too few", extents == 4000 ? (unsigned long long)h : 0);
}
