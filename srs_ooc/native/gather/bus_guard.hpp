// Copying from mapped files: a page that is gone is an error, not the end of the process.
#pragma once
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
inline struct sigaction handler_before; // whom a SIGBUS that is not ours is for

inline void on_bus_error(int number, siginfo_t *info, void *context) {
    if (bus_guard.way_out) {
        bus_guard.address = reinterpret_cast<uintptr_t>(info->si_addr);
        siglongjmp(*bus_guard.way_out, 1);
    }
    if (handler_before.sa_flags & SA_SIGINFO) {
        handler_before.sa_sigaction(number, info, context);
    } else if (handler_before.sa_handler == SIG_DFL || handler_before.sa_handler == SIG_IGN) {
        sigaction(number, &handler_before, nullptr); // and again, without us
        raise(number);
    } else {
        handler_before.sa_handler(number);
    }
}

inline void install_bus_guard() {
    static std::once_flag once;
    std::call_once(once, [] {
        struct sigaction ours = {};
        ours.sa_sigaction = on_bus_error;
        ours.sa_flags = SA_SIGINFO;
        sigemptyset(&ours.sa_mask);
        sigaction(SIGBUS, &ours, &handler_before);
    });
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
