// The gradients of scaled dot-product attention of NumPy arrays.
#include "attention/attention_grad.h"
#include "bind/attention/attention.h"

namespace fw::attention {
namespace {

// The gradients of the operands in `given`; of what is not wanted an empty array.
template <class T>
nb::object backward(const Problem<T>& a, const Array& g, const Array& out, const Array& lse, const Array (&given)[4],
                    const std::vector<bool>& wanted) {
    NewArray results[4];
    View to[4];
    const npy_intp none = 0;
    for (int i = 0; i < 4; ++i) {
        const Array& x = given[i];
        results[i] = !wanted[i] ? new_array(1, &none, type_number<T>)
                     : i < 3    ? new_by_length(x.ndim(), x.shape(), x)
                                : new_array(x.ndim(), x.shape(), x.type());
        if (wanted[i]) to[i] = view_of(results[i]);
    }
    const Operand<const T> from(a.heads, view_of(g)), made(a.heads, view_of(out));
    const T* sums = lse.data<T>();
    {
        Release release(a.heads.count * a.queries * a.keys * int64_t(sizeof(T)));
        attend_grad(a, from, made, sums, to);
    }
    return nb::make_tuple(give(results[0]), give(results[1]), give(results[2]), give(results[3]));
}

bool same_heads(const Heads& heads, const Array& x, int64_t rows, int64_t cols, int further) {
    if (x.ndim() != heads.ndim + further || x.shape(heads.ndim) != rows) return false;
    if (further == 2 && x.shape(heads.ndim + 1) != cols) return false;
    return std::equal(heads.shape, heads.shape + heads.ndim, x.shape());
}

template <class T>
nb::object backward_of(const Array& g, const Array& q, const Array& k, const Array& v, const Array& mask, bool masked,
                       const Array& out, const Array& lse, bool causal, double scale, double p, uint64_t key,
                       const std::vector<bool>& wanted) {
    Problem<T> a;
    if (!set_up<T>(a, view_of(q), view_of(k), view_of(v), masked ? view_of(mask) : View(), masked,
                   causal, scale, p, key) || !a.heads.count)
        return not_implemented();
    for (const Array* x : {&g, &out})
        if (!x->is<T>() || !view_of(*x).whole_strides() || !same_heads(a.heads, *x, a.queries, a.out_width, 2))
            return not_implemented();
    if (!lse.is<T>() || !lse.contiguous() || !same_heads(a.heads, lse, a.queries, 0, 1)) return not_implemented();
    return backward(a, g, out, lse, {q, k, v, mask}, wanted);
}

nb::object attention_grad(Array g, Array q, Array k, Array v, nb::object mask, Array out, Array lse, bool causal,
                          double scale, double p, uint64_t key, nb::tuple needs) {
    Given given(mask);
    if (!takes(q, k, v, given, causal)) return not_implemented();
    std::vector<bool> wanted;
    for (nb::handle h : needs) wanted.push_back(nb::cast<bool>(h));
    if (wanted.size() != 4 || (wanted[3] && (given.none || given.a.is<bool>()))) return not_implemented();
    auto run = q.is<float>() ? backward_of<float> : backward_of<double>;
    return run(g, q, k, v, given.a, !given.none, out, lse, causal, scale, p, key, wanted);
}

}  // namespace

FW_BIND(m) {
    m.def("attention_grad", &attention_grad, nb::arg("g"), nb::arg("q"), nb::arg("k"), nb::arg("v"),
          nb::arg("mask").none(), nb::arg("out"), nb::arg("lse"), nb::kw_only(), nb::arg("causal"), nb::arg("scale"),
          nb::arg("p"), nb::arg("key"), nb::arg("wanted"));
}

}  // namespace fw::attention
