// Memory for arrays: a bounded cache of large buffers, and how much is in use.
//
// Fresh pages cost more than the arithmetic on them, so buffers of large arrays are kept when freed and
// handed out again. NumPy asks this allocator while its handler is set (NEP 49), which the framework does
// around kernels and backward; arrays remember their handler, so it does not matter where they die.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "bind/array.h"
#include "base/layout.h"
#include "base/scratch.h"

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif
#if defined(__linux__)
#include <malloc.h>
#include <sys/mman.h>
#elif defined(__APPLE__)
#include <malloc/malloc.h>
#endif

namespace fw {
namespace {

constexpr size_t LARGE = 64 << 10;
constexpr size_t MEDIUM = 1 << 10;      // below this NumPy keeps what is freed
constexpr size_t SPARES = 8 << 20;      // of medium ones at most
constexpr size_t HUGE_PAGE = 2 << 20;
constexpr size_t PAGE = 4096;
// Large buffers begin at different places of a page: where all begin at the same, a kernel that reads a little behind
// what it writes (roll, x[1:] - x[:-1]) waits for each store, whose low bits of the address are those of the load.
constexpr size_t STEP = 192, ALIGNED = 64;

// Of small buffers only the first two are changed, which needs no lock.
struct Counters {
    std::atomic<size_t> allocated{0}, peak{0};
    size_t cached = 0, limit = size_t(1) << 30, system_calls = 0;
};

std::mutex lock;
Counters counters;
std::multimap<size_t, void*> kept;           // by size; few entries, since sizes repeat
std::unordered_map<void*, size_t> live;      // large buffers in use
PyDataMem_Handler* numpys = nullptr;
PyObject* capsule = nullptr;

// Freed buffers of medium size, which begin at whole lines of the caches; the last one freed of a size comes first. The system's
// allocator searches for such sizes, which takes longer than small kernels do. There are eight from each power of two to the next.
class Spares {
  public:
    static constexpr int KINDS = 6 * 8 + 1;

    static int holding(size_t size) {  // the least kind of at least this size
        const int log = log_of(size);
        return (log - 10) * 8 + int((size - (size_t(1) << log) + (size_t(1) << (log - 3)) - 1) >> (log - 3));
    }
    static int within(size_t size) {  // the largest of at most this size
        const int log = log_of(size);
        return (log - 10) * 8 + int((size - (size_t(1) << log)) >> (log - 3));
    }
    static size_t bytes(int kind) { return (size_t(1) << (10 + kind / 8)) + (size_t(kind % 8) << (7 + kind / 8)); }

    void* take(int kind) {
        Spare* p = first[kind];
        if (p) first[kind] = p->next, total -= bytes(kind);
        return p;
    }
    bool keep(int kind, void* p, size_t limit) {
        if (total + bytes(kind) > std::min(limit, SPARES)) return false;
        first[kind] = new (p) Spare{first[kind]};
        total += bytes(kind);
        return true;
    }
    void drop() {
        for (int kind = 0; kind < KINDS; ++kind)
            while (void* p = take(kind)) free(p);
    }

  private:
    struct Spare {
        Spare* next;
    };
    static int log_of(size_t size) { return 63 - __builtin_clzll(size); }

