#include <barrier>
#include <chrono>
#include <cstdio>
#include <thread>
#include <unistd.h>
#include <vector>

// Four shards crawl their own feeds, one feed a step. Some feeds' hosts are slow.
static int feed(int shard, int step)
{
	int slow = step % 4 == shard ? 60 : 3;
	std::this_thread::sleep_for(std::chrono::milliseconds(slow)); // the host
	return shard * 1000 + step * 3;
}

int main()
{
	constexpr int shards = 4, steps = 20;
	std::vector<long> sums(shards);
	std::vector<std::thread> pool;
	for (int s = 0; s < shards; s++)
		pool.emplace_back([&, s] {
			for (int i = 0; i < steps; i++) {
				sums[s] += feed(s, i);
			}
		});
	for (auto &t : pool)
		t.join();
	for (int s = 0; s < shards; s++)
		printf("shard %d: %ld\n", s, sums[s]);
}
