// The way of EISPACK: balancing (B. Parlett and C. Reinsch, 1969), Hessenberg form by reflections, double steps of QR (J. Francis, 1961;
// R. Martin, G. Peters, J. Wilkinson, 1970) until the matrix is triangular but for 2 x 2 blocks, whose vectors are found from the last
// row up (G. Peters and J. Wilkinson, 1970).
#include "factor/unsymmetric.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "base/pool.h"
#include "base/scratch.h"

namespace fw::unsymmetric {
namespace {

using Complex = std::complex<double>;
constexpr double EPS = std::numeric_limits<double>::epsilon();
constexpr int MOST_STEPS = 60;  // for one value, or a pair

// a / b without overflow on the way.
Complex quotient(Complex a, Complex b) {
    const double re = b.real(), im = b.imag();
    if (std::fabs(re) > std::fabs(im)) {
        const double r = im / re, d = re + r * im;
        return {(a.real() + r * a.imag()) / d, (a.imag() - r * a.real()) / d};
    }
    const double r = re / im, d = im + r * re;
    return {(r * a.real() + a.imag()) / d, (r * a.imag() - a.real()) / d};
}

// One matrix; all members point into one piece of memory.
class Matrix {
  public:
    static int64_t room(int64_t n) { return 2 * n * n + 4 * n; }
    Matrix(double* memory, int64_t n, bool vectors)
        : n(n), h(memory), v(h + n * n), re(v + n * n), im(re + n), scale(im + n), column(scale + n), vectors(vectors) {}

    template <class T> bool take(const T* a) {
        bool good = true;  // squares neither vanish nor overflow, also of what rounding leaves
        for (int64_t i = 0; i < n * n; ++i) h[i] = double(a[i]), good = good && (h[i] == 0 || (std::fabs(h[i]) > 1e-100 && std::fabs(h[i]) < 1e100));
        return good;
    }
    bool decompose() {
        balance();
        to_hessenberg();
        size = 0;
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = std::max<int64_t>(i - 1, 0); j < n; ++j) size += std::fabs(H(i, j));
        if (!to_blocks()) return false;
        double sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += std::fabs(re[i]) + std::fabs(im[i]);
        if (!std::isfinite(sum)) return false;
        if (vectors && size > 0) find_vectors();
        return true;
    }
    template <class T> void give(std::complex<T>* values, std::complex<T>* to) const {
        for (int64_t j = 0; j < n; ++j) values[j] = {T(re[j]), T(im[j])};
        for (int64_t j = 0; to && j < n; j += im[j] == 0 ? 1 : 2) im[j] == 0 ? give_real(j, to) : give_pair(j, to);
    }

  private:
    double& H(int64_t i, int64_t j) const { return h[i * n + j]; }
    double& V(int64_t i, int64_t j) const { return v[i * n + j]; }

    // Rows and columns are scaled by powers of 2 until they are of about one length.
    void balance() {
        std::fill_n(scale, n, 1.0);
        for (bool again = true; again;) {
            again = false;
            for (int64_t i = 0; i < n; ++i) {
                double c = 0, r = 0;
                for (int64_t j = 0; j < n; ++j) c += H(j, i) * H(j, i), r += H(i, j) * H(i, j);
                if (!(c > 0 && r > 0)) continue;
                c = std::sqrt(c), r = std::sqrt(r);
                const double sum = c + r;
                double f = 1;
                while (c < r / 2 && f < 1e30) f *= 2, c *= 2, r /= 2;
                while (c / 2 >= r && f > 1e-30) f /= 2, c /= 2, r *= 2;
                if (f == 1 || c + r >= 0.95 * sum || !(scale[i] * f > 1e-40 && scale[i] * f < 1e40)) continue;
                scale[i] *= f, again = true;
                for (int64_t j = 0; j < n; ++j) H(i, j) /= f;
                for (int64_t j = 0; j < n; ++j) H(j, i) *= f;
            }
        }
    }

