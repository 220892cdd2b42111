#include "bind/program/program_fold.h"

#include "base/half.h"
#include "bind/bf16_array.h"
#include "bind/reduce/arrays.h"

namespace fw {
namespace {

template <class H> nb::object fold_as_float(const Array& x, const Folding& folding) {
    reduce::Plan plan;
    if (!plan_halves<H>(x.ndim(), reduce::as_sizes(x.shape()), reduce::as_sizes(x.strides()), folding.dims, plan))
        return not_implemented();
    NewArray out = reduce::results_array(x, folding.dims, folding.keepdim, x.type());
    {
        Release release(x.size() * int64_t(sizeof(float)));
        fold_halves(x.data<H>(), plan, folding, out.data<H>(), out.size());
    }
    return give(out);
}

}  // namespace

nb::object fold_halves(const Array& x, nb::handle dims, Folding folding) {
    if (!x.usable() || !reduce::read_dims(dims, x.ndim(), folding.dims)) return not_implemented();
    if (x.type() == NPY_HALF) return fold_as_float<Half>(x, folding);
    return is_bf16(x) ? fold_as_float<Bf16>(x, folding) : not_implemented();
}

// Whether lines, or what folds to one result or line of them, are so short and many that it is quicker to compute the elements and
// then to fold them.
bool has_short_lines(const reduce::Plan& plan) {
    constexpr int64_t SHORT = 8, NARROW = 4, MANY = 64, SMALL = 64;
    return (plan.outer >= MANY && plan.lines * plan.inner.size <= SMALL) ||
           (plan.lines >= MANY && plan.inner.size < (plan.rows ? SHORT : NARROW));
}

template <class T> PyObject* execute_fold(const Run<T>& run, const Folding& folding) {
    const Layout& layout = run.layout;
    const bool empty_sum = folding.kind == Reduction::sum && layout.size == 0 && layout.ndim <= reduce::MOST;
    reduce::Plan plan;
    if (!empty_sum && (!plan_fold<T>(layout, folding.dims, plan) || has_short_lines(plan))) return nullptr;
    const auto* shape = reinterpret_cast<const npy_intp*>(layout.shape);
    NewArray out = reduce::results_array(layout.ndim, shape, folding.dims, folding.keepdim, type_number<T>);
    if (empty_sum) {
        std::fill_n(out.data<T>(), out.size(), T(0));
    } else {
        Release release(layout.size * int64_t(sizeof(T)) * run.compiled.cost);
        fold_program(run, plan, folding, out.data<T>());
    }
    return give(out).release().ptr();
}

template PyObject* execute_fold(const Run<float>&, const Folding&);
template PyObject* execute_fold(const Run<double>&, const Folding&);

}  // namespace fw
