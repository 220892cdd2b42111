// What the bindings need of the pool beyond `pool.h`.
#pragma once

namespace fw {

// Whether numbers too small for the normal format become 0, in the threads of the pool and the calling one.
void set_flush_denormals(bool on);
bool flush_denormals();
void flush_denormals_here();  // brings the calling thread in line

}  // namespace fw
