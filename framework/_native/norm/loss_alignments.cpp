// Logarithms throughout; -inf stands for what cannot be.
#include "norm/loss_alignments.h"

#include <algorithm>
#include <limits>

#include "base/pool.h"
#include "base/vecmath.h"

namespace fw::alignments {
namespace {

template <class T> constexpr T NONE = -std::numeric_limits<T>::infinity();

template <class T> FW_INLINE Vec<T> log_sum(Vec<T> a, Vec<T> b, Vec<T> c) {
    Vec<T> top = maximum<T>(maximum<T>(a, b), c);
    top = select<T>(top == splat(NONE<T>), Vec<T>{}, top);
    return top + math::log(math::exp(a - top) + math::exp(b - top) + math::exp(c - top));
}

bool within(const std::vector<int64_t>& numbers, int64_t most) {
    return std::all_of(numbers.begin(), numbers.end(), [most](int64_t v) { return v >= 0 && v <= most; });
}

template <class F> void each_sample(const Ways& w, F&& body) {
    parallel(w.samples, 1 + (1 << 11) / (w.steps * w.width), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) body(i);
    });
}

// Rows of one sample, as wide as whole vectors and two more on both sides, all of which cannot be.
template <class T> struct Sample {
    const Ways& w;
    const T* x;
    const int64_t* labels;
    int64_t places, room;
    std::vector<T> memory;
    T *row, *next, *emitted, *skip;

    Sample(const Ways& ways, const T* scores, int64_t i)
        : w(ways), x(scores + i * ways.classes), labels(ways.labels.data() + i * ways.width),
          places(2 * ways.sizes[size_t(i)] + 1), room((ways.width + lanes<T> - 1) / lanes<T> * lanes<T> + 4),
          memory(size_t(4 * room), NONE<T>), row(memory.data() + 2), next(row + room), emitted(next + room),
          skip(emitted + room) {
        for (int64_t s = 2; s < places; ++s)
            if (labels[s] != w.blank && labels[s] != labels[s - 2]) skip[s] = 0;
    }
    void emit(int64_t t) {
        for (int64_t s = 0; s < places; ++s) emitted[s] = x[t * w.samples * w.classes + labels[s]];
    }
    bool is_end(int64_t s) const { return s == places - 1 || s == places - 2; }
    template <class F> FW_INLINE void vectors(F&& body) {
        for (int64_t s = 0; s < w.width; s += lanes<T>) body(s);
    }
};

template <class T> T forward(Sample<T>& a, int64_t times, T* alpha) {
    const int64_t width = a.w.width;
    std::fill(alpha + times * width, alpha + a.w.steps * width, NONE<T>);
    a.row[0] = 0;  // before the first step
    for (int64_t t = 0; t < times; ++t) {
        a.emit(t);
        if (t == 0) {
            for (int64_t s = 0; s < std::min<int64_t>(2, a.places); ++s) a.row[s] = a.emitted[s];
        } else {
            a.vectors([&](int64_t s) {
                const Vec<T> skipped = load(a.row + s - 2) + load(a.skip + s);
                store(a.next + s, log_sum<T>(load(a.row + s), load(a.row + s - 1), skipped) + load(a.emitted + s));
            });
            std::swap(a.row, a.next);
        }
        std::copy(a.row, a.row + width, alpha + t * width);
    }
    Vec<T> last = splat(NONE<T>);
    for (int64_t s = std::max<int64_t>(0, a.places - 2), i = 0; s < a.places; ++s, ++i) last[i] = a.row[s];
    const T total = log_sum<T>(last, splat(T(last[1])), splat(NONE<T>))[0];
    return a.places == 1 ? -a.row[0] : -total;
}

template <class T> void backward(Sample<T>& a, int64_t times, const T* alpha, T loss, T g, T* out) {
    const int64_t width = a.w.width;
    T* after = a.row;
    for (int64_t s = 0; s < a.places; ++s)
        if (a.is_end(s)) after[s] = 0;
    for (int64_t t = times; t-- > 0;) {
        if (t + 1 < times) {
            a.emit(t + 1);
            a.vectors([&](int64_t s) { store(a.next + s, load(after + s) + load(a.emitted + s)); });
            a.vectors([&](int64_t s) {
                const Vec<T> skipped = load(a.next + s + 2) + load(a.skip + s + 2);
                store(after + s, log_sum<T>(load(a.next + s), load(a.next + s + 1), skipped));
            });
        }
        T* to = out + t * a.w.samples * a.w.classes;
        for (int64_t s = 0; s < width; s += lanes<T>) {
            const int64_t n = std::min<int64_t>(lanes<T>, width - s);
            const Vec<T> way = load_part(alpha + t * width + s, n, NONE<T>) + load(after + s) + splat(loss);
            const Vec<T> share = math::exp(way) * splat(g);
            for (int64_t i = 0; i < std::min(n, a.places - s); ++i) to[a.labels[s + i]] -= share[i];
        }
    }
}

}  // namespace

bool Ways::valid() const {
    return within(labels, classes - 1) && within(times, steps) && within(sizes, (width - 1) / 2);
}

template <class T> void ctc(const Ways& w, const T* x, T* losses, T* alpha) {
    each_sample(w, [&](int64_t i) {
        Sample<T> a(w, x, i);
        losses[i] = forward(a, w.times[size_t(i)], alpha + i * w.steps * w.width);
    });
}

template <class T> void ctc_grad(const Ways& w, const T* g, const T* x, const T* alpha, const T* losses, T* gx) {
    each_sample(w, [&](int64_t i) {
        T* to = gx + i * w.classes;
        for (int64_t s = 0; s < w.steps; ++s) std::fill_n(to + s * w.samples * w.classes, w.classes, T(0));
        const T loss = losses[i];
        if (loss == -NONE<T> || loss == NONE<T>) return;  // no way at all
        Sample<T> a(w, x, i);
        backward(a, w.times[size_t(i)], alpha + i * w.steps * w.width, loss, g[i], to);
    });
}

template void ctc(const Ways&, const float*, float*, float*);
template void ctc(const Ways&, const double*, double*, double*);
template void ctc_grad(const Ways&, const float*, const float*, const float*, const float*, float*);
template void ctc_grad(const Ways&, const double*, const double*, const double*, const double*, double*);

}  // namespace fw::alignments
