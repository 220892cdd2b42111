// cross_entropy of scores (N, C, ...) and class numbers: log_softmax, picking and the reduction at once.
//
// Of each target t, with the classes' weights w and the smoothing e, every class c has the share
// q_c = (1 - e) * w_t * [c == t] + e / C * w_c, and the loss is the sum of q_c * (log(sum(exp(x))) - x_c).
#include <memory>
#include <string>
#include <vector>

#include "bind/array.h"
#include "base/columns.h"
#include "base/vecmath.h"

namespace fw {
namespace {

constexpr int64_t SHARE_BLOCK = 64;

enum class Reduction { none, sum, mean };

// Targets are copied: another thread may write into the array while the kernel runs.
template <class T> struct Scores {
    Around a;                 // classes, and what lies around them
    const T* x;
    std::vector<int64_t> target;
    const T* weight;          // nullptr: all 1
    int64_t ignore;
    double smoothing;
    double all_weights = smoothing == 0 ? 0 : weight ? total_of(weight, a.n) : double(a.n);

    int64_t targets() const { return a.outer * a.inner; }
    bool ignored(int64_t i) const { return target[size_t(i)] == ignore; }
    double weight_of(int64_t i) const { return weight ? double(weight[target[size_t(i)]]) : 1; }
    double even() const { return smoothing / double(a.n); }

    bool valid() const {
        for (int64_t i = 0; i < targets(); ++i)
            if ((target[i] < 0 || target[i] >= a.n) && !ignored(i)) return false;
        return true;
    }

    double share() const {  // what the mean divides by: added in blocks, for fewer roundings of large sums
        double total = 0;
        for (int64_t first = 0; first < targets(); first += SHARE_BLOCK) {
            double block = 0;
            for (int64_t i = first; i < std::min(targets(), first + SHARE_BLOCK); ++i)
                block += ignored(i) ? 0 : weight_of(i);
            total += block;
        }
        return total;
    }
};

// -- forward --------------------------------------------------------------------------------------

// spread: the sum of w_c * (x_c - top)
template <class T> T loss_of(const Scores<T>& s, int64_t i, double log_total, double picked, double spread) {
    if (s.ignored(i)) return T(0);
    double hard = s.weight_of(i) * (log_total - picked);
    if (s.smoothing == 0) return T(hard);
    return T((1 - s.smoothing) * hard + s.even() * (s.all_weights * log_total - spread));
}

template <class T> void row_loss(const Scores<T>& s, int64_t i, T* loss, T* top, T* total) {
    const int64_t n = s.a.n;
    const T* x = s.x + i * n;
    top[i] = largest(x, n);
    Vec<T> t = splat(top[i]);
    double sum = long_sum<T>(n, [&](int64_t k, auto part) { return math::exp(take(x + k, part, LEAST<T>) - t); });
    double spread = 0;
    if (s.smoothing != 0)
        spread = sums<T, 1>(n, [&](int64_t k, auto part, Vec<T>* v) {
            Vec<T> d = take(x + k, part, top[i]) - t;
            v[0] += s.weight ? d * take(s.weight + k, part) : d;
        }).of[0];
    total[i] = T(sum);
    double picked = s.ignored(i) ? 0 : double(x[s.target[size_t(i)]] - top[i]);
    loss[i] = loss_of(s, i, std::log(sum), picked, spread);
}

template <class T>
void column_losses(const Scores<T>& s, int64_t o, int64_t first, Columns<T> c, T* losses, T* tops, T* totals) {
    const T* x = s.x + o * s.a.n * s.a.inner + first;
    T spread[MOST_COLUMNS] = {};
    const int64_t begin = o * s.a.inner + first;
    T *top = tops + begin, *total = totals + begin;
    c.largest(x, top);
    c.sum(total, [&](int64_t j, int64_t at, auto part) { return math::exp(take(x + at, part) - take(top + j, part)); });
    if (s.smoothing != 0)
        c.sum(spread, [&](int64_t j, int64_t at, auto part) {
            Vec<T> d = take(x + at, part) - take(top + j, part);
            return s.weight ? d * s.weight[at / s.a.inner] : d;
        });
    for (int64_t j = 0; j < c.width; ++j) {
        const int64_t i = begin + j;
        double picked = s.ignored(i) ? 0 : double(x[s.target[size_t(i)] * s.a.inner + j] - top[j]);
        losses[i] = loss_of(s, i, std::log(double(total[j])), picked, double(spread[j]));
    }
}

template <class T> void all_losses(const Scores<T>& s, T* losses, T* top, T* total) {
    if (s.a.inner == 1)
        parallel(s.a.outer, grain_of(s.a.n), [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) row_loss(s, i, losses, top, total);
        });
    else
        over_columns<T>(s.a, [&](int64_t o, int64_t first, Columns<T> c) {
            column_losses(s, o, first, c, losses, top, total);
        });
}

// -- backward: scale * (p_c * sum(q) - q_c), p = exp(x - top) / total -----------------------------------

// gx_c = exp(x_c - top) * all - even * w_c, and own less at the target's class
template <class T> struct Terms { T top, all, even, own; };

template <class T> Terms<T> terms_of(const Scores<T>& s, int64_t i, double scale, T top, T total) {
    double own = (1 - s.smoothing) * s.weight_of(i), even = s.even();
    double q = own + even * s.all_weights;
    return {top, T(scale * q / double(total)), T(scale * even), T(scale * own)};
}

template <class T> void row_grad(const Scores<T>& s, int64_t i, const Terms<T>& t, T* gx) {
    const int64_t n = s.a.n;
    const T* x = s.x + i * n;
    Vec<T> top = splat(t.top), all = splat(t.all), even = splat(-t.even);
    const bool smooth = s.smoothing != 0;
    long_vectors<T>(0, n, [&](int64_t k, auto part, int) {
        Vec<T> v = math::exp(take(x + k, part) - top) * all;
        if (smooth) v = s.weight ? fma<T>(even, take(s.weight + k, part), v) : v + even;
        put(gx + k, v, part);
    });
    gx[s.target[size_t(i)]] -= t.own;
}

template <class T>
void column_grads(const Scores<T>& s, int64_t o, int64_t first, Columns<T> c, const Terms<T>* terms, T* out) {
    const int64_t start = o * s.a.n * s.a.inner + first, begin = o * s.a.inner + first;
    const T* x = s.x + start;
    T *gx = out + start, top[MOST_COLUMNS], all[MOST_COLUMNS], even[MOST_COLUMNS];
    for (int64_t j = 0; j < c.width; ++j) {
        top[j] = terms[j].top;
        all[j] = terms[j].all;
        even[j] = terms[j].even;
    }
    for (int64_t k = 0; k < c.n; ++k) {
        Vec<T> w = splat(s.weight ? -s.weight[k] : T(-1));
        c.each(k, [&](int64_t j, int64_t at, auto part) {
            Vec<T> e = math::exp(take(x + at, part) - take(top + j, part));
            put(gx + at, fma<T>(take(even + j, part), w, e * take(all + j, part)), part);
        });
    }
    for (int64_t j = 0; j < c.width; ++j) {
        if (!s.ignored(begin + j)) gx[s.target[size_t(begin + j)] * s.a.inner + j] -= terms[j].own;
        else for (int64_t k = 0; k < c.n; ++k) gx[k * s.a.inner + j] = T(0);
    }
}

// scale(i): what the loss of target i counts
template <class T, class F> void all_grads(const Scores<T>& s, const T* top, const T* total, F scale, T* gx) {
    auto terms = [&](int64_t i) {
        return s.ignored(i) ? Terms<T>{top[i], 0, 0, 0} : terms_of(s, i, scale(i), top[i], total[i]);
    };
    if (s.a.inner == 1)
        parallel(s.a.outer, grain_of(s.a.n), [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                if (s.ignored(i)) std::fill(gx + i * s.a.n, gx + (i + 1) * s.a.n, T(0));
                else row_grad(s, i, terms(i), gx + i * s.a.n);
            }
        });
    else
        over_columns<T>(s.a, [&](int64_t o, int64_t first, Columns<T> c) {
            Terms<T> own[MOST_COLUMNS];
            for (int64_t j = 0; j < c.width; ++j) own[j] = terms(o * s.a.inner + first + j);
            column_grads(s, o, first, c, own, gx);
        });
}

