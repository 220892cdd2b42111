// Small pieces of work that go on beside the caller. A thread of the pool that has nothing else to do takes the next one; who
// waits for them does what nobody has taken. They must not need each other, nor touch Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace fw {

// The places for such pieces, which one caller at a time has, and only while threads of the pool listen.
class Beside {
  public:
    static constexpr size_t MOST = 64;  // pieces of one caller

    Beside();
    ~Beside();  // waits
    Beside(const Beside&) = delete;
    bool open() const { return has; }
    size_t size() const { return count; }  // pieces put since the last wait
    // False, with nothing done, where there is no place.
    bool put(std::function<void()> work);
    bool left() const;  // whether something is still to be waited for
    void wait();        // throws what a piece threw

  private:
    bool has = false;
    uint64_t first = 0;
    size_t count = 0;
};

}  // namespace fw
