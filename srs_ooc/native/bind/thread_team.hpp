// Threads that run the parts of one piece of work after another.
#pragma once
#include "kernels.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace srs {

// Started when first needed.
class ThreadTeam {
  public:
    explicit ThreadTeam(int n) : n_(n) {}
    ~ThreadTeam() {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            stopping_ = true;
        }
        begin_.notify_all();
        for (std::thread &thread : threads_) thread.join();
    }
    static void share(void *self, void (*work)(void *, int), void *context) {
        static_cast<ThreadTeam *>(self)->run(work, context);
    }

    void run(void (*work)(void *, int), void *context) {
        start();
        const int n_started = static_cast<int>(threads_.size());
        {
            std::lock_guard<std::mutex> lock(mutex_);
            work_ = work;
            context_ = context;
            waiting_ = n_started;
            ++turn_;
        }
        begin_.notify_all();
        work(context, 0);
        for (int part = n_started + 1; part < n_; ++part) work(context, part);
        std::unique_lock<std::mutex> lock(mutex_);
        done_.wait(lock, [this] { return waiting_ == 0; });
    }

  private:
    void start() { // parts of threads that cannot be had are run by the caller
        if (started_) return;
        started_ = true;
        threads_.reserve(static_cast<size_t>(n_));
        try {
            for (int part = 1; part < n_; ++part) threads_.emplace_back([this, part] { serve(part); });
        } catch (const std::system_error &) {
        }
    }
    void serve(int part) {
        for (int64_t seen = 0;;) {
            std::unique_lock<std::mutex> lock(mutex_);
            begin_.wait(lock, [&] { return stopping_ || turn_ != seen; });
            if (stopping_) return;
            seen = turn_;
            lock.unlock();
            work_(context_, part);
            lock.lock();
            if (--waiting_ == 0) done_.notify_one();
        }
    }
    const int n_;
    int waiting_ = 0;
    int64_t turn_ = 0;
    bool stopping_ = false, started_ = false;
    void (*work_)(void *, int) = nullptr;
    void *context_ = nullptr;
    std::mutex mutex_;
    std::condition_variable begin_, done_;
    std::vector<std::thread> threads_;
};

// Calls work(first, last) on parts of 0 .. n - 1, each in a thread of its own.
template <typename Work> void in_threads(int64_t n, int64_t n_threads, const Work &work) {
    struct Parts {
        const Work &work;
        int64_t n, n_parts;
    } parts{work, n, std::clamp<int64_t>(std::min(n, n_threads), 1, MAX_THREADS)};
    const auto one = [](void *context, int part) {
        const Parts &of = *static_cast<Parts *>(context);
        of.work(part * of.n / of.n_parts, (part + 1) * of.n / of.n_parts);
    };
    ThreadTeam(static_cast<int>(parts.n_parts)).run(one, &parts);
}

} // namespace srs
