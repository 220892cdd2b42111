// What the optimizers of methods.cpp are made of: their numbers by name, common formulas, a method for either dtype.
#pragma once

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "base/simd.h"
#include "optim/optimizers.h"

namespace fw::optim {

// The settings of a step by name, each of which is to be asked for; mostly in the order in which they were given.
class StepNumbers {
    const std::vector<Setting>& given_;
    size_t asked_ = 0, next_ = 0;

  public:
    explicit StepNumbers(const std::vector<Setting>& given) : given_(given) {}
    double wide(const char* name) {
        for (size_t k = 0; k < given_.size(); ++k, ++next_) {
            if (next_ >= given_.size()) next_ = 0;
            if (std::strcmp(given_[next_].name, name) == 0) return ++asked_, given_[next_++].value;
        }
        throw std::out_of_range(name);
    }
    bool flag(const char* name) { return wide(name) != 0; }
    template <class T> T number(const char* name) { return T(wide(name)); }
    bool asked_for_all() const { return asked_ == given_.size(); }
};

// The elements [i, i + n) of the arrays of one parameter, n <= lanes.
template <class T> class ElementsAt {
    char* const* arrays_;
    int64_t i_, n_;

  public:
    FW_INLINE ElementsAt(char* const* arrays, int64_t i, int64_t n) : arrays_(arrays), i_(i), n_(n) {}
    FW_INLINE Vec<T> get(int k) const {
        const T* from = reinterpret_cast<const T*>(arrays_[k]) + i_;
        return n_ == lanes<T> ? load(from) : load_part(from, n_);
    }
    FW_INLINE void put(int k, Vec<T> v) const {
        T* to = reinterpret_cast<T*>(arrays_[k]) + i_;
        if (n_ == lanes<T>) store(to, v);
        else store_part(to, v, n_);
    }
    FW_INLINE Vec<T> parameter() const { return get(0); }
    FW_INLINE void parameter(Vec<T> v) const { put(0, v); }
    FW_INLINE Vec<T> gradient() const { return get(1); }
    FW_INLINE Vec<T> state(int k) const { return get(2 + k); }
    FW_INLINE void state(int k, Vec<T> v) const { put(2 + k, v); }
};

// The gradient as the method sees it: its sign turned where the objective is maximized, plus decay * p.
template <class T> struct Gradient {
    bool maximize, decays;
    T decay;
    explicit Gradient(StepNumbers& n) : maximize(n.flag("maximize")) {
        double given = n.wide("weight_decay");
        decays = given != 0;
        decay = T(given);
    }
    FW_INLINE Vec<T> operator()(Vec<T> g, Vec<T> p) const {
        if (maximize) g = -g;
        return decays ? g + splat(decay) * p : g;
    }
};

// Quotients of square roots by one number, in the bits of the division.
template <class T> struct RootsOver {
    T by;
    explicit RootsOver(T by) : by(by) {}
    FW_INLINE Vec<T> operator()(Vec<T> x) const { return x / splat(by); }
};
#if defined(FW_AVX512)
// By the reciprocal, since the root is waiting for the divider. The product is at most 1.5 of the last digit off, one
// correction brings it to less than one, and from there on the next one rounds as the division does (Markstein: the
// reciprocal is rounded correctly, and what is left over is exact, as nothing leaves the range: roots are from 2^-75
// to 2^64). Where nothing is left over (0) or that is not a number (inf, nan), the product stays.
template <> struct RootsOver<float> {
    float by, reciprocal;
    bool quick;
    explicit RootsOver(float by) : by(by), reciprocal(1 / by), quick(by > 1e-9f && by < 1e9f) {}

    FW_INLINE Vec<float> operator()(Vec<float> x) const {
        if (!quick) return x / splat(by);
        return corrected(x, corrected(x, x * splat(reciprocal)));
    }

  private:
    FW_INLINE Vec<float> corrected(Vec<float> x, Vec<float> q) const {
        const Vec<float> left = fma<float>(splat(-by), q, x);
        const __mmask16 some = _mm512_cmp_ps_mask(__m512(left), _mm512_setzero_ps(), _CMP_NEQ_OQ);
        return Vec<float>(_mm512_mask3_fmadd_ps(__m512(left), __m512(splat(reciprocal)), __m512(q), some));
    }
};
#endif

// sqrt(v / correction) + eps, or with `inside` sqrt(v / correction + eps)
template <class T> struct Denominator {
    T eps, correction;
    RootsOver<T> over;
    bool inside, corrected;
    explicit Denominator(StepNumbers& n)
        : eps(n.number<T>("eps")), correction(n.number<T>("correction")), over(n.number<T>("root_correction")),
          inside(n.flag("eps_inside")), corrected(n.flag("corrected")) {}
    FW_INLINE Vec<T> operator()(Vec<T> v) const {
        if (inside) return sqrt(v / splat(correction) + splat(eps));
        Vec<T> d = sqrt(v);
        if (corrected) d = over(d);
        return d + splat(eps);
    }
};

// Whether numbers too small for the normal format count as 0, as in `flushing` of framework/optim/fused.py. The means of
// gradients that are 0, of rows of a table that no batch has, get there after some hundred steps and stay, and a processor takes
// twenty times as long for them. Beside an `eps` of this size the root of such a square vanishes when they are added.
inline bool flushes(int arrays, const std::vector<Setting>& settings) {
    if (arrays <= 2) return false;  // there are no means
    double eps = 1, rest = 1;  // the mean of squares is divided by at least that
    for (const Setting& s : settings) {
        if (std::strcmp(s.name, "eps") == 0) eps = s.value;
        if (std::strcmp(s.name, "rest2") == 0) rest = s.value;
        if (std::strcmp(s.name, "b2") == 0) rest = 1 - s.value;
    }
    return eps >= 0 && eps * eps * rest >= 1e-22;
}

// A method for parameters of either dtype.
template <template <class> class Formula> class Both : public Method {
    const Formula<double> wide_;
    const Formula<float> narrow_;

    // The formula and the pointers are copies of its own: no store changes them, so that they stay in registers.
    template <class T> static void walk(const Formula<T> formula, char* const* given, int64_t begin, int64_t end) {
        char* arrays[MOST_ARRAYS] = {};
        std::copy(given, given + formula.arrays(), arrays);
        int64_t i = begin;
        for (; i + lanes<T> <= end; i += lanes<T>) formula.at(ElementsAt<T>(arrays, i, lanes<T>));
        if (i < end) formula.at(ElementsAt<T>(arrays, i, end - i));
    }

  public:
    Both(StepNumbers& first, StepNumbers again, const std::vector<Setting>& settings)
        : Both(Formula<double>(first), Formula<float>(again), settings) {}
    Both(const Formula<double>& wide, const Formula<float>& narrow, const std::vector<Setting>& settings)
        : Method(wide.arrays(), optim::flushes(wide.arrays(), settings)), wide_(wide), narrow_(narrow) {}

    void apply(bool wide, char* const* arrays, int64_t begin, int64_t end) const override {
        if (wide) walk<double>(wide_, arrays, begin, end);
        else walk<float>(narrow_, arrays, begin, end);
    }
};

}  // namespace fw::optim
