// Reductions of what elementwise programs compute: the elements are made a few thousand at a time, folded while
// they are in the cache, and never stored.
#include "program/program_fold.h"
#include "reduce/reduce_arrays.h"
#include "reduce/reduce_tasks.h"

namespace fw {
namespace {

using namespace reduce;

// The elements of a program's result, as `InMemory` are those of an array; places are those of an array in the
// order of their numbers.
template <class Number> struct Computed {
    const Run<Number>& run;

    class Reader {
        static constexpr int64_t WINDOW = 4096;  // numbers computed in one go, where more will be wanted
        const Run<Number>& run;
        int64_t ahead, end = 0, first = 0, last = 0;
        Scratch memory;

      public:
        static constexpr bool stays = false;
        Reader(const Run<Number>& run, int64_t ahead) : run(run), ahead(ahead / int64_t(sizeof(Number))) {}

        template <class T> const T* at(int64_t place, int64_t n) {
            const int64_t from = place / int64_t(sizeof(T));
            if (first <= from && from + n <= last) return static_cast<T*>(memory.at_least(0)) + (from - first);
            if (end == 0) end = from + ahead;
            first = from;
            last = std::max(from + n, std::min(end, from + WINDOW));
            T* buffer = static_cast<T*>(memory.at_least(size_t(last - first) * sizeof(T)));
            run.compute(first, last, buffer);
            return buffer;
        }
    };
    Reader reader(int64_t ahead) const { return Reader(run, ahead); }
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
        run_plan(plan, Computed<T>{run}, out.data<T>(), task);
    }
    return give(out).release().ptr();
}

}  // namespace

template <class T> PyObject* execute_fold(const Run<T>& run, const Folding& folding) {
    if (folding.name == "sum" && run.layout.size == 0 && run.layout.ndim <= MOST) {
        const Layout& layout = run.layout;
        const auto* shape = reinterpret_cast<const npy_intp*>(layout.shape);
        NewArray out = results_array(layout.ndim, shape, folding.dims, folding.keepdim, type_number<T>);
        std::fill_n(out.data<T>(), out.size(), T(0));
        return give(out).release().ptr();
    }
    if (folding.name == "sum" || folding.name == "mean") return fold_as(run, folding, Total<T>(folding.name == "mean"));
    if (folding.name == "amax") return fold_as(run, folding, Plain<Largest<T>>());
    if (folding.name == "amin") return fold_as(run, folding, Plain<Smallest<T>>());
    if (folding.name == "var") return fold_as(run, folding, Variance<T>(folding.correction, false));
    return nullptr;
}

template PyObject* execute_fold(const Run<float>&, const Folding&);
template PyObject* execute_fold(const Run<double>&, const Folding&);

}  // namespace fw
