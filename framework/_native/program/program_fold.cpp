// Reductions of what elementwise programs compute, and of halves as float32.
#include "program/program_fold.h"

#include <cmath>

#include "base/half.h"
#include "base/scratch.h"
#include "reduce/reduce_tasks.h"

namespace fw {
namespace {

using namespace reduce;

// Elements that `make(what, first, last, to)` makes, as `InMemory` are those of an array; places are those of an array in
// the order of their numbers. A program's result: in the order in which it is computed.
template <class Number> struct Computed {
    static constexpr bool rows_only = false;
    using Make = void (*)(const void* what, int64_t first, int64_t last, Number* to);
    const void* what;
    Make make;

    explicit Computed(const Run<Number>& run) : what(&run), make([](const void* r, int64_t first, int64_t last, Number* to) {
        static_cast<const Run<Number>*>(r)->compute(first, last, to);
    }) {}
    Computed(const void* what, Make make) : what(what), make(make) {}

    class Reader {
        static constexpr int64_t WINDOW = 4096;  // numbers made in one go, where more will be wanted
        const Computed& all;
        int64_t ahead, end = 0, first = 0, last = 0;
        Scratch memory;

      public:
        static constexpr bool stays = false;
        Reader(const Computed& all, int64_t ahead) : all(all), ahead(ahead / int64_t(sizeof(Number))) {}

        template <class T> const T* at(int64_t place, int64_t n) {
            const int64_t from = place / int64_t(sizeof(T));
            if (first <= from && from + n <= last) return static_cast<T*>(memory.at_least(0)) + (from - first);
            if (end == 0) end = from + ahead;
            first = from;
            last = std::max(from + n, std::min(end, from + WINDOW));
            T* buffer = static_cast<T*>(memory.at_least(size_t(last - first) * sizeof(T)));
            all.make(all.what, first, last, buffer);
            return buffer;
        }
    };
    using Reading = Reader;
    Reader reader(int64_t ahead) const { return Reader(*this, ahead); }
};

// Calls f with the task.
template <class T, class F> void with_task(const Folding& folding, F&& f) {
    switch (folding.kind) {
        case Reduction::sum:
        case Reduction::norm:
        case Reduction::nansum: return f(Total<T>(false));
        case Reduction::mean: return f(Total<T>(true));
        case Reduction::amax: return f(Plain<Largest<T>>());
        case Reduction::amin: return f(Plain<Smallest<T>>());
        case Reduction::var: return f(Variance<T>(folding.correction, false));
    }
}

// Halves that are widened where they are folded, which saves a way to the cache and back.
template <class H> struct InHalves {
    static constexpr bool stays = true, rows_only = true;
    using Reading = const InHalves;
    const H* data;
    const InHalves& reader(int64_t) const { return *this; }
    template <class T> FW_INLINE const H* at(int64_t place, int64_t) const { return data + place / int64_t(sizeof(T)); }
};

template <class H> void widen_some(const void* halves, int64_t first, int64_t last, float* to) {
    widen(to, static_cast<const H*>(halves) + first, last - first);
}

// Each made another number on the way.
template <class H, class F> FW_INLINE void widen_as(const void* halves, int64_t first, int64_t last, float* to, F f) {
    widen_some<H>(halves, first, last, to);
    const int64_t n = last - first;
    int64_t i = 0;
    for (; i + lanes<float> <= n; i += lanes<float>) store<float>(to + i, f(load(to + i)));
    for (; i < n; ++i) to[i] = f(splat(to[i]))[0];
}
template <class H> void squares_of_some(const void* halves, int64_t first, int64_t last, float* to) {
    widen_as<H>(halves, first, last, to, [](Vec<float> x) -> Vec<float> { return x * x; });
}
template <class H> void numbers_of_some(const void* halves, int64_t first, int64_t last, float* to) {
    widen_as<H>(halves, first, last, to, [](Vec<float> x) -> Vec<float> { return x == x ? x : Vec<float>{}; });
}
template <class H> Computed<float>::Make maker_of(Reduction kind) {
    return kind == Reduction::norm ? squares_of_some<H> : kind == Reduction::nansum ? numbers_of_some<H> : widen_some<H>;
}

template <class H, class Task> void run_halves(const Plan& plan, const H* x, float* results, Task& task, Computed<float>::Make make) {
    using Source = InHalves<H>;
    if constexpr (!Task::twice) {
        if (make != widen_some<H>) return run_plan(plan, Computed<float>(x, make), results, task);
        const int64_t pieces = pieces_of(plan.outer, plan.count());
        if (plan.rows && pieces > 1) {  // few results of many numbers
            task.count = plan.count();
            const int64_t blocks = plan.lines * ((plan.inner.size + BLOCK<float> - 1) / BLOCK<float>);
            const FoldsOf<Task, Source> folds(task);
            return rows_in_pieces<Folds<float, Source>>(plan, Source{x}, results, blocks, pieces, folds);
        }
    }
    run_plan(plan, Computed<float>(x, make), results, task);
}

}  // namespace

template <class T> bool plan_fold(const Layout& layout, uint32_t dims, Plan& plan) {
    int64_t strides[MOST_DIMS] = {};
    for (int d = 0; d < layout.ndim; ++d) strides[d] = layout.apart(d) * int64_t(sizeof(T));
    return plan.make(layout.ndim, layout.shape, strides, sizeof(T), dims);
}

template <class T> void fold_program(const Run<T>& run, const Plan& plan, const Folding& folding, T* out) {
    with_task<T>(folding, [&](auto task) { run_plan(plan, Computed<T>(run), out, task); });
}

template <class H> bool plan_halves(int ndim, const int64_t* sizes, const int64_t* strides, uint32_t dims, Plan& plan) {
    int64_t wide[MOST];
    if (ndim > MOST) return false;
    for (int d = 0; d < ndim; ++d) wide[d] = strides[d] * int64_t(sizeof(float) / sizeof(H));
    return plan.make(ndim, sizes, wide, sizeof(float), dims);
}

template <class H> void fold_halves(const H* x, const Plan& plan, const Folding& folding, H* out, int64_t results) {
    const Borrowed room(results, sizeof(float));
    float* wide = static_cast<float*>(room.start);
    with_task<float>(folding, [&](auto task) { run_halves(plan, x, wide, task, maker_of<H>(folding.kind)); });
    if (folding.kind == Reduction::norm)
        for (int64_t i = 0; i < results; ++i) wide[i] = std::sqrt(wide[i]);
    narrow(out, wide, results);
}

#define FW_OF(T)                                                    \
    template bool plan_fold<T>(const Layout&, uint32_t, Plan&);     \
    template void fold_program(const Run<T>&, const Plan&, const Folding&, T*);
FW_OF(float)
FW_OF(double)
#undef FW_OF

#define FW_OF(H)                                                                                          \
    template bool plan_halves<H>(int, const int64_t*, const int64_t*, uint32_t, Plan&);                    \
    template void fold_halves(const H*, const Plan&, const Folding&, H*, int64_t);
FW_OF(Half)
FW_OF(Bf16)
#undef FW_OF

}  // namespace fw
