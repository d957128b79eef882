// An upper-casing relay on one epoll loop, with a client thread that talks to it.
#include <cctype>
#include <iostream>
#include <string>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

struct Conn { int fd; std::string out; };

class Relay {
public:
    explicit Relay(int fd) : ep_(epoll_create1(EPOLL_CLOEXEC)), conn_{fd, {}}
    {
        epoll_event ev{EPOLLIN, {.ptr = &conn_}};
        epoll_ctl(ep_, EPOLL_CTL_ADD, fd, &ev);
    }

    void run()
    {
        for (epoll_event ev;;) {
            if (epoll_wait(ep_, &ev, 1, -1) < 1)
                continue;
            Conn &c = *static_cast<Conn *>(ev.data.ptr);
            if (ev.events & EPOLLOUT)
                flush(c);
            else if (!receive(c))
                return;
        }
    }

private:
    void want(Conn &c, unsigned what)
    {
        epoll_event ev{what, {.ptr = &c}};
        epoll_ctl(ep_, EPOLL_CTL_MOD, c.fd, &ev);
    }

    bool receive(Conn &c)
    {
        char b[4096];
        ssize_t n = recv(c.fd, b, sizeof b, 0);
        if (n <= 0)
            return false;
        for (ssize_t i = 0; i < n; i++) c.out += char(std::toupper((unsigned char)b[i]));
        want(c, EPOLLOUT);
        return true;
    }

    void flush(Conn &c)
    {
        ssize_t n = send(c.fd, c.out.data(), c.out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0)
            c.out.erase(0, n);
        if (c.out.empty())
            want(c, EPOLLIN);
    }

    int ep_;
    Conn conn_;
};

int main()
{
    int sv[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, sv);
    std::thread server([&] { Relay(sv[0]).run(); });
    unsigned long sum = 0;
    for (int i = 0; i < 40000; i++) {
        std::string q = "message " + std::to_string(i) + "\n", a(q.size(), 0);
        send(sv[1], q.data(), q.size(), 0);
        recv(sv[1], &a[0], a.size(), MSG_WAITALL);
        for (char ch : a) sum = sum * 31 + (unsigned char)ch;
    }
    close(sv[1]);
    server.join();
    close(sv[0]);
    std::cout << "40000 messages, check " << std::hex << sum << "\n";
}
