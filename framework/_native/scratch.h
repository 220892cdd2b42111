// Memory for a kernel's own use, kept by each thread from call to call.
#pragma once

#include <cstdlib>
#include <cstdint>
#include <new>

namespace fw {

class Scratch {
  public:
    ~Scratch() { free(p); }

    void* at_least(size_t bytes) {
        if (bytes > size) {
            free(p);
            size = (bytes + 4095) / 4096 * 4096;
            p = std::aligned_alloc(4096, size);
            if (!p) std::abort();  // a few MB at most
        }
        return p;
    }

  private:
    void* p = nullptr;
    size_t size = 0;
};

// `count` uninitialised numbers, aligned for vectors, valid until the thread asks for the same slot again.
// `gemm` takes all slots of its type: what a caller of it must keep meanwhile lies elsewhere.
template <class T> T* scratch(int slot, int64_t count) {
    static thread_local Scratch slots[4];
    return static_cast<T*>(slots[slot].at_least(size_t(count) * sizeof(T)));
}

}  // namespace fw