    Spare* first[KINDS] = {};
    size_t total = 0;
};

Spares spares;

// Sizes are rounded up, so that arrays of about one size share buffers: an eighth is lost at most.
size_t rounded(size_t size) {
    if (size > SIZE_MAX / 4) return size;  // which nobody has; rounding would overflow
    size_t unit = PAGE;
    while (unit * 16 <= size) unit *= 2;
    return (size + unit - 1) / unit * unit;
}

size_t usable_size(void* p) {
#if defined(__APPLE__)
    return malloc_size(p);
#else
    return malloc_usable_size(p);
#endif
}

void count(size_t size) {
    const size_t now = counters.allocated.fetch_add(size, std::memory_order_relaxed) + size;
    size_t most = counters.peak.load(std::memory_order_relaxed);
    while (now > most && !counters.peak.compare_exchange_weak(most, now, std::memory_order_relaxed)) {}
}

void uncount(size_t size) {
    size_t now = counters.allocated.load(std::memory_order_relaxed);
    while (!counters.allocated.compare_exchange_weak(now, now - std::min(size, now), std::memory_order_relaxed)) {}
}

void* fresh(size_t size) {
    const bool huge = size >= 2 * HUGE_PAGE;
    const size_t shift = ++counters.system_calls * STEP % PAGE;
    void* p = nullptr;
    if (posix_memalign(&p, huge ? HUGE_PAGE : PAGE, huge ? size : size + PAGE) != 0) return nullptr;
#if defined(__linux__)
    if (huge) madvise(p, size, MADV_HUGEPAGE);
#endif
    return huge ? p : static_cast<char*>(p) + shift;
}

void give_back(void* p) { free(static_cast<char*>(p) - reinterpret_cast<uintptr_t>(p) % PAGE); }

void drop_all() {
    for (auto& entry : kept) give_back(entry.second);
    kept.clear();
    counters.cached = 0;
    spares.drop();
}

void* take(size_t size) {
    size_t whole = rounded(size);
    std::lock_guard<std::mutex> held(lock);
    auto found = kept.upper_bound(whole);  // behind the one that was kept last, which is still in the processor's caches
    void* p;
    if (found != kept.begin() && (--found)->first == whole) {
        p = found->second;
        kept.erase(found);
        counters.cached -= whole;
    } else {
        p = fresh(whole);
        if (!p && !kept.empty()) {  // out of memory: what is cached may be what is missing
            drop_all();
            p = fresh(whole);
        }
    }
    if (p) {
        try {
            live[p] = size;
        } catch (const std::bad_alloc&) {
            give_back(p);
            return nullptr;
        }
        count(size);
    }
    return p;
}

// Whether p is one of our large buffers; it is put back then. That is decided by membership alone: sizes that
// NumPy or the system tell are not those that were asked for.
bool put_back(void* p) {
    if (reinterpret_cast<uintptr_t>(p) % ALIGNED) return false;  // most small buffers: without looking them up
    std::lock_guard<std::mutex> held(lock);
    const auto found = live.find(p);
    if (found == live.end()) return false;
    const size_t size = found->second, whole = rounded(size);
    live.erase(found);
    uncount(size);
    if (counters.cached + whole <= counters.limit) {
        try {
            kept.emplace(whole, p);
            counters.cached += whole;
            return true;
        } catch (const std::bad_alloc&) {  // nobody who frees memory expects an exception
        }
    }
    give_back(p);
    return true;
}

void* allocate(void*, size_t size) {
    if (size >= LARGE) return take(size);
    void* p = nullptr;
    if (size >= MEDIUM) {
        const int kind = Spares::holding(size);
        {
            std::lock_guard<std::mutex> held(lock);
            p = spares.take(kind);
            if (p) return count(size), p;
        }
        if (posix_memalign(&p, ALIGNED, Spares::bytes(kind)) != 0) return nullptr;
    } else {
        p = numpys->allocator.malloc(numpys->allocator.ctx, size);
    }
    if (p) count(size);
    return p;
}

void* allocate_zeros(void*, size_t n, size_t each) {
    size_t size;
    if (__builtin_mul_overflow(n, each, &size)) return nullptr;
    if (size >= MEDIUM) {
        void* p = allocate(nullptr, size);
        if (p) memset(p, 0, size);
        return p;
    }
    void* p = numpys->allocator.calloc(numpys->allocator.ctx, n, each);
    if (p) count(size);
    return p;
}

// A buffer that is not one of the large ones.
void release_small(void* p, size_t size) {
    uncount(size);
    if (reinterpret_cast<uintptr_t>(p) % ALIGNED == 0) {  // not what NumPy made or resized
        const size_t usable = usable_size(p);
        std::lock_guard<std::mutex> held(lock);
        if (usable >= MEDIUM && usable < LARGE + PAGE &&
            spares.keep(std::min(Spares::within(usable), Spares::KINDS - 1), p, counters.limit))
            return;
    }
    numpys->allocator.free(numpys->allocator.ctx, p, size);
}

void release(void*, void* p, size_t size) {
    if (p && !put_back(p)) release_small(p, size);
}

size_t size_of_large(void* p) {  // 0: not one of ours
    std::lock_guard<std::mutex> held(lock);
    const auto found = live.find(p);
    return found == live.end() ? 0 : found->second;
}

// NumPy does not tell the old size. Of its own buffers the system's allocator knows about how many bytes there are.
void* resize(void*, void* p, size_t size) {
    if (!p) return allocate(nullptr, size);
    const size_t large = size_of_large(p), old = large ? large : usable_size(p);
    if (!large && size < LARGE) {
        void* moved = numpys->allocator.realloc(numpys->allocator.ctx, p, size);
        if (!moved) return nullptr;
        uncount(old);
        count(size);
        return moved;
    }
    void* moved = allocate(nullptr, size);
    if (!moved) return nullptr;
    memcpy(moved, p, std::min(old, size));
    if (!put_back(p)) release_small(p, old);
    return moved;
}

#if defined(__unix__) || defined(__APPLE__)
// A thread that forks holds the lock, so that in the child nobody who is not there has it.
struct AroundFork {
    AroundFork() {
        pthread_atfork([] { lock.lock(); }, [] { lock.unlock(); }, [] { lock.unlock(); });
    }
} around_fork;
#endif

PyDataMem_Handler handler = {"framework", 1, {nullptr, allocate, allocate_zeros, resize, release}};

// Makes `wanted` (our own handler for None) the one of this context; returns the one before.
nb::object use_memory(nb::object wanted) {
    if (!wanted.is_none() && !PyCapsule_IsValid(wanted.ptr(), "mem_handler"))
        throw nb::type_error("use_memory: wanted what an earlier call returned, or None");
    PyObject* before = PyDataMem_SetHandler(wanted.is_none() ? capsule : wanted.ptr());
    if (!before) throw nb::python_error();
    return nb::steal(before);
}

nb::dict statistics() {
    std::lock_guard<std::mutex> held(lock);
    nb::dict d;
    d["allocated"] = counters.allocated.load();
    d["peak"] = counters.peak.load();
    d["cached"] = counters.cached;
    d["limit"] = counters.limit;
    d["system_calls"] = counters.system_calls;
    return d;
}

}  // namespace

// Runs `make` with our handler in force, so that its array comes from the cache.
template <class F> NewArray from_cache(F&& make) {
    nb::object before = use_memory(nb::none());
    PyObject* a = make();
    if (!a) {
        nb::python_error error;  // taken aside: the handler is not changed with an error set
        use_memory(before);
        throw error;
    }
    use_memory(before);
    return NewArray(a);
}

namespace {

// Memory that the next new array of its shape and type is to be, of this thread: a gradient's place in a bucket, say.
thread_local PyObject* home = nullptr;
thread_local Offer* offer = nullptr;

// Sets it, or with None takes it back; returns whether an array took the place of the last one.
bool place_next(nb::object given) {
    const bool taken = home == nullptr;
    Py_CLEAR(home);
    Array a;
    if (!given.is_none() && nb::try_cast(given, a) && a.usable() && a.contiguous() && a.writeable())
        home = given.release().ptr();
    return taken;
}

bool suits(PyObject* place, int ndim, const npy_intp* shape, int type) {
    const Array a{reinterpret_cast<PyArrayObject*>(place)};
    return a.type() == type && a.ndim() == ndim && std::equal(shape, shape + ndim, a.shape());
}

}  // namespace

Offer* offered_now(Offer* arrays) { return std::exchange(offer, arrays); }

NewArray new_array(int ndim, const npy_intp* shape, int type) {
    if (home && suits(home, ndim, shape, type)) return NewArray(std::exchange(home, nullptr));
    if (offer)
        for (int i = 0; i < offer->count; ++i)
            if (offer->arrays[i] && suits(offer->arrays[i], ndim, shape, type))
                return NewArray(std::exchange(offer->arrays[i], nullptr));
    if (ndim < 0 || ndim > NPY_MAXDIMS) throw nb::value_error("an array has at most 64 dimensions");
    PyArray_Descr* descr = PyArray_DescrFromType(type);
    int64_t bytes = PyDataType_ELSIZE(descr);
    for (int d = 0; d < ndim; ++d)  // NumPy raises for what does not fit into 64 bits
        if (__builtin_mul_overflow(bytes, int64_t(shape[d]), &bytes)) bytes = LARGE;
    auto make = [&] {
        return PyArray_NewFromDescr(&PyArray_Type, descr, ndim, shape, nullptr, nullptr, 0, nullptr);
    };
    if (bytes >= int64_t(LARGE)) return from_cache(make);
    PyObject* made = make();
    if (!made) throw nb::python_error();
    return NewArray(made);
}

NewArray new_like(Array prototype, int type) {
    return from_cache([&] {
        return PyArray_NewLikeArray(prototype.p, NPY_KEEPORDER, PyArray_DescrFromType(type), 0);
    });
}

NewArray new_in_order(int ndim, const npy_intp* shape, int type, const int* axes) {
    npy_intp inside[NPY_MAXDIMS], back[NPY_MAXDIMS];
    for (int i = 0; i < ndim; ++i) inside[i] = shape[axes[i]], back[axes[i]] = i;
    NewArray made = new_array(ndim, inside, type);
    PyArray_Dims order{back, ndim};
    PyObject* turned = PyArray_Transpose(made.p, &order);
    if (!turned) throw nb::python_error();
    return NewArray(turned);
}

void axes_in_memory(const Array& a, int* axes) {
    for (int i = 0; i < a.ndim(); ++i) {
        int at = i;
        for (; at > 0 && a.stride(axes[at - 1]) < a.stride(i); --at) axes[at] = axes[at - 1];
        axes[at] = i;
    }
}

bool dense_in_order(const Array& a, const int* axes) {
    int64_t step = PyArray_ITEMSIZE(a.p);
    for (int i = a.ndim(); i-- > 0; step *= a.shape(axes[i]))
        if (a.shape(axes[i]) != 1 && a.stride(axes[i]) != step) return false;
    return true;
}

FW_BIND(m) {
    numpys = static_cast<PyDataMem_Handler*>(PyCapsule_GetPointer(PyDataMem_DefaultHandler, "mem_handler"));
    capsule = PyCapsule_New(&handler, "mem_handler", nullptr);
    if (!numpys || !capsule) throw nb::python_error();
    // large scratch comes from the cache and is counted
    allocator() = {[](size_t bytes, void*) { return bytes >= LARGE_SCRATCH ? take(bytes) : take_aligned(bytes); },
                   [](void* p, size_t, void*) { if (!put_back(p)) free(p); }};
    m.def("use_memory", &use_memory, nb::arg("handler").none());
    m.def("memory_statistics", &statistics);
    m.def("place_next", &place_next, nb::arg("given").none());
    m.def("empty_cache", [] {
        std::lock_guard<std::mutex> held(lock);
        drop_all();
    });
    m.def("reset_peak", [] {
        std::lock_guard<std::mutex> held(lock);
        counters.peak = counters.allocated.load();
        counters.system_calls = 0;
    });
    m.def("set_cache_limit", [](size_t bytes) {
        std::lock_guard<std::mutex> held(lock);
        counters.limit = bytes;
        if (counters.cached > bytes || bytes < SPARES) drop_all();
    });
}

}  // namespace fw
