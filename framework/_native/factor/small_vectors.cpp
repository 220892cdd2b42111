#include "factor/small_vectors.h"

#include <atomic>
#include <cmath>

#include "base/pool.h"
#include "factor/small_beside.h"

namespace fw::small {
namespace {

constexpr int SWEEPS = 30;  // Jacobi's methods need six or seven
constexpr double NOTHING = 1e-100;  // what counts as no length, beside numbers near 1

// The turn by which two vectors of squares `own` and `other` with the product `both` become orthogonal, where it is wanted.
struct Turn {
    V tangent, cosine, sine;
    Turn(V own, V other, V both, Mask<double> turns) {
        const V z = turns ? (other - own) / (2.0 * both) : V{}, size = abs<double>(z);
        const V t = math::copysign<V>(1.0 / (size + sqrt(1.0 + z * z)), z), c = 1.0 / sqrt(1.0 + t * t);
        tangent = turns ? t : V{}, cosine = turns ? c : V{} + 1.0, sine = turns ? c * t : V{};
    }
    void operator()(V& p, V& q) const {
        const V x = p, y = q;
        p = cosine * x - sine * y, q = sine * x + cosine * y;
    }
};

// A power of two for each lane by which numbers up to `largest` are brought near 1, so that their squares hold: 2^e has
// e + 1023 in its bits, and its inverse 2046 less that.
struct Scale {
    Vec<int64_t> power;
    static constexpr int digits = 52;
    explicit Scale(V largest) : power(bits<Vec<int64_t>>(largest) >> digits) {
        power = power < 1 ? power * 0 + 1 : power > 2045 ? power * 0 + 2045 : power;
    }
    V down() const { return bits<V>((2046 - power) << digits); }
    V up() const { return bits<V>(power << digits); }
};

// The columns of matrices beside each other, or the rows where those are fewer; behind each one, of as many numbers, what its
// turns make of a unit matrix.
struct Columns {
    int64_t columns, length;
    V at[NARROW][MOST + NARROW], values[NARROW], up;

    // False where numbers are not finite, or those of a column so small that their squares vanish.
    template <class T> bool read(const T* start, int64_t count, int64_t m, int64_t n, int64_t first) {
        constexpr double SQUARES_VANISH = 1e-140;
        columns = std::min(m, n), length = std::max(m, n);
        const int64_t step = n > m ? 1 : n, across = n > m ? n : 1;
        V largest = {}, all[NARROW * MOST];
        read_beside(start, m * n, count, first, all);
        for (int64_t j = 0; j < columns; ++j)
            for (int64_t k = 0; k < length; ++k) {
                at[j][k] = all[k * step + j * across];
                largest = maximum<double>(largest, abs<double>(at[j][k]));
            }
        if (math::any(~(largest < math::inf<double>))) return false;
        const Scale scale(largest);
        const V by = scale.down();
        up = scale.up();
        for (int64_t j = 0; j < columns; ++j) {
            V most = {};
            for (int64_t k = 0; k < length; ++k) {
                at[j][k] *= by;
                most = maximum<double>(most, abs<double>(at[j][k]));
            }
            if (math::any((most > 0.0) & (most < SQUARES_VANISH))) return false;
        }
        return true;
    }

    // One-sided Jacobi's method (M. R. Hestenes, 1958): columns are turned in pairs until all are orthogonal; their lengths are
    // the singular values. Whether they have become so; `carried` numbers behind each are turned, too, and then columns of which
    // nothing is left are no more.
    bool make_orthogonal(int64_t carried) {
        constexpr double precise = 1e-15;
        const double least = carried ? NOTHING * NOTHING : -1;
        int turned = 1;
        for (int sweep = 0; turned && sweep < SWEEPS; ++sweep) {
            turned = 0;
            for (int64_t j = 1; j < columns; ++j)
                for (int64_t i = 0; i < j; ++i) {
                    V *p = at[i], *q = at[j], own = {}, other = {}, both = {};
                    for (int64_t k = 0; k < length; ++k) own += p[k] * p[k], other += q[k] * q[k], both += p[k] * q[k];
                    const auto turns = (abs<double>(both) > precise * sqrt(own * other)) & (minimum<double>(own, other) > least);
                    if (!math::any(turns)) continue;
                    turned = 1;
                    const Turn turn(own, other, both, turns);
                    for (int64_t k = 0; k < length + carried; ++k) turn(p[k], q[k]);
                }
        }
        for (int64_t j = 0; j < columns; ++j) {
            V square = {};
            for (int64_t k = 0; k < length; ++k) square += at[j][k] * at[j][k];
            values[j] = sqrt(square);
        }
        return !turned;
    }

