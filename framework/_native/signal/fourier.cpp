// Discrete Fourier transforms over any dimensions: mixed radix (Stockham, decimation in frequency), as many lines side
// by side as a vector has lanes. Numbers of float32 are computed in float64 and rounded once for each dimension, as NumPy does.
// Sizes with a prime factor above 256 are left to NumPy.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/pool.h"
#include "base/simd.h"
#include "bind/array.h"

namespace fw::fourier {
namespace {

constexpr int LARGEST_FACTOR = 256;
constexpr size_t MOST_PLANS = 32;
constexpr int64_t MOST_LINES = 64;

// exp(-2 pi i k / n), the angle reduced to an eighth of the circle first
void root(int64_t k, int64_t n, double& re, double& im) {
    const int64_t quarter = 4 * k / n, rest = 4 * k - quarter * n;  // k < n; in n-ths of a quarter
    const double angle = 1.570796326794896619231 * (double(rest) / double(n));
    double x, y;
    if (2 * rest <= n) {
        x = std::cos(angle), y = std::sin(angle);
    } else {
        const double other = 1.570796326794896619231 * (double(n - rest) / double(n));
        x = std::sin(other), y = std::cos(other);
    }
    const double xs[4] = {x, -y, -x, y}, ys[4] = {y, x, -y, -x};
    re = xs[quarter & 3], im = -ys[quarter & 3];
}

struct TransformPlan {
    struct Stage {
        int radix;
        int64_t before, after;  // the product of the radices before, and what is left after it
        std::vector<double> turns;   // for each p < after: exp(-2 pi i j p / (radix after)), j = 1 ... radix - 1
        std::vector<double> roots;   // of the radix itself
    };
    std::vector<Stage> stages;
    std::vector<double> half;  // exp(-2 pi i k / 2n) for k <= n: what joins the halves of a real transform of 2n
    bool fits = true;
};

std::shared_ptr<TransformPlan> make_plan(int64_t n) {
    auto plan = std::make_shared<TransformPlan>();
    std::vector<int> radices;
    int64_t left = n;
    while (left % 4 == 0) radices.push_back(4), left /= 4;
    for (int r = 2; r <= LARGEST_FACTOR && left > 1; ++r)
        while (left % r == 0) radices.push_back(r), left /= r;
    plan->fits = left == 1;
    if (!plan->fits) return plan;
    int64_t before = 1;
    double re, im;
    for (int r : radices) {
        TransformPlan::Stage s{r, before, n / before / r, {}, {}};
        const int64_t whole = s.after * r;
        for (int64_t p = 0; p < s.after; ++p)
            for (int64_t j = 1; j < r; ++j) {
                root(j * p % whole, whole, re, im);
                s.turns.push_back(re), s.turns.push_back(im);
            }
        for (int64_t j = 0; j < r; ++j) {
            root(j, r, re, im);
            s.roots.push_back(re), s.roots.push_back(im);
        }
        plan->stages.push_back(std::move(s));
        before *= r;
    }
    for (int64_t k = 0; k <= n; ++k) {
        root(k, 2 * n, re, im);
        plan->half.push_back(re), plan->half.push_back(im);
    }
    return plan;
}

// Plans are made once; a few stay.
std::shared_ptr<TransformPlan> plan_of(int64_t n) {
    static std::mutex lock;
    static std::map<int64_t, std::shared_ptr<TransformPlan>> known;
    {
        const std::lock_guard<std::mutex> guard(lock);
        auto found = known.find(n);
        if (found != known.end()) return found->second;
    }
    auto plan = make_plan(n);
    const std::lock_guard<std::mutex> guard(lock);
    if (known.size() >= MOST_PLANS) known.erase(known.begin());
    known[n] = plan;
    return plan;
}

template <class V> FW_INLINE V get(const double* p) {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
template <class V> FW_INLINE void put(double* p, V v) { std::memcpy(p, &v, sizeof v); }

// One butterfly: the numbers at x, x + apart, ... of each part become those at y, y + len, ...
template <int R, class V>
FW_INLINE void butterfly(const double* xr, const double* xi, int64_t apart, double* yr, double* yi, int64_t len,
                         const double* turns, const double* roots, int r) {
    constexpr int most = R ? R : LARGEST_FACTOR;
    if constexpr (R != 0) r = R;
    V ar[most], ai[most];
    for (int k = 0; k < r; ++k) ar[k] = get<V>(xr + k * apart), ai[k] = get<V>(xi + k * apart);
    const auto give = [&](int j, V re, V im) {
        if (j) {
            const double c = turns[2 * j - 2], s = turns[2 * j - 1];
            put(yr + j * len, V(re * c - im * s)), put(yi + j * len, V(re * s + im * c));
        } else {
            put(yr, re), put(yi, im);
        }
    };
    if constexpr (R == 2) {
        give(0, ar[0] + ar[1], ai[0] + ai[1]);
        give(1, ar[0] - ar[1], ai[0] - ai[1]);
    } else if constexpr (R == 4) {
        const V er = ar[0] + ar[2], ei = ai[0] + ai[2], dr = ar[0] - ar[2], di = ai[0] - ai[2];
        const V fr = ar[1] + ar[3], fi = ai[1] + ai[3], gr = ar[1] - ar[3], gi = ai[1] - ai[3];
        give(0, er + fr, ei + fi);
        give(1, dr + gi, di - gr);
        give(2, er - fr, ei - fi);
        give(3, dr - gi, di + gr);
    } else {
        // an odd one: the numbers k and r - k meet roots that are conjugates, and so do the results j and r - j
        const int h = (r - 1) / 2;
        V sr = ar[0], si = ai[0];
        for (int k = 1; k <= h; ++k) {
            const V xr_ = ar[k], xi_ = ai[k];
            ar[k] = xr_ + ar[r - k], ai[k] = xi_ + ai[r - k];
            ar[r - k] = xr_ - ar[r - k], ai[r - k] = xi_ - ai[r - k];
            sr += ar[k], si += ai[k];
        }
        give(0, sr, si);
        for (int j = 1; j <= h; ++j) {
            V er = ar[0], ei = ai[0], fr{}, fi{};
            for (int k = 1, at = j; k <= h; ++k, at = at + j >= r ? at + j - r : at + j) {
                const double c = roots[2 * at], s = roots[2 * at + 1];
                er += ar[k] * c, ei += ai[k] * c;
                fr += ai[r - k] * s, fi += ar[r - k] * s;
            }
            give(j, er - fr, ei + fi);
            give(r - j, er + fr, ei - fi);
        }
    }
}

template <int R>
void pass(const TransformPlan::Stage& s, const double* xr, const double* xi, double* yr, double* yi, int64_t lines) {
    const int64_t len = s.before * lines, apart = s.after * len;
    const int r = s.radix;
    for (int64_t p = 0; p < s.after; ++p) {
        const double* turns = s.turns.data() + p * 2 * (r - 1);
        const int64_t from = p * len, to = p * r * len;
        int64_t q = 0;
        for (; q + lanes<double> <= len; q += lanes<double>)
            butterfly<R, Vec<double>>(xr + from + q, xi + from + q, apart, yr + to + q, yi + to + q, len, turns,
                                 s.roots.data(), r);
        for (; q < len; ++q)
            butterfly<R, double>(xr + from + q, xi + from + q, apart, yr + to + q, yi + to + q, len, turns,
                            s.roots.data(), r);
    }
}

// From real to imaginary parts of n numbers of so many lines: not a power of 2, which the caches take badly.
constexpr int64_t GAP = 48;
int64_t parts(int64_t n, int64_t lines) { return n * lines + GAP; }

// The transform of `lines` lines, number after number ([n][lines], parts apart), in x or in y: which, is returned.
double* transform(const TransformPlan& plan, int64_t n, double* x, double* y, int64_t lines) {
    const int64_t size = parts(n, lines);
    for (const auto& s : plan.stages) {
        auto go = s.radix == 4 ? pass<4> : s.radix == 2 ? pass<2> : s.radix == 3 ? pass<3>
                  : s.radix == 5 ? pass<5> : pass<0>;
        go(s, x, x + size, y, y + size, lines);
        std::swap(x, y);
    }
    return x;
}

enum class TransformKind { complex, forward_real, backward_real };

// Lines of one dimension of an array: where they begin, and how far apart their numbers are, in bytes.
struct Side {
    char* start;
    int64_t step;
    std::vector<int64_t> strides;  // of the other dimensions
};

struct TransformJob {
    TransformKind kind;
    bool inverse, real_input;
    int64_t n;                     // the size of the transform
    std::vector<int64_t> shape;    // of the other dimensions
    Side from, to;
    double factor;
};

// Calls body(line, number) in the order in which they lie in memory.
template <class F> FW_INLINE void each(const Side& side, const int64_t* at, int64_t lines, int64_t count, F&& body) {
    if (lines > 1 && std::abs(at[1] - at[0]) < std::abs(side.step)) {
        for (int64_t j = 0; j < count; ++j)
            for (int64_t w = 0; w < lines; ++w) body(w, j);
    } else {
        constexpr int64_t tile = 16;  // both sides stay in the cache
        for (int64_t first = 0; first < count; first += tile) {
            const int64_t end = std::min(count, first + tile);
            for (int64_t w = 0; w < lines; ++w)
                for (int64_t j = first; j < end; ++j) body(w, j);
        }
    }
}

// Numbers of a line into a part of the work: [number][line]
template <class S>
void gather(const TransformJob& job, const int64_t* at, int64_t lines, int64_t count, double* re, double* im) {
    const auto place = [&](int64_t w, int64_t j) {
        return reinterpret_cast<const S*>(job.from.start + at[w] + j * job.from.step);
    };
    if (job.real_input) {
        each(job.from, at, lines, count, [&](int64_t w, int64_t j) { re[j * lines + w] = *place(w, j); });
        std::fill(im, im + count * lines, 0.0);
    } else {
        each(job.from, at, lines, count, [&](int64_t w, int64_t j) {
            const S* z = place(w, j);
            re[j * lines + w] = z[0], im[j * lines + w] = z[1];
        });
    }
}

template <class S>
void scatter(const TransformJob& job, const int64_t* at, int64_t lines, int64_t used, int64_t count, const double* re,
             const double* im) {
    const double f = job.factor;
    each(job.to, at, used, count, [&](int64_t w, int64_t j) {
        S* z = reinterpret_cast<S*>(job.to.start + at[w] + j * job.to.step);
        z[0] = S(re[j * lines + w] * f), z[1] = S(im[j * lines + w] * f);
    });
}

// A real line of even size as a complex one of half the size: its even numbers are the real parts.
template <class S> void gather_pairs(const TransformJob& job, const int64_t* at, int64_t lines, double* re, double* im) {
    const int64_t step = job.from.step;
    each(job.from, at, lines, job.n / 2, [&](int64_t w, int64_t j) {
        const char* p = job.from.start + at[w] + 2 * j * step;
        re[j * lines + w] = *reinterpret_cast<const S*>(p);
        im[j * lines + w] = *reinterpret_cast<const S*>(p + step);
    });
}

// z, the transform of pairs, becomes the first half of the transform of the real line (h + 1 numbers).
void join_halves(const TransformPlan& plan, int64_t h, int64_t lines, const double* z, double* out) {
    const int64_t size = parts(h, lines), whole = parts(h + 1, lines);
    for (int64_t k = 0; k <= h; ++k) {
        const double *a = z + (k % h) * lines, *b = z + ((h - k) % h) * lines;
        const double c = plan.half[2 * k], s = plan.half[2 * k + 1];
        for (int64_t w = 0; w < lines; ++w) {
            const double er = (a[w] + b[w]) / 2, ei = (a[w + size] - b[w + size]) / 2;
            const double or_ = (a[w + size] + b[w + size]) / 2, oi = (b[w] - a[w]) / 2;
            out[k * lines + w] = er + (or_ * c - oi * s);
            out[k * lines + w + whole] = ei + (or_ * s + oi * c);
        }
    }
}

// The other way: h + 1 numbers become the h whose inverse transform is the line, in pairs.
void part_halves(const TransformPlan& plan, int64_t h, int64_t lines, const double* x, double* z) {
    const int64_t size = parts(h, lines), whole = parts(h + 1, lines);
    for (int64_t k = 0; k < h; ++k) {
        const double *a = x + k * lines, *b = x + (h - k) * lines;
        const double c = plan.half[2 * k], s = -plan.half[2 * k + 1];
        const double ends = k == 0 ? 0.0 : 1.0;  // the first number and the middle one are real
        for (int64_t w = 0; w < lines; ++w) {
            const double ai = a[w + whole] * ends, bi = b[w + whole] * ends;
            const double er = a[w] + b[w], ei = ai - bi, dr = a[w] - b[w], di = ai + bi;
            const double or_ = dr * c - di * s, oi = dr * s + di * c;
            z[k * lines + w] = er - oi;
            z[k * lines + w + size] = ei + or_;
        }
    }
}

template <class S> void one_block(const TransformJob& job, const TransformPlan& plan, const int64_t* from, const int64_t* to,
                                  int64_t lines, int64_t used, double* x, double* y) {
    const int64_t n = job.n, h = n / 2, size = parts(n, lines);
    const int64_t pairs = parts(h, lines), half = parts(h + 1, lines);
    const bool even = n % 2 == 0;
    if (job.kind == TransformKind::forward_real && even) {
        gather_pairs<S>(job, from, lines, x, x + pairs);
        double* z = transform(plan, h, x, y, lines);
        double* out = z == x ? y : x;
        join_halves(plan, h, lines, z, out);
        scatter<S>(job, to, lines, used, h + 1, out, out + half);
        return;
    }
    if (job.kind == TransformKind::backward_real) {
        double* z;
        const double f = job.factor;
        if (even) {
            gather<S>(job, from, lines, h + 1, x, x + half);
            part_halves(plan, h, lines, x, y);
            std::swap_ranges(y, y + h * lines, y + pairs);  // the inverse: parts swapped, before and after
            z = transform(plan, h, y, x, lines);
        } else {
            gather<S>(job, from, lines, h + 1, x, x + size);
            std::fill(x + size, x + size + lines, 0.0);
            for (int64_t k = 1; k <= h; ++k)
                for (int64_t w = 0; w < lines; ++w) {
                    x[(n - k) * lines + w] = x[k * lines + w];
                    x[(n - k) * lines + w + size] = -x[k * lines + w + size];
                }
            std::swap_ranges(x, x + n * lines, x + size);
            z = transform(plan, n, x, y, lines);
        }
        const double *re = z + (even ? pairs : size), *im = z;
        const auto place = [&](int64_t w, int64_t j) -> S& {
            return *reinterpret_cast<S*>(job.to.start + to[w] + j * job.to.step);
        };
        if (even)
            each(job.to, to, used, h, [&](int64_t w, int64_t j) {
                place(w, 2 * j) = S(re[j * lines + w] * f), place(w, 2 * j + 1) = S(im[j * lines + w] * f);
            });
        else
            each(job.to, to, used, n, [&](int64_t w, int64_t j) { place(w, j) = S(re[j * lines + w] * f); });
        return;
    }
    double *re = x, *im = x + size;
    if (job.inverse) std::swap(re, im);
    gather<S>(job, from, lines, n, re, im);
    double* z = transform(plan, n, x, y, lines);
    re = z, im = z + size;
    if (job.inverse) std::swap(re, im);
    scatter<S>(job, to, lines, used, job.kind == TransformKind::forward_real ? h + 1 : n, re, im);
}

template <class S> void run(const TransformJob& job) {
    int64_t count = 1;
    for (int64_t s : job.shape) count *= s;
    const bool halved = job.kind != TransformKind::complex && job.n % 2 == 0;
    const auto plan = plan_of(halved ? job.n / 2 : job.n);
    // short lines: some vectors of them at once
    const int64_t wide = lanes<double> * std::clamp<int64_t>(512 / (job.n * lanes<double>), 1, MOST_LINES / lanes<double>);
    const int64_t lines = count * 3 < lanes<double> ? 1 : count < wide ? lanes<double> : wide, blocks = (count + lines - 1) / lines;
    parallel(blocks, 1 + 2048 / (job.n * lines), [&](int64_t begin, int64_t end) {
        const int64_t room = 2 * parts(job.n + 2, lines) + GAP;
        Borrowed memory(2 * room, sizeof(double));
        double* x = static_cast<double*>(memory.start);
        int64_t from[MOST_LINES], to[MOST_LINES], index[NPY_MAXDIMS] = {}, here = 0, there = 0;
        const int dims = int(job.shape.size());
        int64_t at = begin * lines;
        for (int d = dims; d-- > 0; at /= job.shape[d]) {
            index[d] = at % job.shape[d];
            here += index[d] * job.from.strides[d], there += index[d] * job.to.strides[d];
        }
        for (int64_t b = begin; b < end; ++b) {
            const int64_t used = std::min(lines, count - b * lines);
            for (int64_t w = 0; w < lines; ++w) {
                from[w] = w < used ? here : from[0], to[w] = there;
                for (int d = w < used ? dims - 1 : -1; d >= 0; --d) {
                    here += job.from.strides[d], there += job.to.strides[d];
                    if (++index[d] < job.shape[d]) break;
                    here -= job.shape[d] * job.from.strides[d], there -= job.shape[d] * job.to.strides[d];
                    index[d] = 0;
                }
            }
            one_block<S>(job, *plan, from, to, lines, used, x, x + room);
        }
    });
}

Side side(const Array& a, int dim) {
    Side s{a.data<char>(), a.stride(dim), {}};
    for (int d = 0; d < a.ndim(); ++d)
        if (d != dim) s.strides.push_back(a.stride(d));
    return s;
}

bool can(int64_t n) {
    for (int r = 2; r <= LARGEST_FACTOR; ++r)
        while (n % r == 0) n /= r;
    return n == 1;
}

template <class S>
nb::object transformed(Array x, const std::string& kind, const std::vector<int64_t>& dims, int64_t size, double factor,
                       int real_type, int complex_type) {
    const bool inverse = kind[0] == 'i', halving = kind == "rfft", whole = kind == "irfft", real_input = x.type() == real_type;
    if (halving != real_input && (halving || whole)) return not_implemented();
    const int last = int(dims.back());
    std::vector<npy_intp> shape(x.shape(), x.shape() + x.ndim());
    if (halving) shape[last] = size / 2 + 1;
    NewArray out = new_array(x.ndim(), shape.data(), complex_type), result;
    if (whole) {
        shape[last] = size;
        result = new_array(x.ndim(), shape.data(), real_type);
    }
    std::vector<int> order;  // the halved dimension comes first on the way there, last on the way back
    for (int64_t d : dims) order.push_back(int(d));
    if (halving) std::reverse(order.begin(), order.end());
    {
        Release release(out.size() * int64_t(sizeof(S)) * 8);
        Array source = x;
        for (size_t i = 0; i < order.size(); ++i) {
            const int d = order[i];
            const bool last_back = whole && i + 1 == order.size();
            Array target = last_back ? Array(result) : Array(out);
            TransformJob job{last_back ? TransformKind::backward_real : halving && i == 0 ? TransformKind::forward_real : TransformKind::complex,
                    inverse, i == 0 && real_input, last_back || (halving && i == 0) ? size : x.shape(d), {},
                    side(source, d), side(target, d), i + 1 == order.size() ? factor : 1.0};
            for (int e = 0; e < x.ndim(); ++e)
                if (e != d) job.shape.push_back(target.shape(e));
            run<S>(job);
            source = target;
        }
    }
    return whole ? give(result) : give(out);
}

// kind: fft, ifft, rfft or irfft. size: of the last of dims. norm: None, "backward", "ortho" or "forward".
nb::object fft(Array x, const std::string& kind, const std::vector<int64_t>& dims, int64_t size, nb::object norm) {
    if (!x.usable() || !x.size() || dims.empty() || size < 1) return not_implemented();
    const int type = x.type();
    const bool single = type == NPY_FLOAT || type == NPY_CFLOAT;
    if (!single && type != NPY_DOUBLE && type != NPY_CDOUBLE) return not_implemented();
    double total = 1;
    unsigned seen = 0;
    for (size_t i = 0; i < dims.size(); ++i) {
        const int64_t d = dims[i];
        if (d < 0 || d >= x.ndim() || seen >> d & 1) return not_implemented();
        seen |= 1u << d;
        const bool last = i + 1 == dims.size();
        const int64_t n = last ? size : x.shape(int(d)), had = kind == "irfft" && last ? n / 2 + 1 : n;
        if (!can(n) || x.shape(int(d)) != had) return not_implemented();
        total *= double(n);
    }
    const std::string by = norm.is_none() ? "backward" : nb::cast<std::string>(norm);
    const bool inverse = kind[0] == 'i';
    const double factor = by == "ortho" ? 1 / std::sqrt(total) : (by == "forward") != inverse ? 1 / total : 1;
    if (single) return transformed<float>(x, kind, dims, size, factor, NPY_FLOAT, NPY_CFLOAT);
    return transformed<double>(x, kind, dims, size, factor, NPY_DOUBLE, NPY_CDOUBLE);
}

}  // namespace

FW_BIND(m) {
    m.def("fft", &fft, nb::arg("x"), nb::arg("kind"), nb::arg("dims"), nb::arg("size"), nb::arg("norm").none());
}

}  // namespace fw::fourier
