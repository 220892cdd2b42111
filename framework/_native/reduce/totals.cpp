#include "reduce/totals.h"

#include "reduce/reduce_tasks.h"

namespace fw {
namespace reduce {

namespace {

struct Root {
    template <class W> static W of(W v) {
        if constexpr (std::is_arithmetic<W>::value) return std::sqrt(v);
        else return fw::sqrt(v);
    }
};
struct Truth {
    static uint8_t of(uint8_t v) { return v != 0; }
    static Vec<uint8_t> of(Vec<uint8_t> v) { return bits<Vec<uint8_t>>(v != 0) & 1; }
};

template <class T> struct Some : Largest<T> {
    static constexpr bool stops = true;
    static bool decides(T v) { return v != 0; }
};
template <class T> struct Every : Smallest<T> {
    static constexpr bool stops = true;
    static bool decides(T v) { return v == 0; }
};

// The fold F of all elements; `End` makes the results.
template <class F, class End = Itself> void fold(const Plan& plan, const char* x, typename F::T* out) {
    Plain<F, End> task;
    run_plan(plan, InMemory{x}, out, task);
}

}  // namespace

template <class T> void total(const Plan& plan, const char* x, T* out, bool divided) {
    Total<T> task(divided);
    run_plan(plan, InMemory{x}, out, task);
}

template <class T> void extreme(const Plan& plan, const char* x, T* out, bool largest) {
    largest ? fold<Largest<T>>(plan, x, out) : fold<Smallest<T>>(plan, x, out);
}

template <class T> void total_of_numbers(const Plan& plan, const char* x, T* out) { fold<SumOfNumbers<T>>(plan, x, out); }

template <class T> void norm(const Plan& plan, const char* x, T* out) { fold<SumOfSquares<T>, Root>(plan, x, out); }

template <class T> void product(const Plan& plan, const char* x, T* out) { fold<Product<T>>(plan, x, out); }

void wrapped_sum(const Plan& plan, const char* x, uint64_t* out) { fold<Sum<uint64_t>>(plan, x, out); }

void truth(const Plan& plan, const char* x, uint8_t* out, bool all) {
    all ? fold<Every<uint8_t>, Truth>(plan, x, out) : fold<Some<uint8_t>, Truth>(plan, x, out);
}

#define FW_OF(T)                                                  \
    template void total(const Plan&, const char*, T*, bool);      \
    template void extreme(const Plan&, const char*, T*, bool);    \
    template void total_of_numbers(const Plan&, const char*, T*); \
    template void norm(const Plan&, const char*, T*);             \
    template void product(const Plan&, const char*, T*);
FW_OF(float)
FW_OF(double)
#undef FW_OF
template void extreme(const Plan&, const char*, int32_t*, bool);
template void extreme(const Plan&, const char*, int64_t*, bool);
template void product(const Plan&, const char*, uint64_t*);

}  // namespace reduce
}  // namespace fw
