#include "base/beside.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <utility>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

#include "base/pool_internal.h"

namespace fw {
namespace {

constexpr auto STEADY = std::chrono::microseconds(200);  // callers that follow each other so closely are worth waking for

struct Piece {
    std::function<void()> work;
    std::atomic<bool> done{false};
};

// Numbers only grow, so that a thread which comes late finds nothing to take.
struct Lane {
    Piece pieces[Beside::MOST];
    alignas(64) std::atomic<uint64_t> next{0}, end{0};
    alignas(64) std::atomic<bool> taken{false};
    std::chrono::steady_clock::time_point last{};  // when the last caller was done
    std::mutex lock;
    std::exception_ptr thrown;

    Piece& at(uint64_t i) { return pieces[i % Beside::MOST]; }

    bool do_next() {
        uint64_t i = next.load();
        while (i < end.load())
            if (next.compare_exchange_weak(i, i + 1)) {
                Piece& piece = at(i);
                try {
                    piece.work();
                } catch (...) {
                    std::lock_guard<std::mutex> held(lock);
                    if (!thrown) thrown = std::current_exception();
                }
                piece.done.store(true, std::memory_order_release);
                return true;
            }
        return false;
    }
};

Lane* lane = new Lane;  // never destroyed, as the pool

#if defined(__unix__) || defined(__APPLE__)
struct NewLane {
    NewLane() {
        pthread_atfork(nullptr, nullptr, [] { lane = new Lane; });
    }
} new_lane;
#endif

}  // namespace

bool work_beside() { return lane->do_next(); }
bool work_is_beside() { return lane->next.load(std::memory_order_relaxed) < lane->end.load(std::memory_order_acquire); }

Beside::Beside() {
    bool free = false;
    if (!lane->taken.compare_exchange_strong(free, true)) return;
    has = pool_listens(std::chrono::steady_clock::now() - lane->last < STEADY);
    first = lane->end.load();
    if (!has) lane->last = std::chrono::steady_clock::now(), lane->taken.store(false);
}

Beside::~Beside() {
    if (!has) return;
    try {
        wait();
    } catch (...) {  // what stopped the caller comes out of it
    }
    lane->last = std::chrono::steady_clock::now();
    lane->taken.store(false);
}

bool Beside::put(std::function<void()> work) {
    if (!has || count == MOST) return false;
    Piece& piece = lane->at(first + count);
    piece.work = std::move(work);
    piece.done.store(false, std::memory_order_relaxed);
    ++count;
    lane->end.store(first + count);
    call_pool();
    return true;
}

bool Beside::left() const {
    for (size_t i = 0; i < count; ++i)
        if (!lane->at(first + i).done.load(std::memory_order_acquire)) return true;
    return false;
}

void Beside::wait() {
    while (left())
        if (!work_beside()) relax();
    first += count, count = 0;
    std::lock_guard<std::mutex> held(lane->lock);
    if (lane->thrown) std::rethrow_exception(std::exchange(lane->thrown, nullptr));
}

}  // namespace fw
