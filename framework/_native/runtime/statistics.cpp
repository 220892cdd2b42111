// Sums, means and extremes over dimensions; batch norms with given statistics; conversions.
#include "norm/batch.h"
#include "reduce/totals.h"
#include "runtime/operations.h"

namespace fw::runtime {
namespace {

enum class Fold { sum, mean, largest, smallest };

template <class T> Run folded(Fold fold, const reduce::Plan& plan, const Tensor& x, const Tensor& y) {
    return [fold, plan, &x, &y] {
        if (fold == Fold::sum || fold == Fold::mean) reduce::total<T>(plan, x.data, y.at<T>(), fold == Fold::mean);
        else reduce::extreme<T>(plan, x.data, y.at<T>(), fold == Fold::largest);
    };
}

// numbers: which dimensions (bits), whether they stay as sizes of 1
void fold_of(Call& c, Fold fold) {
    c.expect(1, 2, 0, 1);
    const Tensor* x = &c.in(0);
    c.must((x->type == Type::float32 || x->type == Type::float64) && x->ndim <= reduce::MOST, "another type, or too many dimensions");
    const int64_t dims = c.number(0);
    const bool keep = c.number(1) != 0;
    c.must(dims > 0 && dims < (int64_t(1) << x->ndim), "no such dimensions");
    reduce::Plan plan;
    const int64_t item = bytes_of(x->type);
    if (!plan.make(x->ndim, x->shape, x->strides, item, uint32_t(dims))) {
        x = &c.copied(*x);
        plan = {};
        c.must(plan.make(x->ndim, x->shape, x->strides, item, uint32_t(dims)), "dimensions that cannot be folded");
    }
    int64_t shape[MOST_AXES];
    int n = 0;
    for (int d = 0; d < x->ndim; ++d) {
        if (!(dims >> d & 1)) shape[n++] = x->shape[d];
        else if (keep) shape[n++] = 1;
    }
    const Tensor& y = c.make(0, x->type, n, shape);
    c.then([=, &y]() -> Run {
        return x->type == Type::float32 ? folded<float>(fold, plan, *x, y) : folded<double>(fold, plan, *x, y);
    });
}

template <class T> Run normed(const BatchForm& f, const Tensor* const (&t)[5], const Tensor& y) {
    auto numbers = [](const Tensor* one) { return one ? one->at<T>() : nullptr; };
    return [f, x = t[0]->at<T>(), mean = t[1]->at<T>(), var = t[2]->at<T>(), w = numbers(t[3]), b = numbers(t[4]),
            to = y.at<T>()] { batch_fixed<T>(f, x, mean, var, w, b, to); };
}

template <class From, class To> void convert(const Tensor& x, const Tensor& y) {
    const int64_t n = y.size();
    const From* from = x.at<From>();
    To* to = y.at<To>();
    parallel(n, 1 << 14, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[i] = To(from[i]);
    });
}

template <class To> void convert_to(const Tensor& x, const Tensor& y) {
    switch (x.type) {
        case Type::float32: return convert<float, To>(x, y);
        case Type::float64: return convert<double, To>(x, y);
        case Type::int64: return convert<int64_t, To>(x, y);
        case Type::int32: return convert<int32_t, To>(x, y);
        default: return convert<uint8_t, To>(x, y);
    }
}

}  // namespace

void sum(Call& c) { fold_of(c, Fold::sum); }
void mean(Call& c) { fold_of(c, Fold::mean); }
void largest(Call& c) { fold_of(c, Fold::largest); }
void smallest(Call& c) { fold_of(c, Fold::smallest); }

// operands: x (N, C, ...), mean, variance, weight, bias; reals: eps
void batch_norm(Call& c) {
    c.expect(5, 0, 1, 1);
    const Tensor* t[5] = {&c.rows(0), &c.rows(1), &c.rows(2), c.rows_or_none(3), c.rows_or_none(4)};
    const Tensor& x = *t[0];
    c.must((x.type == Type::float32 || x.type == Type::float64) && x.ndim >= 2, "another type, or no channels");
    for (int i = 1; i < 5; ++i)
        c.must(!t[i] || (t[i]->type == x.type && t[i]->size() == x.shape[1]), "statistics that do not fit");
    const BatchForm f{x.shape[0], x.shape[1], x.size() / x.shape[0] / x.shape[1], c.step.reals[0]};
    const Tensor& y = c.make(0, x.type, x.ndim, x.shape);
    c.then([=, &y]() -> Run {
        const Tensor* all[5] = {t[0], t[1], t[2], t[3], t[4]};
        return y.type == Type::float32 ? normed<float>(f, all, y) : normed<double>(f, all, y);
    });
}

// numbers: the type, float32 or float64
void cast(Call& c) {
    c.expect(1, 1, 0, 1);
    const Tensor& x = c.rows(0);
    const int64_t type = c.number(0);
    c.must(x.type != Type::bfloat16 && (type == FW_FLOAT32 || type == FW_FLOAT64), "another type");
    const Tensor& y = c.make(0, Type(type), x.ndim, x.shape);
    c.then([&x, &y]() -> Run {
        if (y.type == Type::float32) return [&x, &y] { convert_to<float>(x, y); };
        return [&x, &y] { convert_to<double>(x, y); };
    });
}

}  // namespace fw::runtime