    void put_in_order(int64_t carried) {  // the longest first
        for (int64_t j = 1; j < columns; ++j)
            for (int64_t i = j; i > 0; --i) {
                const auto larger = values[i] > values[i - 1];
                if (!math::any(larger)) break;
                exchange(values[i - 1], values[i], larger);
                for (int64_t k = 0; carried && k < length + carried; ++k) exchange(at[i - 1][k], at[i][k], larger);
            }
    }
};

// A vector of length 1 that is orthogonal to the first j of those that are: of the unit vectors the one furthest from them.
void complete(const V (*q)[MOST], int64_t j, int64_t length, V* made) {
    V most = {}, place = {};
    for (int64_t k = 0; k < length; ++k) {
        V rest = V{} + 1.0;
        for (int64_t c = 0; c < j; ++c) rest -= q[c][k] * q[c][k];
        const auto larger = k ? rest > most : rest == rest;
        most = larger ? rest : most, place = larger ? V{} + double(k) : place;
    }
    for (int64_t k = 0; k < length; ++k) made[k] = place == double(k) ? V{} + 1.0 : V{};
    for (int again = 0; again < 2; ++again) {
        for (int64_t c = 0; c < j; ++c) {
            V both = {};
            for (int64_t k = 0; k < length; ++k) both += q[c][k] * made[k];
            for (int64_t k = 0; k < length; ++k) made[k] -= both * q[c][k];
        }
        V square = {};
        for (int64_t k = 0; k < length; ++k) square += made[k] * made[k];
        for (int64_t k = 0; k < length; ++k) made[k] /= sqrt(square);
    }
}

// The columns in their lengths, as many as are wanted; those of no length, and those beyond, are made.
void of_length_one(const Columns& x, int64_t wanted, V (*q)[MOST]) {
    for (int64_t j = 0; j < wanted; ++j) {
        const bool there = j < x.columns;
        const auto missing = there ? x.values[j] < NOTHING : Mask<double>{} - 1;
        if (there)
            for (int64_t k = 0; k < x.length; ++k) q[j][k] = x.at[j][k] / (missing ? V{} + 1.0 : x.values[j]);
        if (!math::any(missing)) continue;
        V made[MOST];
        complete(q, j, x.length, made);
        for (int64_t k = 0; k < x.length; ++k) q[j][k] = missing ? made[k] : q[j][k];
    }
}

// body(the first matrix) for each vector of them, by all threads; false where it once was.
template <class F> bool each_beside(int64_t count, int64_t steps, F&& body) {
    constexpr int64_t L = lanes<double>;
    std::atomic<bool> suits{true};
    parallel((count + L - 1) / L, 1 + 1000 / steps, [&](int64_t begin, int64_t end) {
        for (int64_t u = begin; u < end; ++u)
            if (!body(u * L)) return suits.store(false);
    });
    return suits;
}

// Jacobi's method for eigenvalues: rows and columns are turned in pairs until a is diagonal; the same turns of a unit matrix are
// its vectors, if they are wanted.
bool make_diagonal(V (*a)[NARROW], V (*vectors)[NARROW], int64_t n, bool wanted) {
    constexpr double precise = 1e-17;  // beside numbers near 1
    int turned = 1;
    for (int sweep = 0; turned && sweep < SWEEPS; ++sweep) {
        turned = 0;
        for (int64_t q = 1; q < n; ++q)
            for (int64_t p = 0; p < q; ++p) {
                const auto turns = abs<double>(a[p][q]) > precise;
                if (!math::any(turns)) continue;
                turned = 1;
                const Turn turn(a[p][p], a[q][q], a[p][q], turns);
                a[p][p] -= turn.tangent * a[p][q], a[q][q] += turn.tangent * a[p][q];
                a[p][q] = turns ? V{} : a[p][q];
                for (int64_t r = 0; r < n; ++r)
                    if (r != p && r != q) turn(a[std::min(r, p)][std::max(r, p)], a[std::min(r, q)][std::max(r, q)]);
                for (int64_t r = 0; wanted && r < n; ++r) turn(vectors[r][p], vectors[r][q]);
            }
    }
    return !turned;
}

void product(const V* x, const V* y, V* out, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j) {
            V sum = {};
            for (int64_t k = 0; k < n; ++k) sum = fma<double>(x[i * n + k], y[k * n + j], sum);
            out[i * n + j] = sum;
        }
}

}  // namespace

template <class T> bool singular_values(const T* start, int64_t count, int64_t m, int64_t n, T* out) {
    const int64_t narrow = std::min(m, n);
    return each_beside(count, narrow * m * n, [&](int64_t first) {
        Columns x;
        if (!x.read(start, count, m, n, first)) return false;
        x.make_orthogonal(0);
        x.put_in_order(0);
        for (int64_t j = 0; j < narrow; ++j) x.values[j] *= x.up;
        write_beside(x.values, narrow, count, first, out);
        return true;
    });
}

