// The part of a binding that touches no Python.
#pragma once

#include <utility>

#include "base/beside.h"
#include "bind/array.h"

namespace fw {

// Where the caller wants what it calls to go on beside it: it keeps operands and result, and waits before the result is
// read. Nobody but a plan that knows who reads it sets this (`bind/deferral/segment.cpp`), for one call.
inline thread_local Beside* beside_caller = nullptr;

// In bytes: what is less takes no longer than another core takes to read the operands; what is more, all threads share.
constexpr int64_t LEAST_BESIDE = 64 << 10, MOST_BESIDE = 1 << 20;

// work(), which is copied where it goes on beside: it has numbers and addresses only.
template <class F> void compute(int64_t bytes, F&& work) {
    if (beside_caller && bytes >= LEAST_BESIDE && bytes <= MOST_BESIDE && beside_caller->put(work)) return;
    Release release(bytes);
    work();
}

}  // namespace fw
