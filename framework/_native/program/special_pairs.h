// Special functions of two arguments, of float and double. No Python.
#pragma once

#include <cstdint>
#include <string>

namespace fw::special {

// n pairs of numbers; a step is 1, or 0 of a single number.
template <class T> struct Pairs {
    const T* a;
    int64_t a_step;
    const T* b;
    int64_t b_step;
    T* to;
    int64_t n;
};

template <class T> void incomplete_gamma(const Pairs<T>& shapes_and_places, bool upper);
template <class T> void hurwitz_zeta(const Pairs<T>& pairs);

// P_(k+1) = (a x + b) P_k - c P_(k-1) from P_0 = 1, P_1 = p x + q; see framework/ops/special/polynomials.py.
enum class Family { fixed, hermite, hermite_e, laguerre, legendre };
struct Polynomial {
    Family family = Family::fixed;
    double p, q, a, b;  // of `fixed`, where c is 1
};
bool polynomial_of(const std::string& name, Polynomial& made);  // false for a name that there is not
// Of numbers and degrees, none above `most`.
template <class T> void polynomials(const Pairs<T>& pairs, const Polynomial& of, double most);
template <class T> double largest(const T* x, int64_t n);  // but at least 0

}  // namespace fw::special
