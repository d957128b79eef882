// A drive's controller sends a heartbeat every 10 ms, in between new set points; the drive stops without heartbeats.
#include <chrono>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using ms = std::chrono::milliseconds;

struct Message { int kind, value; };

struct Drive {
    int stops = 0, beats = 0, sum = 0;

    void run(int fd)
    {
        for (Message m;;) {
            pollfd p{fd, POLLIN, 0};
            if (poll(&p, 1, 2000) == 0) // generous: the box may be busy
                stops++;
            if (recv(fd, &m, sizeof m, MSG_WAITALL) != sizeof m)
                return;
            (m.kind ? sum : beats) += m.kind ? m.value : 1;
        }
    }
};

class Controller {
public:
    explicit Controller(int fd) : fd_(fd) {}
    void set(int v)
    {
        std::lock_guard<std::mutex> lk(m_);
        value_ = v;
        changed_ = true;
        cv_.notify_one();
    }

    void run(int beats)
    {
        std::unique_lock<std::mutex> lk(m_);
        auto due = std::chrono::steady_clock::now();
        while (beats) {
            if (cv_.wait_until(lk, due, [this] { return changed_; })) {
                changed_ = false;
                tell({1, value_});
            } else {
                tell({0, 0});
                beats--;
                due += ms(10);
            }
        }
    }

private:
    void tell(Message m) { send(fd_, &m, sizeof m, MSG_NOSIGNAL); }
    int fd_, value_ = 0;
    bool changed_ = false;
    std::mutex m_;
    std::condition_variable cv_;
};

int main()
{
    int sv[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, sv);
    Drive drive;
    Controller ctl(sv[1]);
    std::thread a([&] { drive.run(sv[0]); }), b([&] { ctl.run(80); });
    for (int i = 1; i <= 10; i++) {
        std::this_thread::sleep_for(ms(60));
        ctl.set(i);
    }
    b.join();
    close(sv[1]), a.join(), close(sv[0]);
    std::cout << "beats " << drive.beats << ", set points' sum " << drive.sum << ", stops " << drive.stops << "\n";
}
