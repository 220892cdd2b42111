// Connectionist temporal classification: the probability of all ways that emit given labels, forward, and the share of
// each label at each step, backward. Logarithms throughout; -inf stands for what cannot be.
#include <algorithm>
#include <limits>
#include <vector>

#include "base/pool.h"
#include "base/vecmath.h"
#include "bind/array.h"

namespace fw::alignments {
namespace {

template <class T> constexpr T NONE = -std::numeric_limits<T>::infinity();

template <class T> FW_INLINE Vec<T> log_sum(Vec<T> a, Vec<T> b, Vec<T> c) {
    Vec<T> top = maximum<T>(maximum<T>(a, b), c);
    top = select<T>(top == splat(NONE<T>), Vec<T>{}, top);
    return top + math::log(math::exp(a - top) + math::exp(b - top) + math::exp(c - top));
}

// Sizes, and the labels of all samples, with blanks between them; copied, since other threads may write into them.
struct Ways {
    int64_t steps, samples, classes, width, blank;
    std::vector<int64_t> labels, times, sizes;

    static bool read(const Array& a, std::vector<int64_t>& to, int64_t most) {
        InRows rows(a);
        to.assign(rows.data<int64_t>(), rows.data<int64_t>() + a.size());
        return std::all_of(to.begin(), to.end(), [most](int64_t v) { return v >= 0 && v <= most; });
    }
    bool fit(const Array& x, const Array& label, const Array& time, const Array& size, int64_t blank_) {
        if (!x.is_float() || x.ndim() != 3 || !x.size() || !label.is<int64_t>() || label.ndim() != 2 || !label.size() ||
            !time.is<int64_t>() || time.ndim() != 1 || !size.is<int64_t>() || size.ndim() != 1)
            return false;
        steps = x.shape(0), samples = x.shape(1), classes = x.shape(2), width = label.shape(1), blank = blank_;
        return label.shape(0) == samples && time.shape(0) == samples && size.shape(0) == samples &&
               read(label, labels, classes - 1) && read(time, times, steps) && read(size, sizes, (width - 1) / 2);
    }
    template <class F> void each(F&& body) const {
        parallel(samples, 1 + (1 << 11) / (steps * width), [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) body(i);
        });
    }
};

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

nb::object ctc(Array x, Array labels, Array times, Array sizes, int64_t blank) {
    Ways w;
    if (!w.fit(x, labels, times, sizes, blank)) return not_implemented();
    InRows rows(x);
    const npy_intp shape[] = {w.samples, w.steps, w.width};
    NewArray losses = new_array(1, shape, x.type()), alpha = new_array(3, shape, x.type());
    const auto run = [&](auto t) {
        using T = decltype(t);
        w.each([&](int64_t i) {
            Sample<T> a(w, rows.data<T>(), i);
            losses.data<T>()[i] = forward(a, w.times[size_t(i)], alpha.data<T>() + i * w.steps * w.width);
        });
    };
    {
        Release release(alpha.size() * 64);
        if (x.is<float>()) run(0.0f);
        else run(0.0);
    }
    return nb::make_tuple(give(losses), give(alpha));
}

nb::object ctc_grad(Array g, Array x, Array alpha, Array losses, Array labels, Array times, Array sizes, int64_t blank) {
    Ways w;
    if (!w.fit(x, labels, times, sizes, blank)) return not_implemented();
    const auto is_of = [&](const Array& a, int ndim) { return a.usable() && a.type() == x.type() && a.ndim() == ndim; };
    if (!is_of(g, 1) || !is_of(losses, 1) || !is_of(alpha, 3) || g.shape(0) != w.samples || losses.shape(0) != w.samples ||
        alpha.shape(0) != w.samples || alpha.shape(1) != w.steps || alpha.shape(2) != w.width)
        return not_implemented();
    InRows scores(x), ways(alpha), loss(losses), seed(g);
    NewArray out = new_array(3, x.shape(), x.type());
    const auto run = [&](auto t) {
        using T = decltype(t);
        w.each([&](int64_t i) {
            T* to = out.data<T>() + i * w.classes;
            for (int64_t s = 0; s < w.steps; ++s) std::fill_n(to + s * w.samples * w.classes, w.classes, T(0));
            const T of = loss.data<T>()[i];
            if (of == -NONE<T> || of == NONE<T>) return;  // no way at all
            Sample<T> a(w, scores.data<T>(), i);
            backward(a, w.times[size_t(i)], ways.data<T>() + i * w.steps * w.width, of, seed.data<T>()[i], to);
        });
    };
    {
        Release release(alpha.size() * 64);
        if (x.is<float>()) run(0.0f);
        else run(0.0);
    }
    return give(out);
}

}  // namespace

FW_BIND(m) {
    m.def("ctc", &ctc, nb::arg("x"), nb::arg("labels"), nb::arg("times"), nb::arg("sizes"), nb::arg("blank"));
    m.def("ctc_grad", &ctc_grad, nb::arg("g"), nb::arg("x"), nb::arg("alpha"), nb::arg("losses"), nb::arg("labels"),
          nb::arg("times"), nb::arg("sizes"), nb::arg("blank"));
}

}  // namespace fw::alignments
