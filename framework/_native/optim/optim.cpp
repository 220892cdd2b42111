// The optimizers, one pass over memory per parameter: the operations of the plain NumPy forms in
// framework/optim in their order, so both give the same bits.
#include "optim/optim.h"

namespace fw::optim {
namespace {

template <class T> struct Sgd {
    Gradient<T> gradient;
    T lr, momentum, share;
    bool has_momentum, first, dampened, nesterov;
    explicit Sgd(Numbers& n)
        : gradient(n), lr(n.number<T>("lr")), momentum(n.number<T>("momentum")), share(n.number<T>("share")),
          has_momentum(n.flag("has_momentum")), first(n.flag("first")), dampened(n.flag("dampened")),
          nesterov(n.flag("nesterov")) {}
    int states() const { return has_momentum; }

    FW_INLINE void at(Place<T> x) const {
        Vec<T> p = x.parameter(), g = gradient(x.gradient(), p);
        if (has_momentum) {
            Vec<T> b = first ? Vec<T>{} : x.state(0) * splat(momentum);
            b = b + (dampened ? splat(share) * g : g);
            x.state(0, b);
            g = nesterov ? g + splat(momentum) * b : b;
        }
        x.parameter(p - splat(lr) * g);
    }
};

template <class T> struct Adagrad {
    Gradient<T> gradient;
    Denominator<T> denominator;
    T lr;
    explicit Adagrad(Numbers& n) : gradient(n), denominator(n), lr(n.number<T>("lr")) {}
    int states() const { return 1; }

    FW_INLINE void at(Place<T> x) const {
        Vec<T> p = x.parameter(), g = gradient(x.gradient(), p), s = x.state(0) + g * g;
        x.state(0, s);
        x.parameter(p - g / denominator(s) * splat(lr));
    }
};

template <class T> struct RmsProp {
    Gradient<T> gradient;
    Denominator<T> denominator;
    T lr, alpha, rest, momentum;
    bool centered, has_momentum;
    explicit RmsProp(Numbers& n)
        : gradient(n), denominator(n), lr(n.number<T>("lr")), alpha(n.number<T>("alpha")), rest(n.number<T>("rest")),
          momentum(n.number<T>("momentum")), centered(n.flag("centered")), has_momentum(n.flag("has_momentum")) {}
    int states() const { return 1 + centered + has_momentum; }

    FW_INLINE void at(Place<T> x) const {
        Vec<T> p = x.parameter(), g = gradient(x.gradient(), p);
        Vec<T> v = x.state(0) * splat(alpha) + splat(rest) * g * g;
        x.state(0, v);
        if (centered) {
            Vec<T> m = x.state(1) * splat(alpha) + splat(rest) * g;
            x.state(1, m);
            v = maximum<T>(v - m * m, Vec<T>{});
        }
        Vec<T> u = g / denominator(v);
        if (has_momentum) {
            u = x.state(1 + centered) * splat(momentum) + u;
            x.state(1 + centered, u);
        }
        x.parameter(p - splat(lr) * u);
    }
};

template <class T> struct Adam {
    Gradient<T> gradient;
    Denominator<T> denominator;
    T lr, shrink, b1, rest1, b2, rest2;
    bool decoupled, amsgrad;
    explicit Adam(Numbers& n)
        : gradient(n), denominator(n), lr(n.number<T>("lr")), shrink(n.number<T>("shrink")), b1(n.number<T>("b1")),
          rest1(n.number<T>("rest1")), b2(n.number<T>("b2")), rest2(n.number<T>("rest2")),
          decoupled(n.flag("decoupled")), amsgrad(n.flag("amsgrad")) {}
    int states() const { return 2 + amsgrad; }

    FW_INLINE void at(Place<T> x) const {
        Vec<T> p = x.parameter(), g = gradient(x.gradient(), p);
        if (decoupled) p = p * splat(shrink);
        Vec<T> m = x.state(0) * splat(b1) + splat(rest1) * g;
        Vec<T> v = x.state(1) * splat(b2) + splat(rest2) * g * g;
        x.state(0, m);
        x.state(1, v);
        if (amsgrad) {
            v = maximum<T>(x.state(2), v);
            x.state(2, v);
        }
        x.parameter(p - m / denominator(v) * splat(lr));
    }
};

template <class T> struct Adadelta {
    Gradient<T> gradient;
    T lr, rho, rest, eps;
    explicit Adadelta(Numbers& n)
        : gradient(n), lr(n.number<T>("lr")), rho(n.number<T>("rho")), rest(n.number<T>("rest")), eps(n.number<T>("eps")) {}
    int states() const { return 2; }

    FW_INLINE void at(Place<T> x) const {
        Vec<T> p = x.parameter(), g = gradient(x.gradient(), p), a = x.state(1);
        Vec<T> v = x.state(0) * splat(rho) + splat(rest) * g * g;
        x.state(0, v);
        Vec<T> u = sqrt((a + splat(eps)) / (v + splat(eps))) * g;
        x.state(1, a * splat(rho) + splat(rest) * u * u);
        x.parameter(p - splat(lr) * u);
    }
};

template <class T> struct Adamax {
    Gradient<T> gradient;
    T lr, b1, rest1, b2, eps;
    explicit Adamax(Numbers& n)
        : gradient(n), lr(n.number<T>("lr")), b1(n.number<T>("b1")), rest1(n.number<T>("rest1")), b2(n.number<T>("b2")),
          eps(n.number<T>("eps")) {}
    int states() const { return 2; }

    FW_INLINE void at(Place<T> x) const {
        Vec<T> p = x.parameter(), g = gradient(x.gradient(), p);
        Vec<T> m = x.state(0) * splat(b1) + splat(rest1) * g;
        Vec<T> n = maximum<T>(x.state(1) * splat(b2), abs<T>(g) + splat(eps));
        x.state(0, m);
        x.state(1, n);
        x.parameter(p - m / n * splat(lr));
    }
};

template <class T> struct SparseAdam {
    T rest1, rest2, eps, lr;
    explicit SparseAdam(Numbers& n)
        : rest1(n.number<T>("rest1")), rest2(n.number<T>("rest2")), eps(n.number<T>("eps")), lr(n.number<T>("lr")) {}
    int states() const { return 2; }

    FW_INLINE void at(Place<T> x) const {
        Vec<T> g = x.gradient(), m = x.state(0), v = x.state(1);
        m = m + splat(rest1) * (g - m);
        v = v + splat(rest2) * (g * g - v);
        x.state(0, m);
        x.state(1, v);
        x.parameter(x.parameter() - splat(lr) * m / (sqrt(v) + splat(eps)));
    }
};

// One step of some rows of one parameter [n, *] and its states: `rows` says which, `arrays` are the parameter, the
// gradient [len(rows), *] and the states.
template <template <class> class Method> nb::object rows_step(nb::list arrays, Array rows, nb::dict numbers) try {
    const Both<Method> both(numbers);
    return nb::cast(both.run_rows(arrays, rows));
} catch (const NotPythons&) {
    return nb::cast(false);
}

// One step: arrays as for `gather`. Gives the numbers of the parameters that are left to the plain form.
template <template <class> class Method> nb::object step(nb::list arrays, nb::dict numbers) try {
    const Both<Method> both(numbers);
    Work work = gather(arrays, 2 + both.method().states());
    both.run(work);
    return nb::cast(work.skipped);
} catch (const NotPythons&) {
    return not_implemented();
}

}  // namespace

FW_BIND(m) {
    m.def("sgd_step", &step<Sgd>);
    m.def("adagrad_step", &step<Adagrad>);
    m.def("rmsprop_step", &step<RmsProp>);
    m.def("adam_step", &step<Adam>);
    m.def("adadelta_step", &step<Adadelta>);
    m.def("adamax_step", &step<Adamax>);
    m.def("sgd_rows", &rows_step<Sgd>);
    m.def("adagrad_rows", &rows_step<Adagrad>);
    m.def("sparse_adam_rows", &rows_step<SparseAdam>);
}

}  // namespace fw::optim