// -- bindings -------------------------------------------------------------------------------------

Reduction reduction_of(nb::handle name) {
    std::string text = nb::cast<std::string>(name);
    return text == "none" ? Reduction::none : text == "sum" ? Reduction::sum : Reduction::mean;
}

bool takes(const Array& x, const Array& target, const Given& weight) {
    if (!x.is_float() || !x.size() || x.ndim() < 2 || !target.is<int64_t>() || target.ndim() != x.ndim() - 1)
        return false;
    for (int d = 0; d < target.ndim(); ++d)
        if (target.shape(d) != x.shape(d ? d + 1 : 0)) return false;
    return weight.fits(x, x.shape(1));
}

std::vector<int64_t> copy_of(const InRows& t) {
    const int64_t* from = t.data<int64_t>();
    return {from, from + t.a.size()};
}

template <class T>
nb::object forward(const Array& given, const Array& target, const Given& weight, int64_t ignore, double smoothing,
                   Reduction reduction) {
    InRows x(given), t(target);
    Scores<T> s{Around(given, 1, 1), x.data<T>(), copy_of(t), weight.data<T>(), ignore, smoothing};
    if (!s.valid()) return not_implemented();
    const bool reduced = reduction != Reduction::none;
    NewArray loss = reduced ? new_array(0, nullptr, given.type()) : new_array(target.ndim(), target.shape(), given.type());
    NewArray top = new_array(target.ndim(), target.shape(), given.type());
    NewArray total = new_array(target.ndim(), target.shape(), given.type());
    std::unique_ptr<T[]> own(reduced ? new T[size_t(s.targets())] : nullptr);
    T* losses = reduced ? own.get() : loss.data<T>();
    {
        Release release(given.size() * int64_t(sizeof(T)));
        all_losses(s, losses, top.data<T>(), total.data<T>());
        if (reduced)
            *loss.data<T>() = T(total_of(losses, s.targets()) / (reduction == Reduction::mean ? s.share() : 1));
    }
    return nb::make_tuple(give(loss), give(top), give(total));
}

