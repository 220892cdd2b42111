#include "index/combined.h"

#include <algorithm>
#include <limits>
#include <type_traits>

namespace fw {
namespace {

template <class T> T neutral(Way way) {
    if (way == Way::product) return T(1);
    if (way == Way::mean) return T(0);
    using Limits = std::numeric_limits<T>;
    if constexpr (Limits::is_integer) return way == Way::largest ? Limits::min() : Limits::max();
    else return way == Way::largest ? -Limits::infinity() : Limits::infinity();
}

// Of whole numbers by words without a sign, which may run over.
template <class T> T times(T a, T b) {
    if constexpr (std::numeric_limits<T>::is_integer) return T(std::make_unsigned_t<T>(a) * std::make_unsigned_t<T>(b));
    else return a * b;
}
template <class T> T plus(T a, T b) {
    if constexpr (std::numeric_limits<T>::is_integer) return T(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b));
    else return a + b;
}

template <class T, class F> void combine_rows(const T* from, int64_t inner, T* to, F&& f) {
    for (int64_t i = 0; i < inner; ++i) to[i] = f(to[i], from[i]);
}

}  // namespace

template <class T>
void combine_slices(Way way, const T* x, const T* source, int64_t outer, int64_t n, int64_t inner,
                    const std::vector<int64_t>& places, bool own, T* out) {
    std::vector<int64_t> counts(size_t(n), 0);
    for (int64_t place : places) ++counts[size_t(place)];
    std::copy(x, x + outer * n * inner, out);
    for (int64_t o = 0; o < outer; ++o, out += n * inner) {
        for (int64_t k = 0; k < n && !own; ++k)
            if (counts[size_t(k)]) std::fill_n(out + k * inner, inner, neutral<T>(way));
        for (int64_t place : places) {
            T* to = out + place * inner;
            if (way == Way::product) combine_rows(source, inner, to, times<T>);
            else if (way == Way::mean) combine_rows(source, inner, to, plus<T>);
            else if (way == Way::largest) combine_rows(source, inner, to, [](T a, T b) { return a > b || a != a ? a : b; });
            else combine_rows(source, inner, to, [](T a, T b) { return a < b || a != a ? a : b; });
            source += inner;
        }
        for (int64_t k = 0; k < n && way == Way::mean; ++k)
            if (counts[size_t(k)])
                for (int64_t i = 0; i < inner; ++i) out[k * inner + i] /= T(counts[size_t(k)] + own);
    }
}

template void combine_slices(Way, const float*, const float*, int64_t, int64_t, int64_t, const std::vector<int64_t>&, bool, float*);
template void combine_slices(Way, const int64_t*, const int64_t*, int64_t, int64_t, int64_t, const std::vector<int64_t>&, bool,
                             int64_t*);
template void combine_slices(Way, const double*, const double*, int64_t, int64_t, int64_t, const std::vector<int64_t>&, bool, double*);

}  // namespace fw
