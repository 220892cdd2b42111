// Reductions of what elementwise programs compute, and of halves as float32: the elements are made a few thousand at a
// time, folded while they are in the cache, and never stored.
#include "program/program_fold.h"

#include "base/half.h"
#include "bind/bf16_array.h"
#include "bind/reduce/arrays.h"
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
    Reader reader(int64_t ahead) const { return Reader(*this, ahead); }
};

template <class Task> PyObject* fold_as(const Run<typename Task::T>& run, const Folding& folding, Task task) {
    using T = typename Task::T;
    const Layout& layout = run.layout;
    const auto* shape = reinterpret_cast<const npy_intp*>(layout.shape);
    int64_t strides[MOST_DIMS] = {};
    for (int d = 0; d < layout.ndim; ++d) strides[d] = layout.apart(d) * int64_t(sizeof(T));
    Plan plan;
    if (!plan.make(layout.ndim, layout.shape, strides, sizeof(T), folding.dims)) return nullptr;
    NewArray out = results_array(layout.ndim, shape, folding.dims, folding.keepdim, type_number<T>);
    {
        Release release(layout.size * int64_t(sizeof(T)) * run.compiled.cost);
        run_plan(plan, Computed<T>(run), out.data<T>(), task);
    }
    return give(out).release().ptr();
}

// Calls f with the task; nullptr for a name that there is not.
template <class T, class F> auto with_task(const Folding& folding, F&& f) -> decltype(f(Total<T>(false))) {
    if (folding.name == "sum" || folding.name == "mean") return f(Total<T>(folding.name == "mean"));
    if (folding.name == "amax") return f(Plain<Largest<T>>());
    if (folding.name == "amin") return f(Plain<Smallest<T>>());
    if (folding.name == "var") return f(Variance<T>(folding.correction, false));
    return {};
}

// Halves that are widened where they are folded, which saves a way to the cache and back.
template <class H> struct InHalves {
    static constexpr bool stays = true, rows_only = true;
    const H* data;
    const InHalves& reader(int64_t) const { return *this; }
    template <class T> FW_INLINE const H* at(int64_t place, int64_t) const { return data + place / int64_t(sizeof(T)); }
};

template <class H> void widen_some(const void* halves, int64_t first, int64_t last, float* to) {
    widen(to, static_cast<const H*>(halves) + first, last - first);
}

template <class H, class Task> void run_halves(const Plan& plan, const H* x, float* results, Task& task) {
    using Source = InHalves<H>;
    if constexpr (!Task::twice) {
        const int64_t pieces = pieces_of(plan.outer, plan.count());
        if (plan.rows && pieces > 1) {  // few results of many numbers
            task.count = plan.count();
            const int64_t blocks = plan.lines * ((plan.inner.size + BLOCK<float> - 1) / BLOCK<float>);
            const FoldsOf<Task, Source> folds(task);
            return rows_in_pieces<Folds<float, Source>>(plan, Source{x}, results, blocks, pieces, folds);
        }
    }
    run_plan(plan, Computed<float>(x, widen_some<H>), results, task);
}

// Results in float32, rounded once.
template <class H> nb::object fold_as_float(const Array& x, const Folding& folding) {
    int64_t strides[MOST];
    for (int d = 0; d < x.ndim(); ++d) strides[d] = x.stride(d) * int64_t(sizeof(float) / sizeof(H));
    Plan plan;
    if (!plan.make(x.ndim(), as_sizes(x.shape()), strides, sizeof(float), folding.dims)) return not_implemented();
    NewArray out = results_array(x, folding.dims, folding.keepdim, x.type());
    return with_task<float>(folding, [&](auto task) {
        {
            Release release(x.size() * int64_t(sizeof(float)));
            const Borrowed room(out.size(), sizeof(float));
            float* results = static_cast<float*>(room.start);
            run_halves(plan, x.data<H>(), results, task);
            narrow(out.data<H>(), results, out.size());
        }
        return give(out);
    });
}

}  // namespace

nb::object fold_halves(const Array& x, nb::handle dims, Folding folding) {
    if (!x.usable() || !read_dims(dims, x.ndim(), folding.dims)) return not_implemented();
    if (x.type() == NPY_HALF) return fold_as_float<Half>(x, folding);
    return is_bf16(x) ? fold_as_float<Bf16>(x, folding) : not_implemented();
}

template <class T> PyObject* execute_fold(const Run<T>& run, const Folding& folding) {
    if (folding.name == "sum" && run.layout.size == 0 && run.layout.ndim <= MOST) {
        const Layout& layout = run.layout;
        const auto* shape = reinterpret_cast<const npy_intp*>(layout.shape);
        NewArray out = results_array(layout.ndim, shape, folding.dims, folding.keepdim, type_number<T>);
        std::fill_n(out.data<T>(), out.size(), T(0));
        return give(out).release().ptr();
    }
    return with_task<T>(folding, [&](auto task) { return fold_as(run, folding, task); });
}

template PyObject* execute_fold(const Run<float>&, const Folding&);
template PyObject* execute_fold(const Run<double>&, const Folding&);

}  // namespace fw
