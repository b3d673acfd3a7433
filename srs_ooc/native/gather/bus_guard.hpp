// Copying from mapped files: a page that is gone is an error, not the end of the process.
#pragma once
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <mutex>

namespace srs {

struct BusGuard { // of one thread
    sigjmp_buf *way_out;  // null outside of a guarded copy
    uintptr_t address;    // where the last one failed
};

inline thread_local BusGuard bus_guard{nullptr, 0};
// Whom a SIGBUS that is not ours is for: the handler that ours took the place of last, then the first of these, as the
// last one may give it back to us (faulthandler, enabled after us, does).
inline struct sigaction handler_before, first_handler;
inline std::atomic<bool> is_passed_on{false};

inline void on_bus_error(int number, siginfo_t *info, void *context) {
    if (bus_guard.way_out) {
        bus_guard.address = reinterpret_cast<uintptr_t>(info->si_addr);
        siglongjmp(*bus_guard.way_out, 1);
    }
    const struct sigaction &next = is_passed_on.exchange(true) ? first_handler : handler_before;
    if (next.sa_flags & SA_SIGINFO) {
        next.sa_sigaction(number, info, context);
    } else if (next.sa_handler == SIG_DFL || next.sa_handler == SIG_IGN) {
        sigaction(number, &next, nullptr); // and again, without us
        raise(number);
    } else {
        next.sa_handler(number);
    }
    sigset_t raised; // by that handler, again
    if (info->si_code <= 0 && sigpending(&raised) == 0 && !sigismember(&raised, number)) is_passed_on = false;
}

// Before every guarded copy: another handler may have been installed since the last one.
inline void install_bus_guard() {
    static std::mutex mutex;
    std::lock_guard<std::mutex> lock(mutex);
    struct sigaction now = {};
    sigaction(SIGBUS, nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_bus_error) return;
    static const bool is_first = (first_handler = now, true);
    static_cast<void>(is_first);
    handler_before = now;
    is_passed_on = false;
    struct sigaction ours = {};
    ours.sa_sigaction = on_bus_error;
    ours.sa_flags = SA_SIGINFO;
    sigemptyset(&ours.sa_mask);
    sigaction(SIGBUS, &ours, nullptr);
}

// Run `work`; false if a page that it read was gone. The jump out of it runs no destructors: `work` must own nothing
// that has one, take no locks and throw nothing.
template <typename Work> __attribute__((noinline)) bool guarded(const Work &work) {
    install_bus_guard();
    sigjmp_buf way_out;
    if (sigsetjmp(way_out, 1) != 0) {
        bus_guard.way_out = nullptr;
        return false;
    }
    bus_guard.way_out = &way_out;
    work();
    bus_guard.way_out = nullptr;
    return true;
}

} // namespace srs