template <class T>
bool singular_vectors(const T* start, int64_t count, int64_t m, int64_t n, bool full, T* u, T* s, T* vh) {
    const int64_t narrow = std::min(m, n), length = std::max(m, n), wanted = full ? length : narrow;
    return each_beside(count, narrow * m * n, [&](int64_t first) {
        Columns x;
        V q[NARROW][MOST], all[MOST * NARROW];
        if (!x.read(start, count, m, n, first)) return false;
        for (int64_t j = 0; j < narrow; ++j)
            for (int64_t k = 0; k < narrow; ++k) x.at[j][length + k] = V{} + double(j == k);
        if (!x.make_orthogonal(narrow)) return false;
        x.put_in_order(narrow);
        of_length_one(x, wanted, q);
        for (int64_t j = 0; j < narrow; ++j) x.values[j] *= x.up;
        write_beside(x.values, narrow, count, first, s);
        const bool tall = m >= n;
        for (int64_t j = 0; j < wanted; ++j)  // the longer side's vectors: columns of u, or rows of vh
            for (int64_t k = 0; k < length; ++k) all[tall ? k * wanted + j : j * length + k] = q[j][k];
        write_beside(all, length * wanted, count, first, tall ? u : vh);
        for (int64_t j = 0; j < narrow; ++j)
            for (int64_t k = 0; k < narrow; ++k) all[tall ? j * narrow + k : k * narrow + j] = x.at[j][length + k];
        write_beside(all, narrow * narrow, count, first, tall ? vh : u);
        return true;
    });
}

template <class T> bool eigen_vectors(const T* start, int64_t count, int64_t n, bool lower, T* values, T* vectors) {
    return each_beside(count, n * n * n, [&](int64_t first) {
        V all[NARROW * NARROW], a[NARROW][NARROW], turned[NARROW][NARROW], found[NARROW], largest = {};
        read_beside(start, n * n, count, first, all);
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = i; j < n; ++j) {
                a[i][j] = lower ? all[j * n + i] : all[i * n + j];
                largest = maximum<double>(largest, abs<double>(a[i][j]));
            }
        if (math::any(~(largest < math::inf<double>))) return false;
        const Scale scale(largest);
        const V by = scale.down();
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < n; ++j) {
                if (j >= i) a[i][j] *= by;
                turned[i][j] = V{} + double(i == j);
            }
        if (!make_diagonal(a, turned, n, vectors)) return false;
        for (int64_t j = 0; j < n; ++j) {
            found[j] = a[j][j] * scale.up();
            for (int64_t i = j; i > 0; --i) {
                const auto smaller = found[i] < found[i - 1];
                exchange(found[i - 1], found[i], smaller);
                for (int64_t r = 0; vectors && r < n; ++r) exchange(turned[r][i - 1], turned[r][i], smaller);
            }
        }
        write_beside(found, n, count, first, values);
        if (!vectors) return true;
        for (int64_t i = 0; i < n; ++i) std::copy_n(turned[i], n, all + i * n);
        write_beside(all, n * n, count, first, vectors);
        return true;
    });
}

template <class T> bool exponentials(const T* start, int64_t count, int64_t n, T* out) {
    constexpr int DEGREE = 15;  // for norms up to 1/2: its error is below 1e-17
    return each_beside(count, 20 * n * n * n, [&](int64_t first) {
        V a[NARROW * NARROW], sum[NARROW * NARROW], next[NARROW * NARROW], largest = {};
        read_beside(start, n * n, count, first, a);
        for (int64_t j = 0; j < n; ++j) {
            V column = {};
            for (int64_t i = 0; i < n; ++i) column += abs<double>(a[i * n + j]);
            if (math::any(~(column < math::inf<double>))) return false;
            largest = maximum<double>(largest, column);
        }
        double norm = 0;
        for (int64_t l = 0; l < lanes<double>; ++l) norm = std::max(norm, largest[l]);
        const int squarings = norm > 0.5 ? int(std::ceil(std::log2(norm / 0.5))) : 0;
        const double by = std::ldexp(1.0, -squarings);
        for (int64_t e = 0; e < n * n; ++e) a[e] *= by, sum[e] = V{} + double(e % (n + 1) == 0);
        for (int k = DEGREE; k > 0; --k) {
            product(a, sum, next, n);
            for (int64_t e = 0; e < n * n; ++e) sum[e] = next[e] * (1.0 / k) + double(e % (n + 1) == 0);
        }
        for (int k = 0; k < squarings; ++k) {
            product(sum, sum, next, n);
            std::copy_n(next, n * n, sum);
        }
        write_beside(sum, n * n, count, first, out);
        return true;
    });
}

#define FW_OF(T)                                                                                      \
    template bool singular_values(const T*, int64_t, int64_t, int64_t, T*);                           \
    template bool singular_vectors(const T*, int64_t, int64_t, int64_t, bool, T*, T*, T*);            \
    template bool eigen_vectors(const T*, int64_t, int64_t, bool, T*, T*);                            \
    template bool exponentials(const T*, int64_t, int64_t, T*);
FW_OF(float)
FW_OF(double)
#undef FW_OF

}  // namespace fw::small
