// Memory for arrays: a bounded cache of large buffers, and how much is in use.
//
// Fresh pages cost more than the arithmetic on them, so buffers of large arrays are kept when freed and
// handed out again. NumPy asks this allocator while its handler is set (NEP 49), which the framework does
// around kernels and backward; arrays remember their handler, so it does not matter where they die.
#include <cstdlib>
#include <map>
#include <mutex>
#include <unordered_map>

#include "array.h"
#include "layout.h"

#if defined(__linux__)
#include <malloc.h>
#include <sys/mman.h>
#elif defined(__APPLE__)
#include <malloc/malloc.h>
#endif

namespace fw {
namespace {

constexpr size_t LARGE = 256 << 10;     // below this NumPy's own allocator is quick
constexpr size_t HUGE_PAGE = 2 << 20;
constexpr size_t CACHE_LINE = 64;

struct Counters {
    size_t allocated = 0, peak = 0, cached = 0, limit = size_t(1) << 30, system_calls = 0;
};

std::mutex lock;
Counters counters;
std::multimap<size_t, void*> kept;           // by size; few entries, since sizes repeat
std::unordered_map<void*, size_t> live;      // large buffers in use
PyDataMem_Handler* numpys = nullptr;
PyObject* capsule = nullptr;

// Sizes are rounded up, so that arrays of about one size share buffers: an eighth is lost at most.
size_t rounded(size_t size) {
    size_t unit = CACHE_LINE << 10;
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
    counters.allocated += size;
    if (counters.allocated > counters.peak) counters.peak = counters.allocated;
}

void* fresh(size_t size) {
    ++counters.system_calls;
    bool huge = size >= 2 * HUGE_PAGE;
    void* p = nullptr;
    if (posix_memalign(&p, huge ? HUGE_PAGE : 4096, size) != 0) return nullptr;
#if defined(__linux__)
    if (huge) madvise(p, size, MADV_HUGEPAGE);
#endif
    return p;
}

void drop_all() {
    for (auto& entry : kept) free(entry.second);
    kept.clear();
    counters.cached = 0;
}

void* take(size_t size) {
    size_t whole = rounded(size);
    std::lock_guard<std::mutex> held(lock);
    auto found = kept.find(whole);
    void* p;
    if (found != kept.end()) {
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
        live[p] = size;
        count(size);
    }
    return p;
}

void put_back(void* p, size_t size) {
    size_t whole = rounded(size);
    std::lock_guard<std::mutex> held(lock);
    live.erase(p);
    counters.allocated -= size;
    if (counters.cached + whole > counters.limit) {
        free(p);
        return;
    }
    kept.emplace(whole, p);
    counters.cached += whole;
}

void* allocate(void*, size_t size) {
    if (size >= LARGE) return take(size);
    void* p = numpys->allocator.malloc(numpys->allocator.ctx, size);
    if (p) {
        std::lock_guard<std::mutex> held(lock);
        count(size);
    }
    return p;
}

void* allocate_zeros(void*, size_t n, size_t each) {
    size_t size = n * each;
    if (size >= LARGE) {
        void* p = take(size);
        if (p) memset(p, 0, size);
        return p;
    }
    void* p = numpys->allocator.calloc(numpys->allocator.ctx, n, each);
    if (p) {
        std::lock_guard<std::mutex> held(lock);
        count(size);
    }
    return p;
}

void release(void*, void* p, size_t size) {
    if (!p) return;
    if (size >= LARGE) return put_back(p, size);
    {
        std::lock_guard<std::mutex> held(lock);
        counters.allocated -= size;
    }
    numpys->allocator.free(numpys->allocator.ctx, p, size);
}

// NumPy does not tell the old size: large buffers are in `live`, of small ones the allocator knows about.
void* resize(void*, void* p, size_t size) {
    if (!p) return allocate(nullptr, size);
    size_t old = 0;
    {
        std::lock_guard<std::mutex> held(lock);
        auto found = live.find(p);
        old = found == live.end() ? usable_size(p) : found->second;
    }
    void* moved = allocate(nullptr, size);
    if (!moved) return nullptr;
    memcpy(moved, p, old < size ? old : size);
    if (old >= LARGE) {
        put_back(p, old);
    } else {
        free(p);
        std::lock_guard<std::mutex> held(lock);
        counters.allocated -= old < counters.allocated ? old : counters.allocated;
    }
    return moved;
}

PyDataMem_Handler handler = {"framework", 1, {nullptr, allocate, allocate_zeros, resize, release}};

// Makes `wanted` (our own handler for None) the one of this context; returns the one before.
nb::object use_memory(nb::object wanted) {
    PyObject* before = PyDataMem_SetHandler(wanted.is_none() ? capsule : wanted.ptr());
    if (!before) throw nb::python_error();
    return nb::steal(before);
}

nb::dict statistics() {
    std::lock_guard<std::mutex> held(lock);
    nb::dict d;
    d["allocated"] = counters.allocated;
    d["peak"] = counters.peak;
    d["cached"] = counters.cached;
    d["limit"] = counters.limit;
    d["system_calls"] = counters.system_calls;
    return d;
}

}  // namespace

// Runs `make` with our handler in force, so that its array comes from the cache.
template <class F> Array from_cache(F&& make) {
    nb::object before = use_memory(nb::none());
    PyObject* a = make();
    use_memory(before);
    if (!a) throw nb::python_error();
    Array result;
    result.p = reinterpret_cast<PyArrayObject*>(a);
    return result;
}

Array new_array(int ndim, const npy_intp* shape, int type) {
    PyArray_Descr* descr = PyArray_DescrFromType(type);
    int64_t bytes = PyDataType_ELSIZE(descr);
    for (int d = 0; d < ndim; ++d) bytes *= shape[d];
    auto make = [&] {
        return PyArray_NewFromDescr(&PyArray_Type, descr, ndim, shape, nullptr, nullptr, 0, nullptr);
    };
    if (bytes >= int64_t(LARGE)) return from_cache(make);
    Array result;
    result.p = reinterpret_cast<PyArrayObject*>(make());
    if (!result.p) throw nb::python_error();
    return result;
}

Array new_like(Array prototype, int type) {
    return from_cache([&] {
        return PyArray_NewLikeArray(prototype.p, NPY_KEEPORDER, PyArray_DescrFromType(type), 0);
    });
}

FW_BIND(m) {
    numpys = static_cast<PyDataMem_Handler*>(PyCapsule_GetPointer(PyDataMem_DefaultHandler, "mem_handler"));
    capsule = PyCapsule_New(&handler, "mem_handler", nullptr);
    if (!numpys || !capsule) throw nb::python_error();
    m.def("use_memory", &use_memory, nb::arg("handler").none());
    m.def("memory_statistics", &statistics);
    m.def("empty_cache", [] {
        std::lock_guard<std::mutex> held(lock);
        drop_all();
    });
    m.def("reset_peak", [] {
        std::lock_guard<std::mutex> held(lock);
        counters.peak = counters.allocated;
        counters.system_calls = 0;
    });
    m.def("set_cache_limit", [](size_t bytes) {
        std::lock_guard<std::mutex> held(lock);
        counters.limit = bytes;
        if (counters.cached > bytes) drop_all();
    });
}

}  // namespace fw
