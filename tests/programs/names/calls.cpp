// As calls.c: names in C++'s ways. Linked with -flto, what is inlined is described in another unit,
// whose scopes are not read: a lambda is then `operator()` alone.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>
#include <sys/resource.h>
#include <sys/times.h>
#include <unistd.h>

#define OWN __attribute__((noinline, used))
static volatile long sink;

namespace app {

struct Shape {
	virtual ~Shape() = default;
	virtual long area() const = 0;
};

struct Square final : Shape {
	OWN long area() const override
	{
		return getppid() + sink; //= getppid getppid app::Square::area
	}
};

template <class T> struct Box {
	T value;
	OWN long open() const
	{
		return getuid() + sink + value; //= getuid getuid app::Box<int>::open
	}
};

OWN void every(const std::vector<int> &all)
{
	std::for_each(all.begin(), all.end(), [](int n) {
		sink = sink + n + getsid(0); //= getsid getsid app::every::{lambda}::operator() | operator() | app::every(std::vector<int, std::allocator<int> > const&)::{lambda(int)#1}::operator() const
	});
}

OWN void later(const std::function<long()> &f) { sink = sink + f(); }

OWN void thrown()
{
	sink = sink + getegid(); //= getegid getegid app::thrown
	throw std::exception();
}

struct Guard {
	OWN ~Guard()
	{
		sink = sink + getgid(); //= getgid getgid app::Guard::~Guard
	}
};

OWN void unwound()
{
	try {
		Guard guard;
		thrown();
	} catch (const std::exception &) {
		sink = sink + getpgid(0); //= getpgid getpgid app::unwound
	}
}

struct Early {
	OWN Early()
	{
		gid_t a, b, c;
		sink = sink + getresgid(&a, &b, &c); //= getresgid getresgid app::Early::Early
	}
};
static Early early;

OWN void written()
{
	std::ofstream out("/dev/null"); //+ openat|open fopen app::written
	out << sink << std::flush; //= write write app::written
}

} // namespace app

int main()
{
	app::Square square;
	const app::Shape &shape = square;
	sink = sink + shape.area();
	sink = sink + app::Box<int>{1}.open();
	app::every({1, 2});
	app::later([] {
		struct tms t;
		return long(times(&t)); //= times times main::{lambda}::operator() | operator() | main::{lambda()#1}::operator() const
	});
	app::unwound();
	app::written();
	std::thread worker([] {
		sink = sink + getpriority(PRIO_PROCESS, 0); //= getpriority getpriority main::{lambda}::operator() | operator() | main::{lambda()#2}::operator() const
	});
	worker.join();
	return 0;
}
