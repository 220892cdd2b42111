// Discrete Fourier transforms over any dimensions: mixed radix (Stockham, decimation in frequency), as many lines side
// by side as a vector has lanes. Numbers of float32 are computed in float32, their roots rounded once from float64.
// Sizes with a large prime factor are done by a convolution of a size without (Bluestein, 1970).
#include "signal/fourier.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "base/pool.h"
#include "base/scratch.h"
#include "base/shuffles.h"
#include "base/simd.h"
#include "signal/short_lines.h"

namespace fw::fourier {
namespace {

constexpr int LARGEST_FACTOR = 256;
constexpr size_t MOST_PLANS = 32;
constexpr int64_t MOST_LINES = 64;
constexpr int64_t MOST_CONVOLVED = 1 << 22;
constexpr int64_t LONGEST = 1 << 22;  // numbers of lines side by side

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

template <class S> struct Stage {
    int radix;
    int64_t before, after;  // the product of the radices before, and what is left after it
    std::vector<S> turns;   // for each p < after: exp(-2 pi i j p / (radix after)), j = 1 ... radix - 1
    std::vector<S> roots;   // of the radix itself
    std::vector<S> by_part;  // the turns of a first stage once more: for each j those of all p, real parts first
};

template <class S> struct TransformPlan {
    std::vector<Stage<S>> stages;
    std::vector<S> half;  // exp(-2 pi i k / 2n) for k <= n: what joins the halves of a real transform of 2n
    // Instead of stages: the transform of a convolution's size, exp(-pi i k^2 / n) for k < n, and the transform of what is convolved
    // with, divided by that size; real parts first.
    int64_t longer = 0;
    std::shared_ptr<TransformPlan> inner;
    std::vector<S> chirp, spectrum;

    int64_t work(int64_t n) const { return std::max(n, longer); }  // numbers of a line
};

// The radices of a size; none where a factor is too large.
std::vector<int> radices_of(int64_t n) {
    std::vector<int> radices;
    while (n % 4 == 0) radices.push_back(4), n /= 4;
    for (int r = 2; r <= LARGEST_FACTOR && n > 1; ++r)
        while (n % r == 0) radices.push_back(r), n /= r;
    return n == 1 ? radices : std::vector<int>();
}

// The size from `least` on whose transform takes the least time, about: of factors 2, 3 and 5.
int64_t quickest_from(int64_t least) {
    int64_t best = 0;
    double cost_of_best = 0;
    for (int64_t fives = 1; fives < 2 * least; fives *= 5)
        for (int64_t odd = fives; odd < 2 * least; odd *= 3) {
            int64_t size = odd;
            while (size < least) size *= 2;
            double cost = 0;
            for (int r : radices_of(size)) cost += r == 2 ? 0.8 : r == 3 ? 1.1 : r == 4 ? 1 : 1.7;
            cost *= double(size);
            if (!best || cost < cost_of_best) best = size, cost_of_best = cost;
        }
    return best;
}

// Whether a convolution takes less time than the stages of these radices: as measured (AVX-512, float32). A stage of a large one has whole
// vectors where lines lie side by side, or where stages of 4 come before it.
bool is_convolved(int64_t n, const std::vector<int>& radices, bool alone) {
    if (radices.empty()) return n > 1;
    int64_t products = 0, before = 1;  // of a large radix, for each number
    for (int r : radices) (r > 5 ? products : before) += r > 5 ? r : before * (r == 4 ? 3 : 0);
    return double(products) > (alone && before < 16 ? 50 : 24 * std::log2(double(n)) - 35);
}

template <class S> std::shared_ptr<TransformPlan<S>> plan_of(int64_t n, bool alone);
template <class S> S* transform(const TransformPlan<S>& plan, int64_t n, S* x, S* y, int64_t lines);
int64_t parts(int64_t n, int64_t lines);

// k n = (k^2 + n^2 - (n - k)^2) / 2: a transform is a convolution with exp(pi i k^2 / n), but for factors.
template <class S> void plan_convolution(TransformPlan<S>& plan, int64_t n) {
    const int64_t m = quickest_from(2 * n - 1), size = parts(m, 1);
    plan.longer = m, plan.inner = plan_of<S>(m, false);
    plan.chirp.resize(size_t(2 * n)), plan.spectrum.resize(size_t(2 * m));
    std::vector<double> x(size_t(2 * size)), y(size_t(2 * size));
    for (int64_t k = 0; k < n; ++k) {
        double re, im;
        root(int64_t(__int128(k) * k % (2 * n)), 2 * n, re, im);
        plan.chirp[size_t(k)] = S(re), plan.chirp[size_t(n + k)] = S(im);
        for (int64_t at : {k, (m - k) % m}) x[size_t(at)] = re / double(m), x[size_t(size + at)] = -im / double(m);
    }
    const double* z = transform(*plan_of<double>(m, false), m, x.data(), y.data(), 1);
    for (int64_t k = 0; k < m; ++k) plan.spectrum[size_t(k)] = S(z[k]), plan.spectrum[size_t(m + k)] = S(z[size + k]);
}

template <class S> std::shared_ptr<TransformPlan<S>> make_plan(int64_t n, bool alone) {
    auto plan = std::make_shared<TransformPlan<S>>();
    std::vector<int> radices = radices_of(n);
    if (is_convolved(n, radices, alone)) plan_convolution(*plan, n), radices.clear();
    int64_t before = 1;
    double re, im;
    for (int r : radices) {
        Stage<S> s{r, before, n / before / r, {}, {}, {}};
        const int64_t whole = s.after * r;
        if (before == 1) s.by_part.resize(size_t(2 * (r - 1) * s.after));
        for (int64_t p = 0; p < s.after; ++p)
            for (int64_t j = 1; j < r; ++j) {
                root(j * p % whole, whole, re, im);
                s.turns.push_back(S(re)), s.turns.push_back(S(im));
                if (before > 1) continue;
                s.by_part[size_t((2 * j - 2) * s.after + p)] = S(re), s.by_part[size_t((2 * j - 1) * s.after + p)] = S(im);
            }
        for (int64_t j = 0; j < r; ++j) {
            root(j, r, re, im);
            s.roots.push_back(S(re)), s.roots.push_back(S(im));
        }
        plan->stages.push_back(std::move(s));
        before *= r;
    }
    for (int64_t k = 0; k <= n; ++k) {
        root(k, 2 * n, re, im);
        plan->half.push_back(S(re)), plan->half.push_back(S(im));
    }
    return plan;
}

// Plans are made once; a few stay.
template <class S> std::shared_ptr<TransformPlan<S>> plan_of(int64_t n, bool alone) {
    const int64_t key = 2 * n + alone;
    static std::mutex lock;
    static std::map<int64_t, std::shared_ptr<TransformPlan<S>>> known;
    {
        const std::lock_guard<std::mutex> guard(lock);
        auto found = known.find(key);
        if (found != known.end()) return found->second;
    }
    auto plan = make_plan<S>(n, alone);
    const std::lock_guard<std::mutex> guard(lock);
    if (known.size() >= MOST_PLANS) known.erase(known.begin());
    known[key] = plan;
    return plan;
}

template <class V, class S> FW_INLINE V get(const S* p) {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
template <class V, class S> FW_INLINE void put(S* p, V v) { std::memcpy(p, &v, sizeof v); }

// The four sums of a butterfly of four numbers, before they are turned.
template <class V> FW_INLINE void four(V (&r)[4], V (&i)[4]) {
    const V er = r[0] + r[2], ei = i[0] + i[2], dr = r[0] - r[2], di = i[0] - i[2];
    const V fr = r[1] + r[3], fi = i[1] + i[3], gr = r[1] - r[3], gi = i[1] - i[3];
    r[0] = er + fr, i[0] = ei + fi, r[1] = dr + gi, i[1] = di - gr;
    r[2] = er - fr, i[2] = ei - fi, r[3] = dr - gi, i[3] = di + gr;
}

// One butterfly: the numbers at x, x + apart, ... of each part become those at y, y + len, ...
template <int R, class V, class S>
FW_INLINE void butterfly(const S* xr, const S* xi, int64_t apart, S* yr, S* yi, int64_t len, const S* turns, const S* roots,
                         int r) {
    constexpr int most = R ? R : LARGEST_FACTOR;
    if constexpr (R != 0) r = R;
    if (r < 2) __builtin_unreachable();
    V ar[most], ai[most];
    for (int k = 0; k < r; ++k) ar[k] = get<V>(xr + k * apart), ai[k] = get<V>(xi + k * apart);
    const auto give = [&](int j, V re, V im) {
        if (j) {
            const S c = turns[2 * j - 2], s = turns[2 * j - 1];
            put(yr + j * len, V(re * c - im * s)), put(yi + j * len, V(re * s + im * c));
        } else {
            put(yr, re), put(yi, im);
        }
    };
    if constexpr (R == 2) {
        give(0, ar[0] + ar[1], ai[0] + ai[1]);
        give(1, ar[0] - ar[1], ai[0] - ai[1]);
    } else if constexpr (R == 4) {
        four(ar, ai);
        for (int j = 0; j < 4; ++j) give(j, ar[j], ai[j]);
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
                const S c = roots[2 * at], s = roots[2 * at + 1];
                er += ar[k] * c, ei += ai[k] * c;
                fr += ai[r - k] * s, fi += ar[r - k] * s;
            }
            give(j, er - fr, ei + fi);
            give(r - j, er + fr, ei - fi);
        }
    }
}

// One stage of radix 4 of a single line, which has no numbers side by side yet: those of as many p as a vector has lanes.
template <class S> void first_of_a_line(const Stage<S>& s, const S* xr, const S* xi, S* yr, S* yi) {
    using V = Vec<S>;
    const S* turns = s.by_part.data();
    for (int64_t p = 0; p < s.after; p += lanes<S>) {
        V r[4], i[4];
        for (int k = 0; k < 4; ++k) r[k] = load(xr + p + k * s.after), i[k] = load(xi + p + k * s.after);
        four(r, i);
        for (int j = 1; j < 4; ++j) {
            const V c = load(turns + (2 * j - 2) * s.after + p), t = load(turns + (2 * j - 1) * s.after + p), re = r[j];
            r[j] = re * c - i[j] * t, i[j] = re * t + i[j] * c;
        }
        constexpr auto all = std::make_index_sequence<lanes<S>>{};
        const auto woven = [&](V (&v)[4], S* to) {
            V a, b, c, d, out[4];
            zip<S>(v[0], v[2], a, b, all), zip<S>(v[1], v[3], c, d, all);
            zip<S>(a, c, out[0], out[1], all), zip<S>(b, d, out[2], out[3], all);
            for (int k = 0; k < 4; ++k) store(to + 4 * p + k * lanes<S>, out[k]);
        };
        woven(r, yr), woven(i, yi);
    }
}

template <class S> struct Few { typedef S type __attribute__((vector_size(16))); };  // what is short of a whole vector

template <int R, class S> void pass(const Stage<S>& s, const S* xr, const S* xi, S* yr, S* yi, int64_t lines) {
    const int64_t len = s.before * lines, apart = s.after * len;
    if constexpr (R == 4)
        if (len == 1 && s.after % lanes<S> == 0) return first_of_a_line(s, xr, xi, yr, yi);
    const int r = s.radix;
    for (int64_t p = 0; p < s.after; ++p) {
        const S* turns = s.turns.data() + p * 2 * (r - 1);
        const int64_t from = p * len, to = p * r * len;
        int64_t q = 0;
        const auto until = [&](auto kind, int64_t width) {
            for (; q + width <= len; q += width)
                butterfly<R, decltype(kind)>(xr + from + q, xi + from + q, apart, yr + to + q, yi + to + q, len, turns,
                                             s.roots.data(), r);
        };
        until(Vec<S>{}, lanes<S>);
        if constexpr (FW_BYTES > 16) until(typename Few<S>::type{}, 16 / int(sizeof(S)));
        until(S{}, 1);
    }
}

// From real to imaginary parts of n numbers of so many lines: not a power of 2, which the caches take badly.
constexpr int64_t GAP = 48;
int64_t parts(int64_t n, int64_t lines) { return n * lines + GAP; }

// Numbers of a work times one for each place of a line, whose parts are c and s.
template <class S> void turn(int64_t n, int64_t lines, const S* re, const S* im, const S* c, const S* s, S* to_re, S* to_im) {
    const auto one = [&](auto kind, int64_t at, auto x, auto y) {
        using V = decltype(kind);
        const V a = get<V>(re + at), b = get<V>(im + at);
        put(to_re + at, V(a * x - b * y)), put(to_im + at, V(a * y + b * x));
    };
    if (lines > 1) {  // whole vectors
        for (int64_t k = 0; k < n; ++k)
            for (int64_t at = k * lines; at < (k + 1) * lines; at += lanes<S>) one(Vec<S>{}, at, c[k], s[k]);
        return;
    }
    int64_t k = 0;
    for (; k + lanes<S> <= n; k += lanes<S>) one(Vec<S>{}, k, load(c + k), load(s + k));
    for (; k < n; ++k) one(S{}, k, c[k], s[k]);
}

// `transform` by a convolution. The inverse transform is the other one of parts swapped, before and after.
template <class S> S* convolved(const TransformPlan<S>& plan, int64_t n, S* x, S* y, int64_t lines) {
    const int64_t m = plan.longer, size = parts(n, lines), whole = parts(m, lines);
    const S *c = plan.chirp.data(), *s = c + n, *b = plan.spectrum.data();
    turn(n, lines, x, x + size, c, s, y, y + whole);
    std::fill(y + n * lines, y + m * lines, S(0)), std::fill(y + whole + n * lines, y + whole + m * lines, S(0));
    S* z = transform(*plan.inner, m, y, x, lines);
    turn(m, lines, z, z + whole, b, b + m, z + whole, z);
    S *other = z == x ? y : x, *made = transform(*plan.inner, m, z, other, lines), *out = made == x ? y : x;
    turn(n, lines, made + whole, made, c, s, out, out + size);
    return out;
}

// The transform of `lines` lines, number after number ([n][lines], parts apart), in x or in y: which, is returned.
template <class S> S* transform(const TransformPlan<S>& plan, int64_t n, S* x, S* y, int64_t lines) {
    if (plan.longer) return convolved(plan, n, x, y, lines);
    const int64_t size = parts(n, lines);
    for (const auto& s : plan.stages) {
        auto go = s.radix == 4 ? pass<4, S> : s.radix == 2 ? pass<2, S> : s.radix == 3 ? pass<3, S>
                  : s.radix == 5 ? pass<5, S> : pass<0, S>;
        go(s, x, x + size, y, y + size, lines);
        std::swap(x, y);
    }
    return x;
}

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

// Real and imaginary parts of as many complex numbers as a vector has lanes.
template <class S> struct Parts {
    Vec<S> re, im;
};
template <class S> FW_INLINE Parts<S> apart(const char* p) {
    const S* z = reinterpret_cast<const S*>(p);
    const Vec<S> a = load(z), b = load(z + lanes<S>);
    return {evens<S>(a, b), odds<S>(a, b)};
}
template <class S> FW_INLINE void together(char* p, Vec<S> re, Vec<S> im) {
    S* z = reinterpret_cast<S*>(p);
    Vec<S> a, b;
    zip<S>(re, im, a, b, std::make_index_sequence<lanes<S>>{});
    store(z, a), store(z + lanes<S>, b);
}

// Whether lines lie side by side, each number beside the same one of the next line.
template <class S> bool side_by_side(const int64_t* at, int64_t lines) {
    for (int64_t w = 1; w < lines; ++w)
        if (at[w] - at[w - 1] != 2 * int64_t(sizeof(S))) return false;
    return true;
}

// Calls square(line, number) for squares of lanes x lanes numbers, rest(line, number, how many) for those that make none.
template <class S, class F, class G>
FW_INLINE void in_squares(int64_t lines, int64_t count, bool along, F&& square, G&& rest) {
    for (int64_t j = 0; j < count; j += lanes<S>)
        for (int64_t w = 0; w < lines; w += lanes<S>) {
            if (along && j + lanes<S> <= count)
                square(w, j);
            else
                rest(w, j, std::min<int64_t>(lanes<S>, count - j));
        }
}

// Complex numbers, `step` bytes apart, into the work: [number][line]. All of `at` can be read.
template <class S>
void gather(const Side& from, int64_t step, const int64_t* at, int64_t lines, int64_t count, S* re, S* im) {
    constexpr int wide = lanes<S>;
    const auto place = [&](int64_t w, int64_t j) { return from.start + at[w] + j * step; };
    const auto put_at = [&](int64_t w, int64_t j, const Parts<S>& z) {
        store(re + j * lines + w, z.re), store(im + j * lines + w, z.im);
    };
    const bool along = step == 2 * int64_t(sizeof(S));
    if (lines % wide == 0 && side_by_side<S>(at, lines)) {
        for (int64_t j = 0; j < count; ++j)
            for (int64_t w = 0; w < lines; w += wide) put_at(w, j, apart<S>(place(w, j)));
    } else if (lines % wide == 0) {
        in_squares<S>(lines, count, along, [&](int64_t w, int64_t j) {
            Vec<S> r[wide], i[wide];
            for (int k = 0; k < wide; ++k) {
                const Parts<S> z = apart<S>(place(w + k, j));
                r[k] = z.re, i[k] = z.im;
            }
            transpose<S>(r), transpose<S>(i);
            for (int k = 0; k < wide; ++k) put_at(w, j + k, {r[k], i[k]});
        }, [&](int64_t w, int64_t j, int64_t n) {
            S some[wide][2 * wide];  // both parts are copied at once
            for (int k = 0; k < wide; ++k)
                for (int64_t e = 0; e < n; ++e) std::memcpy(&some[e][2 * k], place(w + k, j + e), 2 * sizeof(S));
            for (int64_t e = 0; e < n; ++e) put_at(w, j + e, apart<S>(reinterpret_cast<const char*>(some[e])));
        });
    } else {
        int64_t j = 0;
        if (lines == 1 && along)
            for (; j + wide <= count; j += wide) put_at(0, j, apart<S>(place(0, j)));
        for (; j < count; ++j)
            for (int64_t w = 0; w < lines; ++w) {
                const S* z = reinterpret_cast<const S*>(place(w, j));
                re[j * lines + w] = z[0], im[j * lines + w] = z[1];
            }
    }
}

// The other way, the first `used` lines times a factor.
template <class S>
void scatter(const Side& to, int64_t step, const int64_t* at, int64_t lines, int64_t used, int64_t count, const S* re,
             const S* im, S factor) {
    constexpr int wide = lanes<S>;
    const Vec<S> times = splat(factor);
    const auto place = [&](int64_t w, int64_t j) { return to.start + at[w] + j * step; };
    const auto at_work = [&](int64_t w, int64_t j) {
        return Parts<S>{load(re + j * lines + w) * times, load(im + j * lines + w) * times};
    };
    const bool along = step == 2 * int64_t(sizeof(S));
    if (lines == used && lines % wide == 0 && side_by_side<S>(at, lines)) {
        for (int64_t j = 0; j < count; ++j)
            for (int64_t w = 0; w < lines; w += wide) {
                const Parts<S> z = at_work(w, j);
                together<S>(place(w, j), z.re, z.im);
            }
    } else if (lines % wide == 0) {
        in_squares<S>((used + wide - 1) / wide * wide, count, along && used % wide == 0, [&](int64_t w, int64_t j) {
            Vec<S> r[wide], i[wide];
            for (int k = 0; k < wide; ++k) {
                const Parts<S> z = at_work(w, j + k);
                r[k] = z.re, i[k] = z.im;
            }
            transpose<S>(r), transpose<S>(i);
            for (int k = 0; k < wide; ++k) together<S>(place(w + k, j), r[k], i[k]);
        }, [&](int64_t w, int64_t j, int64_t n) {
            S some[wide][2 * wide];
            for (int64_t e = 0; e < n; ++e) {
                const Parts<S> z = at_work(w, j + e);
                together<S>(reinterpret_cast<char*>(some[e]), z.re, z.im);
            }
            for (int64_t k = 0; k < std::min<int64_t>(wide, used - w); ++k)
                for (int64_t e = 0; e < n; ++e) std::memcpy(place(w + k, j + e), &some[e][2 * k], 2 * sizeof(S));
        });
    } else {
        int64_t j = 0;
        if (lines == 1 && along)
            for (; j + wide <= count; j += wide) {
                const Parts<S> z = at_work(0, j);
                together<S>(place(0, j), z.re, z.im);
            }
        for (; j < count; ++j)
            for (int64_t w = 0; w < used; ++w) {
                S* z = reinterpret_cast<S*>(place(w, j));
                z[0] = re[j * lines + w] * factor, z[1] = im[j * lines + w] * factor;
            }
    }
}

// Real numbers into the work, as the real parts.
template <class S>
void gather_real(const Side& from, const int64_t* at, int64_t lines, int64_t count, S* re, S* im) {
    const auto place = [&](int64_t w, int64_t j) { return reinterpret_cast<const S*>(from.start + at[w] + j * from.step); };
    std::fill(im, im + count * lines, S(0));
    if (lines % lanes<S> != 0 || from.step != int64_t(sizeof(S)))
        return each(from, at, lines, count, [&](int64_t w, int64_t j) { re[j * lines + w] = *place(w, j); });
    in_squares<S>(lines, count, true, [&](int64_t w, int64_t j) {
        Vec<S> q[lanes<S>];
        for (int k = 0; k < lanes<S>; ++k) q[k] = load(place(w + k, j));
        transpose<S>(q);
        for (int k = 0; k < lanes<S>; ++k) store(re + (j + k) * lines + w, q[k]);
    }, [&](int64_t w, int64_t j, int64_t n) {
        for (int k = 0; k < lanes<S>; ++k)
            for (int64_t e = 0; e < n; ++e) re[(j + e) * lines + w + k] = *place(w + k, j + e);
    });
}

// A real line of even size as a complex one of half the size: its even numbers are the real parts.
template <class S> void gather_pairs(const TransformJob& job, const int64_t* at, int64_t lines, S* re, S* im) {
    const int64_t step = job.from.step;
    if (step == int64_t(sizeof(S))) return gather(job.from, 2 * step, at, lines, job.n / 2, re, im);
    each(job.from, at, lines, job.n / 2, [&](int64_t w, int64_t j) {
        const char* p = job.from.start + at[w] + 2 * j * step;
        re[j * lines + w] = *reinterpret_cast<const S*>(p);
        im[j * lines + w] = *reinterpret_cast<const S*>(p + step);
    });
}

// Calls body(zero of a kind, place, place opposite, c, s) for numbers k and their opposite, h - k, of the work and for
// exp(-2 pi i k / 2h): as many lines as a vector has lanes, or one.
template <class S, class F>
FW_INLINE void opposite(const TransformPlan<S>& plan, int64_t h, int64_t lines, int64_t end, F&& body) {
    for (int64_t k = 0; k < end; ++k) {
        const S c = plan.half[2 * k], s = plan.half[2 * k + 1];
        const int64_t a = k * lines, b = (h - k) * lines;
        if (lines % lanes<S> == 0)
            for (int64_t w = 0; w < lines; w += lanes<S>) body(Vec<S>{}, k, a + w, b + w, c, s);
        else
            for (int64_t w = 0; w < lines; ++w) body(S{}, k, a + w, b + w, c, s);
    }
}

// z, the transform of pairs, becomes the first half of the transform of the real line (h + 1 numbers).
template <class S> void join_halves(const TransformPlan<S>& plan, int64_t h, int64_t lines, const S* z, S* out) {
    const int64_t size = parts(h, lines), whole = parts(h + 1, lines), round = h * lines;
    opposite(plan, h, lines, h + 1, [&](auto kind, int64_t k, int64_t a, int64_t b, S c, S s) {
        using V = decltype(kind);
        const S *p = z + (k == h ? a - round : a), *q = z + (k == 0 ? b - round : b);
        const V ar = get<V>(p), ai = get<V>(p + size), br = get<V>(q), bi = get<V>(q + size);
        const V er = (ar + br) * S(0.5), ei = (ai - bi) * S(0.5), dr = (ai + bi) * S(0.5), di = (br - ar) * S(0.5);
        put(out + a, V(er + (dr * c - di * s)));
        put(out + a + whole, V(ei + (dr * s + di * c)));
    });
}

// The other way: h + 1 numbers become the h whose inverse transform is the line, in pairs.
template <class S> void part_halves(const TransformPlan<S>& plan, int64_t h, int64_t lines, const S* x, S* z) {
    const int64_t size = parts(h, lines), whole = parts(h + 1, lines);
    opposite(plan, h, lines, h, [&](auto kind, int64_t k, int64_t a, int64_t b, S c, S s) {
        using V = decltype(kind);
        const S ends = k == 0 ? S(0) : S(1);  // the first number and the middle one are real
        const V ar = get<V>(x + a), ai = get<V>(x + a + whole) * ends, br = get<V>(x + b), bi = get<V>(x + b + whole) * ends;
        const V er = ar + br, ei = ai - bi, dr = ar - br, di = ai + bi;
        put(z + a, V(er - (di * c - dr * s)));
        put(z + a + size, V(ei + (dr * c + di * s)));
    });
}

template <class S> void one_block(const TransformJob& job, const TransformPlan<S>& plan, const int64_t* from, const int64_t* to,
                                  int64_t lines, int64_t used, S* x, S* y) {
    const int64_t n = job.n, h = n / 2, size = parts(n, lines);
    const int64_t pairs = parts(h, lines), half = parts(h + 1, lines);
    const bool even = n % 2 == 0;
    const S f = S(job.factor);
    if (job.kind == TransformKind::forward_real && even) {
        gather_pairs<S>(job, from, lines, x, x + pairs);
        S* z = transform(plan, h, x, y, lines);
        S* out = z == x ? y : x;
        join_halves(plan, h, lines, z, out);
        scatter(job.to, job.to.step, to, lines, used, h + 1, out, out + half, f);
        return;
    }
    if (job.kind == TransformKind::backward_real) {
        S* z;
        if (even) {
            gather(job.from, job.from.step, from, lines, h + 1, x, x + half);
            part_halves(plan, h, lines, x, y);
            std::swap_ranges(y, y + h * lines, y + pairs);  // the inverse: parts swapped, before and after
            z = transform(plan, h, y, x, lines);
        } else {
            gather(job.from, job.from.step, from, lines, h + 1, x, x + size);
            std::fill(x + size, x + size + lines, S(0));
            for (int64_t k = 1; k <= h; ++k)
                for (int64_t w = 0; w < lines; ++w) {
                    x[(n - k) * lines + w] = x[k * lines + w];
                    x[(n - k) * lines + w + size] = -x[k * lines + w + size];
                }
            std::swap_ranges(x, x + n * lines, x + size);
            z = transform(plan, n, x, y, lines);
        }
        const S *re = z + (even ? pairs : size), *im = z;
        if (even && job.to.step == int64_t(sizeof(S)))
            return scatter(job.to, 2 * job.to.step, to, lines, used, h, re, im, f);
        const int64_t part = even ? job.to.step : 0;  // how far the imaginary parts are, which are numbers of their own
        each(job.to, to, used, even ? h : n, [&](int64_t w, int64_t j) {
            char* p = job.to.start + to[w] + j * (job.to.step + part);
            *reinterpret_cast<S*>(p) = re[j * lines + w] * f;
            if (part) *reinterpret_cast<S*>(p + part) = im[j * lines + w] * f;
        });
        return;
    }
    S *re = x, *im = x + size;
    if (job.inverse) std::swap(re, im);
    if (job.real_input)
        gather_real(job.from, from, lines, n, re, im);
    else
        gather(job.from, job.from.step, from, lines, n, re, im);
    S* z = transform(plan, n, x, y, lines);
    re = z, im = z + size;
    if (job.inverse) std::swap(re, im);
    scatter(job.to, job.to.step, to, lines, used, job.kind == TransformKind::forward_real ? h + 1 : n, re, im, f);
}

}  // namespace

