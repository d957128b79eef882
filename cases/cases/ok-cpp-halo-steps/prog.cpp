#include <barrier>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>
#include <chrono>

constexpr int workers = 3, width = 600, steps = 150;
static double grid[2][workers * width];

int main() {
    std::barrier sync(workers);
    for (int i = 0; i < workers * width; i++) grid[0][i] = i % 100;
    std::vector<std::thread> ts;
    for (int w = 0; w < workers; w++)
        ts.emplace_back([&, w] {
            for (int s = 0; s < steps; s++) {
                double *from = grid[s & 1], *to = grid[~s & 1];
                for (int i = w * width; i < (w + 1) * width; i++) {
                    double l = from[i ? i - 1 : i], r = from[i + 1 < workers * width ? i + 1 : i];
                    to[i] = (l + r) / 2 * 0.98 + from[i] * 0.02;
                }
                // the instrument beside each worker samples at its own pace
                std::this_thread::sleep_for(std::chrono::microseconds(w == s % workers ? 5000 : 500));
                sync.arrive_and_wait();     // the neighbours' edges of this step are needed in the next
            }
        });
    for (auto &t : ts) t.join();
    double sum = 0;
    for (double v : grid[steps & 1]) sum += v;
    printf("%.6f\n", sum);
}
