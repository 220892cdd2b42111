// Clipping of gradients: all of them in one call, which leaves odd ones and those that overlap to the plain form.
#include "optim/optim.h"

namespace fw::optim {
namespace {

constexpr int64_t CHUNK = 16384;

// The sum of squares, in an order of its own whatever the threads.
template <class T> double squares(const T* x, int64_t n) {
    constexpr int SUMS = 16;
    double sums[SUMS] = {};
    int64_t i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (int k = 0; k < SUMS; ++k) sums[k] += double(x[i + k]) * double(x[i + k]);
    for (int k = 0; i < n; ++i, ++k) sums[k] += double(x[i]) * double(x[i]);
    double total = 0;
    for (double s : sums) total += s;
    return total;
}

// The root of the sum of the squares of all elements of all arrays.
nb::object norm_of_all(nb::list arrays) {
    Work work = gather(arrays, 1);
    if (!work.skipped.empty()) return not_implemented();
    std::vector<std::pair<const Parameter*, int64_t>> chunks;
    for (const Parameter& one : work.all)
        for (int64_t i = 0; i < one.size; i += CHUNK) chunks.emplace_back(&one, i);
    std::vector<double> sums(chunks.size());
    {
        Release release(work.bytes);
        parallel(int64_t(chunks.size()), 1, [&](int64_t begin, int64_t end) {
            for (int64_t c = begin; c < end; ++c) {
                auto [one, i] = chunks[size_t(c)];
                int64_t n = std::min(CHUNK, one->size - i);
                sums[size_t(c)] = one->wide ? squares(reinterpret_cast<const double*>(one->arrays[0]) + i, n)
                                            : squares(reinterpret_cast<const float*>(one->arrays[0]) + i, n);
            }
        });
    }
    double total = 0;
    for (double s : sums) total += s;
    return nb::float_(__builtin_sqrt(total));
}

template <class T> struct Scale {
    T factor;
    explicit Scale(Numbers& n) : factor(n.number<T>("factor")) {}
    FW_INLINE void at(Place<T> x) const { x.parameter(x.parameter() * splat(factor)); }
};

template <class T> struct Clip {
    T low, high;
    explicit Clip(Numbers& n) : low(n.number<T>("low")), high(n.number<T>("high")) {}
    FW_INLINE void at(Place<T> x) const {
        x.parameter(minimum<T>(maximum<T>(x.parameter(), splat(low)), splat(high)));
    }
};

// In place on all arrays, or on none.
template <template <class> class Change> nb::object change_all(nb::list arrays, nb::dict numbers) try {
    const Both<Change> both(numbers);
    Work work = gather(arrays, 1);
    if (!work.skipped.empty()) return not_implemented();
    both.run(work);
    return nb::none();
} catch (const NotPythons&) {
    return not_implemented();
}

}  // namespace

FW_BIND(m) {
    m.def("norm_of_all", &norm_of_all);
    m.def("scale_all", &change_all<Scale>);
    m.def("clip_all", &change_all<Clip>);
}

}  // namespace fw::optim
