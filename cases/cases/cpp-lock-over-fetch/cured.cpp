#include <arpa/inet.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

// A lookup cache in front of a slow directory service (the child process, 25 ms an answer, any number at once).
static sockaddr_in addr;

static void directory(int l)
{
	for (;;) {
		int c = accept(l, nullptr, nullptr);
		if (c < 0)
			return;
		std::thread([c] {
			int key;
			while (read(c, &key, sizeof key) == sizeof key) {
				usleep(25000);
				int v = key * 7 + 1;
				if (write(c, &v, sizeof v) != sizeof v)
					break;
			}
			close(c);
		}).detach();
	}
}

class Cache {
	std::mutex mu;
	std::map<int, int> known;

public:
	int get(int fd, int key)
	{
		std::unique_lock<std::mutex> hold(mu);
		auto it = known.find(key);
		if (it != known.end())
			return it->second;
		hold.unlock();
		int v = fetch(fd, key);
		hold.lock();
		known[key] = v;
		return v;
	}

	static int fetch(int fd, int key)
	{
		int v = 0;
		if (write(fd, &key, sizeof key) != sizeof key || read(fd, &v, sizeof v) != sizeof v)
			exit(1);
		return v;
	}
};

int main()
{
	int l = socket(AF_INET, SOCK_STREAM, 0);
	addr.sin_family = AF_INET;
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	bind(l, (sockaddr *)&addr, sizeof addr);
	listen(l, 32);
	socklen_t n = sizeof addr;
	getsockname(l, (sockaddr *)&addr, &n);
	pid_t pid = fork();
	if (pid == 0) {
		alarm(20);
		directory(l);
		_exit(0);
	}
	Cache cache;
	std::vector<std::thread> users;
	std::vector<long> sums(6);
	for (int u = 0; u < 6; u++)
		users.emplace_back([&, u] {
			int fd = socket(AF_INET, SOCK_STREAM, 0);
			if (connect(fd, (sockaddr *)&addr, sizeof addr))
				exit(1);
			for (int i = 0; i < 7; i++)
				sums[u] += cache.get(fd, u * 100 + i);
			close(fd);
		});
	for (auto &t : users)
		t.join();
	for (int u = 0; u < 6; u++)
		printf("user %d: %ld\n", u, sums[u]);
	kill(pid, SIGTERM);
	waitpid(pid, nullptr, 0);
}
