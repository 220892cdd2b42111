// Memory for a kernel's own use, from whoever gives it: small pieces are kept by each thread from call to call, large
// ones go back when the kernel ends.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <new>

namespace fw {

// Where it comes from: at multiples of 4096; nullptr where there is none. Called by all threads.
struct Allocator {
    void* (*take)(size_t bytes, void* context);
    void (*give_back)(void* p, size_t bytes, void* context);
    void* context = nullptr;
};
Allocator& allocator();  // the C library's; changed before the first kernel runs, if at all
void* take_aligned(size_t bytes);

// The address of a variable of the thread's own, asked for once: the compiler would ask in each turn of a loop.
template <class T> inline T* asked_once(T* p) {
    __asm__("" : "+r"(p));
    return p;
}

constexpr size_t LARGE_SCRATCH = 2 << 20;

class Scratch {
  public:
    Scratch() = default;
    Scratch(const Scratch&) = delete;
    ~Scratch() { drop(); }

    // Throws bad_alloc, which becomes a MemoryError in whoever called the kernel.
    void* at_least(size_t bytes) {
        if (bytes > size) grow(bytes);
        return p;
    }
    bool large() const { return size >= LARGE_SCRATCH; }
    void drop() {
        if (p) allocator().give_back(p, size, allocator().context);
        p = nullptr, size = 0;
    }

  private:
    void grow(size_t bytes) {
        drop();
        if (bytes > SIZE_MAX / 2) throw std::bad_alloc();
        const size_t whole = (bytes + 4095) / 4096 * 4096;
        p = allocator().take(whole, allocator().context);
        if (!p) throw std::bad_alloc();
        size = whole;
    }

    void* p = nullptr;
    size_t size = 0;
};

// A thread's own; all of a thread are in a list, so that large ones can be given back.
class ThreadScratch : public Scratch {
  public:
    ThreadScratch() : next(first()) { first() = this; }

    static void drop_large() {
        for (ThreadScratch* s = first(); s; s = s->next)
            if (s->large()) s->drop();
    }

  private:
    static ThreadScratch*& first() {
        static thread_local ThreadScratch* head = nullptr;
        return head;
    }
    ThreadScratch* next;
};

// Memory while this lives, which the thread keeps for the next one: several may live at once, in a function and those
// that it calls. Large pieces go back when the kernel ends.
struct Borrowed {
    Borrowed(int64_t count, size_t each);
    ~Borrowed();
    Borrowed(const Borrowed&) = delete;
    void* start;
};

// `count` uninitialised numbers, aligned for vectors, valid until the thread asks for the same slot again or the
// kernel ends. `gemm` takes all slots of its type: what a caller of it must keep meanwhile lies elsewhere.
template <class T> T* scratch(int slot, int64_t count) {
    static thread_local ThreadScratch slots[4];
    if (count < 0 || size_t(count) > SIZE_MAX / 2 / sizeof(T)) throw std::bad_alloc();
    return static_cast<T*>(slots[slot].at_least(size_t(count) * sizeof(T)));
}

}  // namespace fw
