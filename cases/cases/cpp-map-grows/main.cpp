// Rows are appended to a file and read back through a mapping.
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

constexpr size_t ROW = 256;

int main(int, char **argv) {
    bool sick = argv[1][0] == 's';
    size_t rows = std::atoi(argv[2]);
    int fd = open("rows.bin", O_RDWR | O_CREAT | O_TRUNC, 0600);
    char *base = sick ? nullptr : static_cast<char *>(mmap(nullptr, rows * ROW, PROT_READ, MAP_SHARED, fd, 0));
    unsigned long sum = 0;
    for (size_t n = 0; n < rows; n++) {
        unsigned char row[ROW];
        for (size_t i = 0; i < ROW; i++) row[i] = static_cast<unsigned char>(n * 7 + i);
        if (pwrite(fd, row, ROW, n * ROW) != static_cast<ssize_t>(ROW)) abort();
        if (sick) {
            if (base) munmap(base, n * ROW);
            base = static_cast<char *>(mmap(nullptr, (n + 1) * ROW, PROT_READ, MAP_SHARED, fd, 0));
        }
        for (size_t i = 0; i < ROW; i++) sum += static_cast<unsigned char>(base[n * ROW + i]);
    }
    std::printf("%lu\n", sum);
    unlink("rows.bin");
}
