#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

constexpr int workers = 4, rows = 40;
static uint64_t part[workers][rows];

// Reads a sector from a disk with a cache: some cost more than others.
static uint64_t fetch(int w, int row) {
    uint32_t x = (w * 40503u + row * 2654435761u) >> 7;
    std::this_thread::sleep_for(std::chrono::milliseconds((row + w) % workers == 0 ? 30 : 3));
    return x % 1009;
}

int main() {
    std::barrier sync(workers);
    std::vector<std::thread> ts;
    for (int w = 0; w < workers; w++)
        ts.emplace_back([&, w] {
            for (int row = 0; row < rows; row++) {
                part[w][row] = fetch(w, row);
            }
        });
    for (auto &t : ts) t.join();
    (void)sync;
    for (int row = 0; row < rows; row++) {
        uint64_t sum = 0;
        for (int w = 0; w < workers; w++) sum += part[w][row];
        printf("row %d: %llu\n", row, (unsigned long long)sum);
    }
}
