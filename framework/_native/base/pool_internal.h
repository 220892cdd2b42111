// What the bindings, and long loops, need of the pool beyond `pool.h`.
#pragma once

#include <cstdint>

namespace fw {

// What the calling thread does between pieces, and any thread within a piece that may be long: asks whether to go on, and
// throws `Interrupted` if not; threads of the pool go on until something was thrown elsewhere.
void listen();

// That after every so many lines of a loop: what makes one number has no pieces, and may read more elements than any memory
// holds, which repeat.
struct Hearing {
    static constexpr int64_t LINES = 1 << 14;
    int64_t left = LINES;
    void after(int64_t lines) {
        if ((left -= lines) > 0) return;
        left = LINES;
        listen();
    }
};

// Whether numbers too small for the normal format become 0, in the threads of the pool and the calling one.
void set_flush_denormals(bool on);
bool flush_denormals();
void flush_denormals_here();  // brings the calling thread in line

// What a processor of x86-64 is told for it: results are flushed to zero, numbers that are read are taken as zero.
constexpr unsigned FLUSH_BOTH = 0x8040;

// Which of the two hold in this thread from now on; gives which did. None on other processors.
unsigned flush_denormals_here(unsigned which);

// While this lives both do, if `on`.
class Flushing {
  public:
    explicit Flushing(bool on) : on_(on), before_(on ? flush_denormals_here(FLUSH_BOTH) : 0) {}
    ~Flushing() {
        if (on_ && before_ != FLUSH_BOTH) flush_denormals_here(before_);
    }
    Flushing(const Flushing&) = delete;

  private:
    const bool on_;
    const unsigned before_;
};

// From now on one thread does what n would share (0: real threads again); the seconds that they would have
// saved since the last call.
double simulate_threads(int n);

// How soon the pool's threads have to answer to count as near.
void set_near(int64_t nanoseconds);

void relax();  // for one who waits and asks again and again

// -- for beside.h ---------------------------------------------------------------------------------

// Whether the pool has threads that wait for work; those that sleep count if they are worth `waking`.
bool pool_listens(bool waking);
void call_pool();        // there is something beside
bool work_beside();      // does one piece; false if there is none
bool work_is_beside();

}  // namespace fw
