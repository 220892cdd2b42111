#include "base/scratch.h"

#include <deque>

namespace fw {

namespace {

struct KeptPieces {
    std::deque<ThreadScratch> all;
    size_t used = 0;
};
thread_local KeptPieces pieces;

}  // namespace

Borrowed::Borrowed(int64_t count, size_t each) {
    if (count < 0 || size_t(count) > SIZE_MAX / 2 / each) throw std::bad_alloc();
    if (pieces.used == pieces.all.size()) pieces.all.emplace_back();
    start = pieces.all[pieces.used].at_least(size_t(count) * each);
    ++pieces.used;
}
Borrowed::~Borrowed() { --pieces.used; }

void* take_aligned(size_t bytes) { return std::aligned_alloc(4096, bytes); }

Allocator& allocator() {
    static Allocator chosen{[](size_t bytes, void*) { return take_aligned(bytes); },
                            [](void* p, size_t, void*) { std::free(p); }};
    return chosen;
}

}  // namespace fw
