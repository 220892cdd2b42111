// Conversion between the types of numbers, in one pass.
#include <algorithm>
#include <numeric>
#include <type_traits>

#include "bf16_array.h"
#include "copy.h"

namespace fw::moving {
namespace {

template <class F> bool by_type(PyArray_Descr* descr, F&& f) {
    const bool bf16 = is_bf16(descr);
    switch (descr->type_num) {
        case NPY_BOOL: return f(bool{}), true;
        case NPY_UINT8: return f(uint8_t{}), true;
        case NPY_INT8: return f(int8_t{}), true;
        case NPY_INT16: return f(int16_t{}), true;
        case NPY_INT32: return f(int32_t{}), true;
        case NPY_INT64: return f(int64_t{}), true;
        case NPY_FLOAT: return f(float{}), true;
        case NPY_DOUBLE: return f(double{}), true;
        default: return bf16 ? f(Bf16{}), true : false;
    }
}

// What becomes of nan and of numbers that do not fit is the processor's choice for these pairs, as in NumPy;
// for narrow integers NumPy's own loops decide.
template <class T> constexpr bool floating = std::is_floating_point<T>::value || std::is_same<T, Bf16>::value;
template <class From, class To>
constexpr bool taken = !(floating<From> && std::is_integral<To>::value && sizeof(To) < 4 &&
                         !std::is_same<To, bool>::value);

// bfloat16 converts by way of float32, as in ml_dtypes.
template <class From, class To> FW_INLINE To converted(From x) {
    if constexpr (std::is_same<From, Bf16>::value)
        return converted<float, To>(widen(x));
    else if constexpr (std::is_same<To, Bf16>::value)
        return narrow(static_cast<float>(x));
    else if constexpr (std::is_same<To, bool>::value)
        return x != From(0);
    else
        return static_cast<To>(x);
}

template <class From, class To> void convert(const Block& b, const char* from, char* to) {
    int inner = b.ndim - 1;
    int64_t n = b.shape[inner], step = b.from[inner];
    parallel(b.rows(), grain_of(n * int64_t(sizeof(From) + sizeof(To))), [&](int64_t begin, int64_t end) {
        Walk w(b, inner, begin);
        for (int64_t i = begin; i < end; ++i, w.next()) {
            const char* p = from + w.from;
            To* q = reinterpret_cast<To*>(to + w.to);
            if (step == sizeof(From) && std::is_same<From, Bf16>::value && std::is_same<To, float>::value)
                widen(reinterpret_cast<float*>(q), reinterpret_cast<const Bf16*>(p), n);
            else if (step == sizeof(From) && std::is_same<From, float>::value && std::is_same<To, Bf16>::value)
                narrow(reinterpret_cast<Bf16*>(q), reinterpret_cast<const float*>(p), n);
            else if (step == sizeof(From))
                for (int64_t j = 0; j < n; ++j) q[j] = converted<From, To>(reinterpret_cast<const From*>(p)[j]);
            else
                for (int64_t j = 0; j < n; ++j)
                    q[j] = converted<From, To>(*reinterpret_cast<const From*>(p + j * step));
        }
    });
}

// One long row as several, for the threads.
constexpr int64_t ROW = 8192;
void split(Block& b) {
    int64_t n = b.shape[0];
    if (b.ndim != 1 || n < 2 * ROW || n % ROW) return;
    int64_t from = b.from[0], to = b.to[0];
    b.ndim = 0;
    b.add(n / ROW, from * ROW, to * ROW);
    b.add(ROW, from, to);
}

nb::object cast(Array x, nb::handle dtype) {
    if (!x.usable() || !x.size()) return not_implemented();
    nb::object descr = PyArray_DescrCheck(dtype.ptr()) ? nb::borrow(dtype) : nb::getattr(dtype, "numpy", nb::none());
    if (!PyArray_DescrCheck(descr.ptr())) return not_implemented();
    auto* wanted = reinterpret_cast<PyArray_Descr*>(descr.ptr());
    const int type = wanted->type_num;
    nb::object result;
    by_type(PyArray_DESCR(x.p), [&](auto a) {
        by_type(wanted, [&](auto b) {
            using From = std::conditional_t<std::is_same<decltype(a), bool>::value, uint8_t, decltype(a)>;
            using To = decltype(b);
            if constexpr (taken<From, To>) {
                Array out = x.contiguous() ? new_array(x.ndim(), x.shape(), type) : new_like(x, type);
                result = give(out);
                Release release(x.size() * int64_t(sizeof(From) + sizeof(To)));
                Block block;
                std::vector<int> order(size_t(x.ndim()));  // that of the result's memory
                std::iota(order.begin(), order.end(), 0);
                std::stable_sort(order.begin(), order.end(),
                                 [&](int c, int d) { return out.stride(c) > out.stride(d); });
                for (int d : order) block.add(x.shape(d), x.stride(d), out.stride(d));
                block.simplify();
                if (!block.ndim) block.add(1, 0, 0);
                int64_t n = block.shape[0], odd = n % ROW;
                const char* from = x.data<char>();
                char* to = out.data<char>();
                if (block.ndim == 1 && n > 2 * ROW && odd) {  // the rest first, then rows of one length
                    block.shape[0] = odd;
                    convert<From, To>(block, from, to);
                    block.shape[0] = n - odd;
                    from += odd * block.from[0], to += odd * block.to[0];
                }
                split(block);
                convert<From, To>(block, from, to);
            }
        });
    });
    return result.is_valid() ? result : not_implemented();
}

}  // namespace

FW_BIND(m) { m.def("cast", &cast, nb::arg("x"), nb::arg("dtype")); }

}  // namespace fw::moving
