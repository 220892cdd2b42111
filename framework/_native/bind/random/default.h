// The default generator of the CPU, `random.default_generator`.
#pragma once

#include <cstdint>

namespace fw {

// `default_generator._start(seed, 1)`; RuntimeError where `random` has not told which it is.
void start_default(uint64_t seed);

}  // namespace fw
