// Dropout without a stored mask: which elements are kept is a pure function of a key, made anew in backward.
#include <algorithm>

#include "bind/array.h"
#include "random/coins.h"
#include "base/pool.h"

namespace fw {
namespace {

constexpr int64_t BATCH = 16;  // blocks that are made together
constexpr int64_t MOST = BATCH * PER;
constexpr int64_t GRAIN = 64;  // batches

template <class T> void drop(const T* x, T* out, int64_t n, const Coins& coins, T scale) {
    parallel((n + MOST - 1) / MOST, GRAIN, [&](int64_t begin, int64_t end) {
        alignas(64) uint16_t drawn[MOST];
        for (int64_t number = begin; number < end; ++number) {
            coins.blocks<BATCH>(number * BATCH, drawn);
            int64_t first = number * MOST, count = std::min(MOST, n - first);
            const T* from = x + first;
            T* to = out + first;
            const Int<T> whole = coins.whole;
            const Int<T> kept = bits<Int<T>>(scale);
            for (int64_t k = 0; k < count; ++k) to[k] = from[k] * bits<T>(-Int<T>(drawn[k] >= whole) & kept);
            if (!coins.ties(drawn, MOST)) continue;
            for (int64_t k = 0; k < count; ++k)
                if (drawn[k] == whole && !coins.kept_at_tie(first + k)) to[k] = from[k] * T(0);
        }
    });
}

nb::object dropout(Array x, double p, uint64_t key) {
    if (!x.is_float() || !(p >= 0 && p <= 1)) return not_implemented();
    nb::object rows = nb::steal(reinterpret_cast<PyObject*>(PyArray_GETCONTIGUOUS(x.p)));
    if (!rows.is_valid()) throw nb::python_error();
    Array from{reinterpret_cast<PyArrayObject*>(rows.ptr())};
    NewArray out = new_array(from.ndim(), from.shape(), from.type());
    Coins coins(key, p);
    double scale = p < 1 ? 1 / (1 - p) : 1;
    {
        Release release(from.size() * 4);
        if (from.is<float>()) drop(from.data<float>(), out.data<float>(), from.size(), coins, float(scale));
        else drop(from.data<double>(), out.data<double>(), from.size(), coins, scale);
    }
    return give(out);
}

}  // namespace

FW_BIND(m) { m.def("dropout", &dropout, nb::arg("x"), nb::kw_only(), nb::arg("p"), nb::arg("key")); }

}  // namespace fw
