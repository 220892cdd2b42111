// The one pool of threads for all native work.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <type_traits>

namespace fw {

// How many threads share the work of `parallel`, the calling one included.
int threads();
void set_threads(int n);

using Task = void (*)(void* context, int64_t begin, int64_t end);

// Calls task(context, begin, end) on pieces that cover [0, n). Pieces begin at multiples of `grain`; how many there are
// depends on threads() and on how soon the last kernel was, so no result may depend on them. The caller works too. Runs
// in the caller alone where n <= grain, with one thread, inside another `parallel`, or while another caller uses the pool.
// Tasks must not touch Python. What one throws (out of memory) comes out of here, in the caller, when the pieces
// under way are done.
void run_parallel(int64_t n, int64_t grain, Task task, void* context);

template <class F> void parallel(int64_t n, int64_t grain, F&& body) {  // body(begin, end)
    if (n <= 0) return;
    using Body = typename std::remove_reference<F>::type;
    run_parallel(n, grain, [](void* f, int64_t a, int64_t b) { (*static_cast<Body*>(f))(a, b); },
                 const_cast<void*>(static_cast<const void*>(&body)));
}

// While this lives, kernels of the calling thread follow each other closely. If the pool's threads are awake and near as
// it begins, they stay so between the kernels, and less is worth them; those that sleep are woken for the next time, if
// the last one was a moment ago.
class Brisk {
  public:
    Brisk();
    ~Brisk();
    Brisk(const Brisk&) = delete;

  private:
    bool first;  // not inside another one
};

// What is worth a thread, which is less if it need not be woken: for grains and thresholds that change no result.
constexpr int64_t AWAKE = 8;
bool all_awake();
inline int64_t worth(int64_t grain) { return all_awake() ? std::max<int64_t>(1, grain / AWAKE) : grain; }

// Asked by the calling thread between pieces, once in a while, when `since` is long ago: false ends the work, and
// `Interrupted` comes out of `run_parallel`. nullptr: nobody is asked.
struct Interrupted {};
struct Listener {
    bool (*goes_on)(void* context) = nullptr;
    void* context = nullptr;
    std::chrono::steady_clock::time_point since{};
};
Listener& listener();  // of this thread

}  // namespace fw
