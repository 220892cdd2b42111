#include "base/scratch.h"

namespace fw {

void* take_aligned(size_t bytes) { return std::aligned_alloc(4096, bytes); }

Allocator& allocator() {
    static Allocator chosen{[](size_t bytes, void*) { return take_aligned(bytes); },
                            [](void* p, size_t, void*) { std::free(p); }};
    return chosen;
}

}  // namespace fw