    // Reflections of rows and columns from m on that leave one number below the diagonal of column m - 1.
    void to_hessenberg() {
        if (vectors) {
            std::fill_n(v, n * n, 0.0);
            for (int64_t i = 0; i < n; ++i) V(i, i) = 1;
        }
        for (int64_t m = 1; m + 1 < n; ++m) {
            double most = 0, square = 0;
            for (int64_t i = m; i < n; ++i) most = std::max(most, std::fabs(H(i, m - 1)));
            bool done = true;
            for (int64_t i = m + 1; i < n; ++i) done = done && H(i, m - 1) == 0;
            if (done) continue;
            for (int64_t i = m; i < n; ++i) column[i] = H(i, m - 1) / most, square += column[i] * column[i];
            const double g = column[m] > 0 ? -std::sqrt(square) : std::sqrt(square);
            const double half = square - column[m] * g;
            column[m] -= g;
            for (int64_t j = m; j < n; ++j) {
                double f = 0;
                for (int64_t i = m; i < n; ++i) f += column[i] * H(i, j);
                f /= half;
                for (int64_t i = m; i < n; ++i) H(i, j) -= f * column[i];
            }
            for (int64_t i = 0; i < n; ++i) turn_row(h + i * n, m, half);
            for (int64_t i = 0; vectors && i < n; ++i) turn_row(v + i * n, m, half);
            H(m, m - 1) = most * g;
            for (int64_t i = m + 1; i < n; ++i) H(i, m - 1) = 0;
        }
    }
    void turn_row(double* row, int64_t m, double half) const {
        double f = 0;
        for (int64_t j = m; j < n; ++j) f += column[j] * row[j];
        f /= half;
        for (int64_t j = m; j < n; ++j) row[j] -= f * column[j];
    }

    // The first row of the last block, to which nothing is left below the diagonal.
    int64_t begin_of(int64_t last) const {
        int64_t l = last;
        for (; l > 0; --l) {
            double s = std::fabs(H(l - 1, l - 1)) + std::fabs(H(l, l));
            if (s == 0) s = size;
            if (std::fabs(H(l, l - 1)) <= EPS * s) break;
        }
        return l;
    }

    bool to_blocks() {
        double shift = 0;
        int steps = 0;
        for (int64_t last = n - 1; last >= 0;) {
            const int64_t l = begin_of(last);
            if (l > 0) H(l, l - 1) = 0;
            if (l == last) {
                re[last] = H(last, last) += shift, im[last] = 0;
                --last, steps = 0;
            } else if (l == last - 1) {
                split(last, shift);
                last -= 2, steps = 0;
            } else {
                if (++steps > MOST_STEPS) return false;
                step(l, last, steps, shift);
            }
        }
        return true;
    }

    // The last 2 x 2 block: two real values, and it becomes triangular, or a pair.
    void split(int64_t k, double shift) {
        const double w = H(k, k - 1) * H(k - 1, k), p = (H(k - 1, k - 1) - H(k, k)) / 2, q = p * p + w, root = std::sqrt(std::fabs(q));
        H(k, k) += shift, H(k - 1, k - 1) += shift;
        const double x = H(k, k);
        if (q < 0) {
            re[k - 1] = re[k] = x + p, im[k - 1] = root, im[k] = -root;
            return;
        }
        const double z = p >= 0 ? p + root : p - root;
        re[k - 1] = x + z, re[k] = z != 0 ? x - w / z : x + z, im[k - 1] = im[k] = 0;
        if (!vectors) return;
        const double below = H(k, k - 1), length = std::hypot(below, z), s = below / length, c = z / length;
        for (int64_t j = k - 1; j < n; ++j) {
            const double one = H(k - 1, j), two = H(k, j);
            H(k - 1, j) = c * one + s * two, H(k, j) = c * two - s * one;
        }
        for (int64_t i = 0; i <= k; ++i) turn(h + i * n + k - 1, c, s);
        for (int64_t i = 0; i < n; ++i) turn(v + i * n + k - 1, c, s);
        H(k, k - 1) = 0;
    }
    static void turn(double* pair, double c, double s) {
        const double one = pair[0], two = pair[1];
        pair[0] = c * one + s * two, pair[1] = c * two - s * one;
    }

