// Sums, means and extremes over dimensions; batch norms with given statistics; conversions.
#include <limits>
#include <type_traits>

#include "norm/batch.h"
#include "norm/group.h"
#include "reduce/totals.h"
#include "runtime/operations.h"

namespace fw::runtime {
namespace {

enum class FoldKind { sum, mean, largest, smallest };

template <class T> Run folded(FoldKind fold, const reduce::Plan& plan, const Tensor& x, const Tensor& y) {
    return [fold, plan, &x, &y] {
        if (fold == FoldKind::sum || fold == FoldKind::mean) reduce::total<T>(plan, x.data, y.at<T>(), fold == FoldKind::mean);
        else reduce::extreme<T>(plan, x.data, y.at<T>(), fold == FoldKind::largest);
    };
}

// numbers: which dimensions (bits), whether they stay as sizes of 1
void fold_of(Call& c, FoldKind fold) {
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

template <class T>
Run group_normed(const GroupForm& form, const Tensor& x, const Tensor* w, const Tensor* b, const Tensor& y, const Tensor& mean,
                 const Tensor& var) {
    auto numbers = [](const Tensor* t) { return t ? t->at<T>() : nullptr; };
    const GroupForward<T> ready{x.at<T>(), numbers(w), numbers(b), y.at<T>(), mean.at<T>(), var.at<T>(), form};
    return [ready] { ready.run(); };
}

// What no whole number is becomes what processors make of it: the lowest one of 4 or 8 bytes, and of that the last byte.
template <class To, class From> To converted(From v) {
    if constexpr (std::is_same<To, bool>::value) return v != 0;
    else if constexpr (std::is_floating_point<From>::value && std::is_integral<To>::value) {
        using Wide = std::conditional_t<sizeof(To) == 8, int64_t, int32_t>;
        constexpr From most = sizeof(To) == 8 ? From(9223372036854775808.0) : From(2147483648.0);
        return To(v >= -most && v < most ? Wide(v) : std::numeric_limits<Wide>::min());
    } else {
        return To(v);
    }
}

template <class From, class To> void convert(const Tensor& x, const Tensor& y) {
    const int64_t n = y.size();
    const From* from = x.at<From>();
    To* to = y.at<To>();
    parallel(n, 1 << 14, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[i] = converted<To>(from[i]);
    });
}

template <class To> void convert_to(const Tensor& x, const Tensor& y) {
    switch (x.type) {
        case Type::float32: return convert<float, To>(x, y);
        case Type::float64: return convert<double, To>(x, y);
        case Type::int64: return convert<int64_t, To>(x, y);
        case Type::int32: return convert<int32_t, To>(x, y);
        case Type::int8: return convert<int8_t, To>(x, y);
        default: return convert<uint8_t, To>(x, y);
    }
}

}  // namespace

void sum(Call& c) { fold_of(c, FoldKind::sum); }
void mean(Call& c) { fold_of(c, FoldKind::mean); }
void largest(Call& c) { fold_of(c, FoldKind::largest); }
void smallest(Call& c) { fold_of(c, FoldKind::smallest); }

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

// operands: x (N, groups, ...), weight, bias, of the channels. numbers: how many channels a group has; reals: eps
void group_norm(Call& c) {
    c.expect(3, 1, 1, 1);
    const Tensor &x = c.rows(0), *w = c.rows_or_none(1), *b = c.rows_or_none(2);
    const int64_t each = c.number(0);
    c.must((x.type == Type::float32 || x.type == Type::float64) && x.ndim >= 3, "another type, or no groups");
    GroupForm form{x.shape[0] * x.shape[1], 0, x.shape[1], each, 0, c.step.reals[0]};
    form.n = x.size() / form.rows;
    c.must(each > 0 && form.n % each == 0, "channels that do not fit");
    form.length = form.n / each;
    for (const Tensor* t : {w, b})
        c.must(!t || (t->type == x.type && t->size() == form.channels()), "weights that do not fit");
    const Tensor& y = c.make(0, x.type, x.ndim, x.shape);
    const Tensor &mean = c.room(form.rows * bytes_of(x.type)), &var = c.room(form.rows * bytes_of(x.type));
    c.then([=, &x, &y, &mean, &var]() -> Run {
        if (x.type == Type::float32) return group_normed<float>(form, x, w, b, y, mean, var);
        return group_normed<double>(form, x, w, b, y, mean, var);
    });
}

// numbers: the type
void cast(Call& c) {
    c.expect(1, 1, 0, 1);
    const Tensor& x = c.rows(0);
    const int64_t type = c.number(0);
    c.must(x.type != Type::bfloat16 && type >= 0 && type < int64_t(Type::other) && type != FW_BFLOAT16, "another type");
    const Tensor& y = c.make(0, Type(type), x.ndim, x.shape);
    c.then([&x, &y]() -> Run {
        switch (y.type) {
            case Type::float32: return [&x, &y] { convert_to<float>(x, y); };
            case Type::float64: return [&x, &y] { convert_to<double>(x, y); };
            case Type::int64: return [&x, &y] { convert_to<int64_t>(x, y); };
            case Type::int32: return [&x, &y] { convert_to<int32_t>(x, y); };
            case Type::boolean: return [&x, &y] { convert_to<bool>(x, y); };
            case Type::int8: return [&x, &y] { convert_to<int8_t>(x, y); };
            default: return [&x, &y] { convert_to<uint8_t>(x, y); };
        }
    });
}

}  // namespace fw::runtime
