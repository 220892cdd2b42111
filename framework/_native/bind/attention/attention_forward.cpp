// Scaled dot-product attention of NumPy arrays.
#include "bind/attention/attention.h"
#include "gemm/amx.h"

namespace fw::attention {
namespace {

template <class T, class S = T> nb::object forward(const Array& q, const Array& k, const Array& v, const Array& mask, bool masked,
                                      bool causal, double scale, double p, uint64_t key) {
    Problem<T, S> a;
    if (!set_up(a, view_of(q), view_of(k), view_of(v), masked ? view_of(mask) : View(), masked, causal, scale, p, key))
        return not_implemented();
    npy_intp shape[MOST_AXES + 2];
    const int n = a.heads.ndim;
    std::copy(a.heads.shape, a.heads.shape + n, shape);
    shape[n] = a.queries, shape[n + 1] = a.out_width;
    if (!a.heads.count) return not_implemented();
    NewArray out = new_by_length(n + 2, shape, q), lse = new_array(n + 1, shape, type_number<T>);
    {
        Operand<S> to(a.heads, view_of(out));
        T* to_lse = lse.data<T>();
        Release release(a.heads.count * a.queries * a.keys * int64_t(sizeof(T)));
        attend(a, to, to_lse);
    }
    return nb::make_tuple(give(out), give(lse));
}

nb::object attention_forward(Array q, Array k, Array v, nb::object mask, bool causal, double scale, double p,
                             uint64_t key) {
    Given given(mask);
    if (is_bf16(q) && amx::available() && takes(q, k, v, given, causal, Type::bfloat16) && q.shape(q.ndim() - 1) <= MOST_NARROW &&
        v.shape(v.ndim() - 1) <= MOST_NARROW)
        return forward<float, Bf16>(q, k, v, given.a, !given.none, causal, scale, p, key);
    if (!takes(q, k, v, given, causal)) return not_implemented();
    if (q.is<float>()) return forward<float>(q, k, v, given.a, !given.none, causal, scale, p, key);
    return forward<double>(q, k, v, given.a, !given.none, causal, scale, p, key);
}

}  // namespace

FW_BIND(m) {
    m.def("attention", &attention_forward, nb::arg("q"), nb::arg("k"), nb::arg("v"), nb::arg("mask").none(),
          nb::kw_only(), nb::arg("causal"), nb::arg("scale"), nb::arg("p"), nb::arg("key"));
}

}  // namespace fw::attention
