#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

int main() {
    constexpr size_t window = 256 << 10, size = 160 << 20;
    int fd = open("big.dat", O_RDWR | O_CREAT | O_TRUNC, 0600);
    std::vector<uint64_t> block(32 << 10);
    uint64_t x = 1;
    for (size_t at = 0; at < size; at += block.size() * 8) {
        for (auto &v : block) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; v = x; }
        if (write(fd, block.data(), block.size() * 8) != ssize_t(block.size() * 8)) return 1;
    }
    rlimit lim{64 << 20, 64 << 20};       // the plug-in host gives no more than this
    setrlimit(RLIMIT_AS, &lim);
    uint64_t sum = 0;
    for (size_t at = 0; at < size; at += window) {
        void *p = mmap(nullptr, window, PROT_READ, MAP_PRIVATE, fd, at);
        if (p == MAP_FAILED) { perror("mmap"); return 1; }
        auto *v = static_cast<uint64_t *>(p);
        for (int r = 0; r < 12; r++) for (size_t i = 0; i < window / 8; i++) sum = sum * 31 + v[i];
        munmap(p, window);
    }
    printf("%016llx\n", (unsigned long long)sum);
}