    // A double step in rows [l, last].
    void step(int64_t l, int64_t last, int steps, double& shift) {
        double x = H(last, last), y = H(last - 1, last - 1), w = H(last, last - 1) * H(last - 1, last);
        if (steps % 20 == 10) {  // it goes in circles: somewhere else
            shift += x;
            for (int64_t i = 0; i <= last; ++i) H(i, i) -= x;
            const double s = std::fabs(H(last, last - 1)) + std::fabs(H(last - 1, last - 2));
            x = y = 0.75 * s, w = -0.4375 * s * s;
        }
        int64_t m = last - 2;
        double p, q, r;
        for (;; --m) {  // where two numbers below the diagonal are small it may begin
            const double z = H(m, m), a = x - z, b = y - z;
            p = (a * b - w) / H(m + 1, m) + H(m, m + 1), q = H(m + 1, m + 1) - z - a - b, r = H(m + 2, m + 1);
            const double s = std::fabs(p) + std::fabs(q) + std::fabs(r);
            p /= s, q /= s, r /= s;
            if (m == l) break;
            const double around = std::fabs(H(m - 1, m - 1)) + std::fabs(z) + std::fabs(H(m + 1, m + 1));
            if (std::fabs(H(m, m - 1)) * (std::fabs(q) + std::fabs(r)) <= EPS * std::fabs(p) * around) break;
        }
        for (int64_t i = m + 2; i <= last; ++i) {
            H(i, i - 2) = 0;
            if (i > m + 2) H(i, i - 3) = 0;
        }
        for (int64_t k = m; k < last; ++k) {
            const bool three = k + 1 < last;
            double most = 1;
            if (k > m) {
                p = H(k, k - 1), q = H(k + 1, k - 1), r = three ? H(k + 2, k - 1) : 0;
                most = std::fabs(p) + std::fabs(q) + std::fabs(r);
                if (most == 0) continue;
                p /= most, q /= most, r /= most;
            }
            const double length = std::sqrt(p * p + q * q + r * r), s = p < 0 ? -length : length;
            if (s == 0) continue;
            if (k > m) H(k, k - 1) = -s * most;
            else if (l != m) H(k, k - 1) = -H(k, k - 1);
            reflect(k, l, last, three, p + s, q, r, s);
        }
    }

    // The reflection by (p, q, r), from the left and from the right.
    void reflect(int64_t k, int64_t l, int64_t last, bool three, double p, double q, double r, double s) {
        const double x = p / s, y = q / s, z = r / s, b = q / p, c = r / p;
        double *one = h + k * n, *two = one + n, *other = two + n;
        const int64_t columns = vectors ? n : last + 1;
        for (int64_t j = k; j < columns; ++j) {
            const double f = three ? one[j] + b * two[j] + c * other[j] : one[j] + b * two[j];
            one[j] -= f * x, two[j] -= f * y;
            if (three) other[j] -= f * z;
        }
        const auto rows = [&](double* from, int64_t first, int64_t end) {
            for (double *row = from + first * n + k, *stop = from + end * n + k; row != stop; row += n) {
                const double f = three ? x * row[0] + y * row[1] + z * row[2] : x * row[0] + y * row[1];
                row[0] -= f, row[1] -= f * b;
                if (three) row[2] -= f * c;
            }
        };
        rows(h, vectors ? 0 : l, std::min(last, k + 3) + 1);
        if (vectors) rows(v, 0, n);
    }

    // Vectors of the triangle with its blocks, in its columns, then of the matrix.
    void find_vectors() {
        for (int64_t k = n - 1; k >= 0; --k) {
            if (im[k] == 0) solve_real(k);
            else if (im[k] < 0) solve_pair(k);
        }
        for (int64_t i = 0; i < n; ++i) {
            double* row = v + i * n;
            for (int64_t j = n - 1; j >= 0; --j) {
                double sum = 0;
                for (int64_t k = 0; k <= j; ++k) sum += row[k] * H(k, j);
                row[j] = sum * scale[i];
            }
        }
    }
    void shrink(int64_t i, int64_t k, int64_t first) {
        double t = 0;
        for (int64_t c = first; c <= k; ++c) t = std::max(t, std::fabs(H(i, c)));
        if (EPS * t * t <= 1) return;
        for (int64_t j = i; j <= k; ++j)
            for (int64_t c = first; c <= k; ++c) H(j, c) /= t;
    }
    void solve_real(int64_t k) {
        const double p = re[k];
        H(k, k) = 1;
        double z = 0, s = 0;  // of the second row of a block
        for (int64_t i = k - 1, l = k; i >= 0; --i) {
            const double w = H(i, i) - p;
            double r = 0;
            for (int64_t j = l; j <= k; ++j) r += H(i, j) * H(j, k);
            if (im[i] < 0) {
                z = w, s = r;
                continue;
            }
            l = i;
            if (im[i] == 0) {
                H(i, k) = -r / (w != 0 ? w : EPS * size);
            } else {
                const double x = H(i, i + 1), y = H(i + 1, i), gap = re[i] - p, t = (x * s - z * r) / (gap * gap + im[i] * im[i]);
                H(i, k) = t, H(i + 1, k) = std::fabs(x) > std::fabs(z) ? (-r - w * t) / x : (-s - y * t) / z;
            }
            shrink(i, k, k);
        }
    }
    void put(int64_t i, int64_t k, Complex number) { H(i, k - 1) = number.real(), H(i, k) = number.imag(); }
    Complex at(int64_t i, int64_t k) const { return {H(i, k - 1), H(i, k)}; }
    void solve_pair(int64_t k) {
        const double p = re[k], q = im[k];
        const double low = H(k, k - 1), high = H(k - 1, k), own = H(k, k);
        put(k - 1, k, std::fabs(low) > std::fabs(high) ? Complex(q / low, -(own - p) / low) : quotient({0, -high}, {H(k - 1, k - 1) - p, q}));
        H(k, k - 1) = 0, H(k, k) = 1;
        double z = 0;
        Complex second;
        for (int64_t i = k - 2, l = k - 1; i >= 0; --i) {
            double re_sum = 0, im_sum = 0;
            for (int64_t j = l; j <= k; ++j) re_sum += H(i, j) * H(j, k - 1), im_sum += H(i, j) * H(j, k);
            const double w = H(i, i) - p, ra = re_sum, sa = im_sum;
            if (im[i] < 0) {
                z = w, second = {ra, sa};
                continue;
            }
            l = i;
            if (im[i] == 0) {
                put(i, k, quotient({-ra, -sa}, {w, q}));
            } else {
                const double x = H(i, i + 1), y = H(i + 1, i), gap = re[i] - p, r = second.real(), s = second.imag();
                Complex by(gap * gap + im[i] * im[i] - q * q, gap * 2 * q);
                if (by.real() == 0 && by.imag() == 0)
                    by = EPS * size * (std::fabs(w) + std::fabs(q) + std::fabs(x) + std::fabs(y) + std::fabs(z));
                const Complex t = quotient({x * r - z * ra + q * sa, x * s - z * sa - q * ra}, by);
                put(i, k, t);
                if (std::fabs(x) > std::fabs(z) + std::fabs(q))
                    put(i + 1, k, {(-ra - w * t.real() + q * t.imag()) / x, (-sa - w * t.imag() - q * t.real()) / x});
                else
                    put(i + 1, k, quotient({-r - y * t.real(), -s - y * t.imag()}, {z, q}));
            }
            shrink(i, k, k - 1);
        }
    }

