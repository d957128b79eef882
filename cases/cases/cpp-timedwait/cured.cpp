// A small thread pool that a scanner uses; work comes in now and then.
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <iostream>
#include <mutex>
#include <thread>
#include <vector>

class Pool {
public:
    explicit Pool(int n)
    {
        for (int i = 0; i < n; i++)
            threads_.emplace_back([this] { loop(); });
    }

    ~Pool()
    {
        {
            std::lock_guard<std::mutex> lk(m_);
            stop_ = true;
        }
        cv_.notify_all();
        for (auto &t : threads_)
            t.join();
    }

    void post(std::function<void()> f)
    {
        {
            std::lock_guard<std::mutex> lk(m_);
            jobs_.push_back(std::move(f));
        }
        cv_.notify_one();
    }

private:
    void loop()
    {
        std::unique_lock<std::mutex> lk(m_);
        for (;;) {
            cv_.wait(lk, [this] { return stop_ || !jobs_.empty(); });
            if (jobs_.empty())
                return;
            auto f = std::move(jobs_.front());
            jobs_.pop_front();
            lk.unlock();
            f();
            lk.lock();
        }
    }

    std::mutex m_;
    std::condition_variable cv_;
    std::deque<std::function<void()>> jobs_;
    std::vector<std::thread> threads_;
    bool stop_ = false;
};

int main()
{
    std::mutex m;
    long sum = 0;
    {
        Pool pool(4);
        for (int i = 0; i < 30; i++) {
            std::this_thread::sleep_for(std::chrono::milliseconds(25)); // the next file arrives
            pool.post([i, &m, &sum] {
                std::lock_guard<std::mutex> lk(m);
                sum += i * i;
            });
        }
    }
    std::cout << "scanned 30 files, sum " << sum << "\n";
}