nb::object cross_entropy(const Array& x, const Array& target, nb::object w, int64_t ignore, double smoothing,
                         nb::object reduction) {
    Given weight(w);
    if (!takes(x, target, weight)) return not_implemented();
    Reduction r = reduction_of(reduction);
    return x.is<float>() ? forward<float>(x, target, weight, ignore, smoothing, r)
                         : forward<double>(x, target, weight, ignore, smoothing, r);
}

template <class T>
nb::object backward(nb::handle g, const Array& given, const Array& target, const Given& weight, const Array& top,
                    const Array& total, int64_t ignore, double smoothing, Reduction reduction) {
    Array by_target = nb::cast<Array>(g);
    const bool reduced = reduction != Reduction::none;
    if (!reduced && (!by_target.is<T>() || by_target.size() != target.size())) return not_implemented();
    InRows x(given), t(target), gs(reduced ? target : by_target);
    Scores<T> s{Around(given, 1, 1), x.data<T>(), copy_of(t), weight.data<T>(), ignore, smoothing};
    if (!s.valid()) return not_implemented();
    double scale = reduced ? PyFloat_AsDouble(g.ptr()) : 1;
    if (PyErr_Occurred()) throw nb::python_error();
    NewArray gx = new_array(given.ndim(), given.shape(), given.type());
    {
        Release release(given.size() * int64_t(sizeof(T)));
        if (reduction == Reduction::mean) scale /= s.share();
        const T *own = reduced ? nullptr : gs.data<T>(), *tops = top.data<T>(), *totals = total.data<T>();
        all_grads(s, tops, totals, [&](int64_t i) { return own ? double(own[i]) : scale; }, gx.data<T>());
    }
    return give(gx);
}

nb::object cross_entropy_grad(nb::object g, const Array& x, const Array& target, nb::object w, const Array& top,
                              const Array& total, int64_t ignore, double smoothing, nb::object reduction) {
    Given weight(w);
    if (!takes(x, target, weight)) return not_implemented();
    for (const Array* a : {&top, &total})
        if (!a->usable() || a->type() != x.type() || a->size() != target.size() || !a->contiguous())
            return not_implemented();
    Reduction r = reduction_of(reduction);
    return x.is<float>() ? backward<float>(g, x, target, weight, top, total, ignore, smoothing, r)
                         : backward<double>(g, x, target, weight, top, total, ignore, smoothing, r);
}

}  // namespace

FW_BIND(m) {
    m.def("cross_entropy", &cross_entropy, nb::arg("x"), nb::arg("target"), nb::arg("weight").none(),
          nb::arg("ignore"), nb::arg("smoothing"), nb::arg("reduction"));
    m.def("cross_entropy_grad", &cross_entropy_grad, nb::arg("g"), nb::arg("x"), nb::arg("target"),
          nb::arg("weight").none(), nb::arg("top"), nb::arg("total"), nb::arg("ignore"), nb::arg("smoothing"),
          nb::arg("reduction"));
}

}  // namespace fw