template <class S> void run(const TransformJob& job) {
    if (short_lines<S>(job)) return;
    int64_t count = 1;
    for (int64_t s : job.shape) count *= s;
    const bool halved = job.kind != TransformKind::complex && job.n % 2 == 0;
    // short lines: some vectors of them at once; long ones, which fill the caches, one after the other
    const int64_t wide = lanes<S> * std::clamp<int64_t>(512 / (job.n * lanes<S>), 1, MOST_LINES / lanes<S>);
    const bool alone = count * 3 < lanes<S> || job.n > LONGEST / lanes<S>;
    const auto plan = plan_of<S>(halved ? job.n / 2 : job.n, alone);
    const int64_t numbers = plan->work(job.n + 2);
    const int64_t lines = alone ? 1 : count < wide ? lanes<S> : wide, blocks = (count + lines - 1) / lines;
    parallel(blocks, 1 + 2048 / (job.n * lines), [&](int64_t begin, int64_t end) {
        const int64_t room = 2 * parts(numbers, lines) + GAP;
        Borrowed memory(2 * room, sizeof(S));
        S* x = static_cast<S*>(memory.start);
        int64_t from[MOST_LINES], to[MOST_LINES], index[MOST_DIMS] = {}, here = 0, there = 0;
        const int dims = int(job.shape.size());
        int64_t at = begin * lines;
        for (int d = dims; d-- > 0; at /= job.shape[d]) {
            index[d] = at % job.shape[d];
            here += index[d] * job.from.strides[d], there += index[d] * job.to.strides[d];
        }
        for (int64_t b = begin; b < end; ++b) {
            const int64_t used = std::min(lines, count - b * lines);
            for (int64_t w = 0; w < used;) {
                const int64_t run = dims ? std::min(used - w, job.shape[dims - 1] - index[dims - 1]) : 1;
                const int64_t one = dims ? job.from.strides[dims - 1] : 0, other = dims ? job.to.strides[dims - 1] : 0;
                for (int64_t i = 0; i < run; ++i) from[w + i] = here + i * one, to[w + i] = there + i * other;
                w += run;
                int64_t more = run;
                for (int d = dims - 1; d >= 0; --d, more = 1) {
                    here += more * job.from.strides[d], there += more * job.to.strides[d];
                    if ((index[d] += more) < job.shape[d]) break;
                    here -= job.shape[d] * job.from.strides[d], there -= job.shape[d] * job.to.strides[d];
                    index[d] = 0;
                }
            }
            for (int64_t w = used; w < lines; ++w) from[w] = from[0], to[w] = to[0];
            one_block<S>(job, *plan, from, to, lines, used, x, x + room);
        }
    });
}

