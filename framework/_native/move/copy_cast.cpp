// Conversion between the types of numbers, in one pass.
#include <algorithm>
#include <type_traits>

#include "base/layout.h"
#include "bind/bf16_array.h"
#include "bind/move/copy.h"
#include "base/half.h"

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
        case NPY_HALF: return f(Half{}), true;
        case NPY_FLOAT: return f(float{}), true;
        case NPY_DOUBLE: return f(double{}), true;
        default: return bf16 ? f(Bf16{}), true : false;
    }
}

// What becomes of nan and of numbers that do not fit is the processor's choice for these pairs, as in NumPy;
// for narrow integers NumPy's own loops decide.
template <class T> constexpr bool narrowed = std::is_same<T, Bf16>::value || std::is_same<T, Half>::value;
template <class T> constexpr bool floating = std::is_floating_point<T>::value || narrowed<T>;
template <class From, class To>
constexpr bool taken = !(std::is_same<From, double>::value && std::is_same<To, Half>::value) &&  // rounded once
                       !(floating<From> && std::is_integral<To>::value && sizeof(To) < 4 &&
                         !std::is_same<To, bool>::value);

// bfloat16 converts by way of float32, as in ml_dtypes, and so does float16.
template <class From, class To> FW_INLINE To converted(From x) {
    if constexpr (narrowed<From>)
        return converted<float, To>(widen(x));
    else if constexpr (std::is_same<To, Bf16>::value)
        return narrow(static_cast<float>(x));
    else if constexpr (std::is_same<To, Half>::value)
        return narrow_half(static_cast<float>(x));
    else if constexpr (std::is_same<To, bool>::value)
        return x != From(0);
    else
        return static_cast<To>(x);
}

constexpr int64_t SOME = 256;  // numbers that are converted in two steps

template <class From, class To> void convert_line(const From* x, To* y, int64_t n) {
    if constexpr (narrowed<From> && std::is_same<To, float>::value) widen(y, x, n);
    else if constexpr (std::is_same<From, float>::value && narrowed<To>) narrow(y, x, n);
    else if constexpr (narrowed<From> || narrowed<To>) {  // by float32, for which there are instructions
        float some[SOME];
        for (int64_t j = 0, m; j < n; j += m) {
            m = std::min(SOME, n - j);
            if constexpr (narrowed<From>) widen(some, x + j, m);
            else for (int64_t k = 0; k < m; ++k) some[k] = converted<From, float>(x[j + k]);
            if constexpr (narrowed<To>) narrow(y + j, some, m);
            else for (int64_t k = 0; k < m; ++k) y[j + k] = converted<float, To>(some[k]);
        }
    } else
        for (int64_t j = 0; j < n; ++j) y[j] = converted<From, To>(x[j]);
}

// Converts the rows [begin, end) of a block.
using Converter = void (*)(const Block& b, const char* from, char* to, int64_t begin, int64_t end);

template <class From, class To>
void convert(const Block& b, const char* from, char* to, int64_t begin, int64_t end) {
    const int inner = b.ndim - 1;
    const int64_t n = b.shape[inner], step = b.from[inner];
    Walk w(b, inner, begin);
    for (int64_t i = begin; i < end; ++i, w.next()) {
        const char* p = from + w.from;
        To* q = reinterpret_cast<To*>(to + w.to);
        if (step == sizeof(From)) {
            convert_line(reinterpret_cast<const From*>(p), q, n);
        } else if constexpr (std::is_same<From, Half>::value || std::is_same<To, Half>::value) {
            From some[SOME];  // brought together first, for there are instructions for whole vectors
            for (int64_t j = 0, m; j < n; j += m) {
                m = std::min(SOME, n - j);
                for (int64_t k = 0; k < m; ++k) some[k] = *reinterpret_cast<const From*>(p + (j + k) * step);
                convert_line(some, q + j, m);
            }
        } else {
            for (int64_t j = 0; j < n; ++j)
                q[j] = converted<From, To>(*reinterpret_cast<const From*>(p + j * step));
        }
    }
}

// The converter of a pair of types; nullptr if NumPy converts it. Bytes are the same with and without a sign.
Converter converter(PyArray_Descr* given, PyArray_Descr* wanted) {
    Converter found = nullptr;
    by_type(given, [&](auto a) {
        using Given = decltype(a);
        using From = std::conditional_t<std::is_same<Given, bool>::value, uint8_t, Given>;
        by_type(wanted, [&](auto b) {
            using Wanted = decltype(b);
            using To = std::conditional_t<std::is_same<Wanted, int8_t>::value, uint8_t, Wanted>;
            constexpr bool bytes = sizeof(From) == 1 && sizeof(To) == 1;
            if constexpr (taken<From, To>) found = convert<std::conditional_t<bytes, uint8_t, From>, To>;
        });
    });
    return found;
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

void convert_all(Converter convert, const Block& b, int64_t item_bytes, const char* from, char* to) {
    const int64_t n = b.shape[b.ndim - 1];
    parallel(b.rows(), grain_of(n * item_bytes),
             [&](int64_t begin, int64_t end) { convert(b, from, to, begin, end); });
}

nb::object cast(Array x, nb::handle dtype) {
    if (!x.usable() || !x.size()) return not_implemented();
    nb::object descr = PyArray_DescrCheck(dtype.ptr()) ? nb::borrow(dtype) : nb::getattr(dtype, "numpy", nb::none());
    if (!PyArray_DescrCheck(descr.ptr())) return not_implemented();
    auto* wanted = reinterpret_cast<PyArray_Descr*>(descr.ptr());
    const int type = wanted->type_num;
    const Converter convert = converter(PyArray_DESCR(x.p), wanted);
    if (!convert) return not_implemented();
    NewArray out = x.contiguous() ? new_array(x.ndim(), x.shape(), type) : new_like(x, type);
    nb::object result = give(out);
    const int64_t bytes = PyArray_ITEMSIZE(x.p) + PyArray_ITEMSIZE(out.p);  // of an element, both
    Release release(x.size() * bytes);
    Block block;
    for (int d = 0; d < x.ndim(); ++d) block.add(x.shape(d), x.stride(d), out.stride(d));
    block.simplify();
    if (!block.ndim) block.add(1, 0, 0);
    int64_t n = block.shape[0], odd = n % ROW;
    const char* from = x.data<char>();
    char* to = out.data<char>();
    if (block.ndim == 1 && n > 2 * ROW && odd) {  // the rest first, then rows of one length
        block.shape[0] = odd;
        convert_all(convert, block, bytes, from, to);
        block.shape[0] = n - odd;
        from += odd * block.from[0], to += odd * block.to[0];
    }
    split(block);
    convert_all(convert, block, bytes, from, to);
    return result;
}

}  // namespace

FW_BIND(m) { m.def("cast", &cast, nb::arg("x"), nb::arg("dtype")); }

}  // namespace fw::moving
