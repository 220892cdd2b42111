// The optimizers, one pass over memory per parameter: the operations of the plain NumPy forms in
// framework/optim in their order, so both give the same bits.
#include "optim/methods.h"

namespace fw::optim {
namespace {

template <class T> struct Sgd {
    Gradient<T> gradient;
    T lr, momentum, share;
    bool has_momentum, first, dampened, nesterov;
    explicit Sgd(StepNumbers& n)
        : gradient(n), lr(n.number<T>("lr")), momentum(n.number<T>("momentum")), share(n.number<T>("share")),
          has_momentum(n.flag("has_momentum")), first(n.flag("first")), dampened(n.flag("dampened")),
          nesterov(n.flag("nesterov")) {}
    int arrays() const { return 2 + has_momentum; }

    FW_INLINE void at(ElementsAt<T> x) const {
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
    explicit Adagrad(StepNumbers& n) : gradient(n), denominator(n), lr(n.number<T>("lr")) {}
    int arrays() const { return 3; }

    FW_INLINE void at(ElementsAt<T> x) const {
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
    explicit RmsProp(StepNumbers& n)
        : gradient(n), denominator(n), lr(n.number<T>("lr")), alpha(n.number<T>("alpha")), rest(n.number<T>("rest")),
          momentum(n.number<T>("momentum")), centered(n.flag("centered")), has_momentum(n.flag("has_momentum")) {}
    int arrays() const { return 3 + centered + has_momentum; }

    FW_INLINE void at(ElementsAt<T> x) const {
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
    explicit Adam(StepNumbers& n)
        : gradient(n), denominator(n), lr(n.number<T>("lr")), shrink(n.number<T>("shrink")), b1(n.number<T>("b1")),
          rest1(n.number<T>("rest1")), b2(n.number<T>("b2")), rest2(n.number<T>("rest2")),
          decoupled(n.flag("decoupled")), amsgrad(n.flag("amsgrad")) {}
    int arrays() const { return 4 + amsgrad; }

    FW_INLINE void at(ElementsAt<T> x) const {
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
    explicit Adadelta(StepNumbers& n)
        : gradient(n), lr(n.number<T>("lr")), rho(n.number<T>("rho")), rest(n.number<T>("rest")), eps(n.number<T>("eps")) {}
    int arrays() const { return 4; }

    FW_INLINE void at(ElementsAt<T> x) const {
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
    explicit Adamax(StepNumbers& n)
        : gradient(n), lr(n.number<T>("lr")), b1(n.number<T>("b1")), rest1(n.number<T>("rest1")), b2(n.number<T>("b2")),
          eps(n.number<T>("eps")) {}
    int arrays() const { return 4; }

    FW_INLINE void at(ElementsAt<T> x) const {
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
    explicit SparseAdam(StepNumbers& n)
        : rest1(n.number<T>("rest1")), rest2(n.number<T>("rest2")), eps(n.number<T>("eps")), lr(n.number<T>("lr")) {}
    int arrays() const { return 4; }

    FW_INLINE void at(ElementsAt<T> x) const {
        Vec<T> g = x.gradient(), m = x.state(0), v = x.state(1);
        m = m + splat(rest1) * (g - m);
        v = v + splat(rest2) * (g * g - v);
        x.state(0, m);
        x.state(1, v);
        x.parameter(x.parameter() - splat(lr) * m / (sqrt(v) + splat(eps)));
    }
};

// The clipping of gradients, which are the parameters here.
template <class T> struct ScaleAll {
    T factor;
    explicit ScaleAll(StepNumbers& n) : factor(n.number<T>("factor")) {}
    int arrays() const { return 1; }

    FW_INLINE void at(ElementsAt<T> x) const { x.parameter(x.parameter() * splat(factor)); }
};

template <class T> struct ClipAll {
    T low, high;
    explicit ClipAll(StepNumbers& n) : low(n.number<T>("low")), high(n.number<T>("high")) {}
    int arrays() const { return 1; }

    FW_INLINE void at(ElementsAt<T> x) const {
        x.parameter(minimum<T>(maximum<T>(x.parameter(), splat(low)), splat(high)));
    }
};

template <template <class> class Formula> std::unique_ptr<const Method> make(const std::vector<Setting>& settings) {
    StepNumbers numbers(settings);
    auto made = std::make_unique<Both<Formula>>(numbers, StepNumbers(settings), settings);
    if (!numbers.asked_for_all()) throw std::invalid_argument("numbers were given that the step does not ask for");
    return made;
}

const struct {
    const char* name;
    std::unique_ptr<const Method> (*make)(const std::vector<Setting>& settings);
} methods[] = {{"sgd", make<Sgd>},         {"adagrad", make<Adagrad>}, {"rmsprop", make<RmsProp>},
               {"adam", make<Adam>},       {"adadelta", make<Adadelta>}, {"adamax", make<Adamax>},
               {"sparse_adam", make<SparseAdam>}, {"scale", make<ScaleAll>}, {"clip", make<ClipAll>}};

}  // namespace

std::unique_ptr<const Method> method_named(const char* name, const std::vector<Setting>& settings) {
    for (const auto& m : methods)
        if (std::strcmp(m.name, name) == 0) return m.make(settings);
    return nullptr;
}

}  // namespace fw::optim