bool is_quick(int64_t n) { return n <= MOST_CONVOLVED || !radices_of(n).empty(); }

template void run<float>(const TransformJob&);
template void run<double>(const TransformJob&);

namespace {

// Dimensions that lie like one, on both sides, become one.
void merge(TransformJob& job) {
    for (size_t d = job.shape.size(); d-- > 1;) {
        const auto whole = [&](const Side& s) { return s.strides[d - 1] == job.shape[d] * s.strides[d]; };
        if (!whole(job.from) || !whole(job.to)) continue;
        job.shape[d - 1] *= job.shape[d];
        job.shape.erase(job.shape.begin() + d);
        for (Side* s : {&job.from, &job.to}) s->strides.erase(s->strides.begin() + d - 1);
    }
}

Side side(const View& a, int dim) {
    Side s{a.data<char>(), a.stride(dim), {}};
    for (int d = 0; d < a.ndim(); ++d)
        if (d != dim) s.strides.push_back(a.stride(d));
    return s;
}

}  // namespace

std::vector<TransformJob> Transform::jobs(const View& x, const View& between, const View& result) const {
    const bool there = kind == TransformKind::forward_real, back = kind == TransformKind::backward_real;
    const size_t count = dims.size();
    std::vector<TransformJob> all;
    all.reserve(count);
    const View* source = &x;
    for (size_t i = 0; i < count; ++i) {
        const int d = int(dims[there ? count - 1 - i : i]);  // the halved one comes first on the way there, last on the way back
        const bool first = i == 0, last = i + 1 == count, halved = (there && first) || (back && last);
        const View& target = last ? result : between;
        TransformJob job{halved ? kind : TransformKind::complex, inverse, first && real_input, halved ? size : x.shape(d), {},
                         side(*source, d), side(target, d), last ? factor : 1.0};
        for (int e = 0; e < x.ndim(); ++e)
            if (e != d) job.shape.push_back(target.shape(e));
        merge(job);
        all.push_back(std::move(job));
        source = &target;
    }
    return all;
}

}  // namespace fw::fourier
