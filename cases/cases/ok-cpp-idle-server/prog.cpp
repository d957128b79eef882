#include <arpa/inet.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

// A server that ends when its only user hangs up; the user (child process) thinks between requests.
static void user(const sockaddr_in &addr)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (const sockaddr *)&addr, sizeof addr))
		_exit(1);
	for (int i = 0; i < 9; i++) {
		usleep(60000 + i % 3 * 45000);
		int a;
		if (write(fd, &i, sizeof i) != sizeof i || read(fd, &a, sizeof a) != sizeof a)
			_exit(1);
	}
	_exit(0);
}

int main()
{
	int l = socket(AF_INET, SOCK_STREAM, 0);
	sockaddr_in addr{};
	addr.sin_family = AF_INET;
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	bind(l, (sockaddr *)&addr, sizeof addr);
	listen(l, 8);
	socklen_t n = sizeof addr;
	getsockname(l, (sockaddr *)&addr, &n);
	pid_t pid = fork();
	if (pid == 0) {
		close(l);
		user(addr);
	}
	std::vector<pollfd> fds{{l, POLLIN, 0}};
	int served = 0;
	for (bool up = true; up;) {
		if (poll(fds.data(), fds.size(), 30000) <= 0)
			return 1;
		if (fds[0].revents & POLLIN)
			fds.push_back({accept(l, nullptr, nullptr), POLLIN, 0});
		for (size_t i = 1; i < fds.size(); i++) {
			if (!fds[i].revents)
				continue;
			int q;
			if (read(fds[i].fd, &q, sizeof q) != sizeof q) {
				close(fds[i].fd);
				up = false;
				break;
			}
			int a = q * q + 7;
			if (write(fds[i].fd, &a, sizeof a) != sizeof a)
				return 1;
			printf("request %d answered %d\n", q, a);
			served++;
		}
	}
	waitpid(pid, nullptr, 0);
	printf("%d served\n", served);
}