    template <class T> void give_real(int64_t j, std::complex<T>* to) const {
        double most = 0, square = 0;
        for (int64_t i = 0; i < n; ++i) most = std::max(most, std::fabs(V(i, j)));
        for (int64_t i = 0; i < n; ++i) square += (V(i, j) / most) * (V(i, j) / most);
        const double by = 1 / std::sqrt(square);
        for (int64_t i = 0; i < n; ++i) to[i * n + j] = T(V(i, j) / most * by);
    }
    template <class T> void give_pair(int64_t j, std::complex<T>* to) const {
        double most = 0, square = 0, largest = -1;
        for (int64_t i = 0; i < n; ++i) most = std::max({most, std::fabs(V(i, j)), std::fabs(V(i, j + 1))});
        Complex turned = 1;
        for (int64_t i = 0; i < n; ++i) {
            const Complex x(V(i, j) / most, V(i, j + 1) / most);
            const double own = std::norm(x);
            square += own;
            if (own > largest) largest = own, turned = std::conj(x);
        }
        turned /= std::sqrt(largest) * std::sqrt(square);
        for (int64_t i = 0; i < n; ++i) {
            const double a = V(i, j) / most, b = V(i, j + 1) / most;
            Complex x(a * turned.real() - b * turned.imag(), a * turned.imag() + b * turned.real());
            if (a * a + b * b == largest && std::fabs(x.imag()) < 4 * EPS * std::fabs(x.real())) x = x.real();
            to[i * n + j] = {T(x.real()), T(x.imag())}, to[i * n + j + 1] = {T(x.real()), T(-x.imag())};
        }
    }

    const int64_t n;
    double *const h, *const v, *const re, *const im, *const scale, *const column;
    const bool vectors;
    double size = 0;
};

}  // namespace

template <class T> bool eigen(const T* a, int64_t count, int64_t n, std::complex<T>* values, std::complex<T>* vectors) {
    std::atomic<bool> good{true};
    parallel(count, 1 + 4096 / (n * n * n), [&](int64_t begin, int64_t end) {
        Matrix matrix(scratch<double>(0, Matrix::room(n)), n, vectors);
        for (int64_t i = begin; i < end && good; ++i) {
            if (matrix.take(a + i * n * n) && matrix.decompose()) matrix.give(values + i * n, vectors ? vectors + i * n * n : nullptr);
            else good = false;
        }
    });
    return good;
}

template bool eigen(const float*, int64_t, int64_t, std::complex<float>*, std::complex<float>*);
template bool eigen(const double*, int64_t, int64_t, std::complex<double>*, std::complex<double>*);

}  // namespace fw::unsymmetric
