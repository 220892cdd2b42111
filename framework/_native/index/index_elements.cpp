// Single elements by their positions along one dimension: gather, scatter, and scattering that combines.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "base/pool_internal.h"
#include "base/vecmath_core.h"
#include "index/index.h"

namespace fw::moving {
namespace {

constexpr int64_t LINE = 64;
constexpr int64_t CHUNK = 256;  // positions that are read and checked at once
constexpr int64_t SHORT = 16;   // positions of a line up to which lines are gone along together
constexpr int64_t LONG = 4096 * CHUNK;  // pairs between two questions whether to go on: one line may be all that there is

}  // namespace

Elements::Elements(const View& index, int ndim, const int64_t* far_shape, const int64_t* far_strides,
                   const int64_t* near_strides, int64_t dim, int bytes, bool shared) {
    Elements& p = *this;
    if (index.type() != Type::int64 || index.ndim() != ndim || ndim < 1 || ndim > MOST_INDEX_DIMS || dim < 0 || dim >= ndim || !index.size()) return;
    for (int d = 0; d < ndim; ++d)
        if (d != dim && index.shape(d) > far_shape[d]) return;
    p.index = index.data<const char>();
    // dimensions on one side of dim that follow one another in all three arrays are one
    int64_t shape[MOST_INDEX_DIMS], own[MOST_INDEX_DIMS], near[MOST_INDEX_DIMS], far[MOST_INDEX_DIMS];
    int dims = 0, k = -1;
    for (int d = 0; d < ndim; ++d) {
        const int64_t size = index.shape(d);
        if (size == 1 && d != dim) continue;
        const int to = dims - 1;
        if (d != dim && to >= 0 && to != k && own[to] == size * index.stride(d) && near[to] == size * near_strides[d] &&
            far[to] == size * far_strides[d]) {
            shape[to] *= size, own[to] = index.stride(d), near[to] = near_strides[d], far[to] = far_strides[d];
            continue;
        }
        if (d == dim) k = dims;
        shape[dims] = size, own[dims] = index.stride(d), near[dims] = near_strides[d], far[dims++] = far_strides[d];
    }
    const int last = dims - 1;
    for (int d = 0; d < last; ++d) {
        if (d == k) continue;
        p.far_outer[p.outer.ndim] = far[d];
        p.outer.add(shape[d], own[d], near[d]);
    }
    p.n = far_shape[dim], p.width = p.band = shape[last];
    p.index_next = own[last], p.near_next = near[last], p.far_jump = far[k], p.single = shape[k] == 1;
    if (k != last) {
        p.steps = shape[k], p.index_step = own[k], p.near_step = near[k];
        p.far_next = far[last];
        if (shared && p.units() < threads()) {  // threads get columns of their own, and do not meet in a cache line
            int64_t line = LINE / bytes, most = (p.width + line - 1) / line;
            p.band = std::min(p.width, (most + threads() - 1) / threads() * line);
            p.bands = (p.width + p.band - 1) / p.band;
        }
    }
    p.good = true;
}

namespace {

// Where a unit begins: offsets in index, near and far; and how many columns it has.
struct ElementLine {
    const Elements& p;
    Walk outer;
    int64_t unit, index = 0, near = 0, far = 0, width = 0;

    ElementLine(const Elements& plan, int64_t u) : p(plan), outer(plan.outer, plan.outer.ndim, u / plan.bands), unit(u) { set(); }
    void next() {
        if (++unit % p.bands == 0) outer.next();
        set();
    }

private:
    void set() {
        int64_t first = p.bands == 1 ? 0 : unit % p.bands * p.band;
        width = std::min(p.band, p.width - first);
        index = outer.from + first * p.index_next;
        near = outer.to + first * p.near_next;
        far = first * p.far_next;
        for (int d = 0; d < outer.dims; ++d) far += outer.at[d] * p.far_outer[d];
    }
};

template <class T> FW_INLINE T& at(char* p, int64_t offset) { return *reinterpret_cast<T*>(p + offset); }
template <class T> FW_INLINE const T& at(const char* p, int64_t offset) {
    return *reinterpret_cast<const T*>(p + offset);
}

// Positions become offsets: k jumps of so many bytes, those of -n to n - 1.
struct Jumps {
    using V = Vec<int64_t>;
    const int64_t n, jump;
    const bool narrow;  // whether both are numbers of 32 bits, which are multiplied in a third of the time

    explicit Jumps(const Elements& p)
        : n(p.n), jump(p.far_jump), narrow(p.n <= UINT32_MAX && p.far_jump >= 0 && p.far_jump <= UINT32_MAX) {}
    // `bad` notes what is out of range; of that the offset is 0.
    FW_INLINE V of(V k, V& bad) const {
        k += (k < 0) & splat(n);
        const V there = (k >= 0) & (k < splat(n));
        bad |= ~there;
        k &= there;
#if defined(FW_AVX512)
        if (narrow) return V(_mm512_mul_epu32(__m512i(k), __m512i(splat(jump))));
#elif defined(FW_AVX2)
        if (narrow) return V(_mm256_mul_epu32(__m256i(k), __m256i(splat(jump))));
#endif
        return k * splat(jump);
    }
    FW_INLINE int64_t of(int64_t k, bool& wrong) const {
        k += k < 0 ? n : 0;
        if (uint64_t(k) < uint64_t(n)) return k * jump;
        wrong = true;
        return 0;
    }
};

// The offsets of `width` positions in the far array, those of further columns `next` apart; false if one is out of range.
bool read_offsets(const Jumps& jumps, const char* index, int64_t step, int64_t next, int64_t width, int64_t* offsets) {
    bool wrong = false;
    int64_t j = 0;
    if (step == 8) {
        using V = Vec<int64_t>;
        constexpr int L = lanes<int64_t>;
        V column{}, bad{};
        for (int i = 0; next && i < L; ++i) column[i] = i * next;
#pragma GCC unroll 4
        for (; j + L <= width; j += L, column += L * next)
            store(offsets + j, jumps.of(load(reinterpret_cast<const int64_t*>(index) + j), bad) + column);
        wrong = math::any(bad);
    }
    if (step == 0 && width) {  // one position throughout
        const int64_t first = jumps.of(once(reinterpret_cast<const int64_t*>(index)), wrong);
        for (; j < width; ++j) offsets[j] = first + j * next;
    }
    for (; j < width; ++j) offsets[j] = jumps.of(once(reinterpret_cast<const int64_t*>(index + j * step)), wrong) + j * next;
    return !wrong;
}

// Calls f(near offset, bytes between its elements, far offset, offsets from there, how many) for pairs of some steps of a unit;
// false if a position is out of range.
template <class F>
bool each_of_unit(const Elements& p, const Jumps& jumps, const ElementLine& l, int64_t from_step, int64_t to_step, F&& f) {
    int64_t offsets[CHUNK];
    for (int64_t s = from_step; s < to_step; ++s) {
        for (int64_t c = 0; c < l.width; c += CHUNK) {
            const int64_t m = std::min(CHUNK, l.width - c);
            if (c % LONG == LONG - CHUNK) listen();
            if (!read_offsets(jumps, p.index + l.index + s * p.index_step + c * p.index_next, p.index_next, p.far_next, m, offsets))
                return false;
            f(l.near + s * p.near_step + c * p.near_next, p.near_next, l.far + c * p.far_next, offsets, m);
        }
    }
    return true;
}

// `count` positions, and their elements in the near array, one after the other. What follows from the place of one among
// `period` of them is in `base`; then they begin `further` on in the far array.
struct Run {
    const char* index;
    int64_t count, period, near, next, far, further;  // next: bytes between elements of the near array, none where it is one number
    int64_t base[CHUNK];
};

template <class F> bool each_of_run(const Jumps& jumps, const Run& r, F&& f) {
    constexpr int L = lanes<int64_t>;
    int64_t offsets[CHUNK];
    for (int64_t done = 0, far = r.far; done < r.count; done += r.period, far += r.further) {
        const int64_t m = std::min(r.period, r.count - done);
        const int64_t* index = reinterpret_cast<const int64_t*>(r.index) + done;
        if (done / LONG != (done + r.period) / LONG) listen();
        Vec<int64_t> bad{};
        int64_t j = 0;
#pragma GCC unroll 4
        for (; j + L <= m; j += L) store(offsets + j, jumps.of(load(index + j), bad) + load(r.base + j));
        bool wrong = math::any(bad);
        for (; j < m; ++j) offsets[j] = jumps.of(once(index + j), wrong) + r.base[j];
        if (wrong) return false;
        f(r.near + done * r.next, r.next, far, offsets, m);
    }
    return true;
}

// Whether units are short and follow one another in the index and the near array (or that is one number), and at even distances in the
// far one.
template <int64_t B> bool are_short_units(const Elements& p) {
    const int64_t size = p.steps * p.width, next = p.near_next;
    if (p.bands != 1 || size > CHUNK / 2 || !p.outer.ndim || p.index_next != 8 || (next && next != B)) return false;
    if (p.steps > 1 && (p.index_step != p.width * 8 || p.near_step != p.width * next)) return false;
    int64_t units = 1;
    for (int d = p.outer.ndim; d-- > 0; units *= p.outer.shape[d])
        if (p.outer.from[d] != units * size * 8 || p.outer.to[d] != units * size * next ||
            p.far_outer[d] != units * p.far_outer[p.outer.ndim - 1])
            return false;
    return true;
}

// Whether a unit's steps are short and follow one another in the index and the near array.
template <int64_t B> bool are_short_steps(const Elements& p) {
    return p.steps > 1 && p.bands == 1 && p.width <= CHUNK / 2 && p.index_next == 8 && p.index_step == p.width * 8 &&
           (!p.near_next || p.near_next == B) && p.near_step == p.width * p.near_next;
}

// Whole units and parts of them, but for short ones: `begin` and `end` count steps. f as above.
template <int64_t B, class F> bool each_pair(const Elements& p, int64_t begin, int64_t end, F&& f) {
    const Jumps jumps(p);
    Run run;
    run.next = p.near_next;
    if (are_short_units<B>(p)) {
        const int64_t size = p.steps * p.width, together = CHUNK / size, unit = begin / p.steps, apart = p.far_outer[p.outer.ndim - 1];
        run.index = p.index + unit * size * 8, run.count = (end - begin) * p.width, run.period = together * size;
        run.near = unit * size * run.next, run.far = unit * apart, run.further = together * apart;
        for (int64_t j = 0; j < std::min(run.period, run.count); ++j) run.base[j] = j / size * apart + j % p.width * p.far_next;
        return each_of_run(jumps, run, f);
    }
    run.period = CHUNK / p.width * p.width;
    const bool short_steps = are_short_steps<B>(p);
    for (int64_t j = 0; short_steps && j < run.period; ++j) run.base[j] = j % p.width * p.far_next;
    int64_t step = begin % p.steps;
    for (ElementLine l(p, begin / p.steps);; l.next()) {
        const int64_t stop = std::min(p.steps, step + end - begin);
        if (short_steps) {
            run.index = p.index + l.index + step * p.index_step, run.count = (stop - step) * p.width;
            run.near = l.near + step * p.near_step, run.far = l.far, run.further = 0;
            if (!each_of_run(jumps, run, f)) return false;
        } else if (!each_of_unit(p, jumps, l, step, stop, f)) {
            return false;
        }
        begin += stop - step, step = 0;
        if (begin == end) return true;
    }
}

// -- gather ---------------------------------------------------------------------------------------

// Whether positions vary along lines that are long and whose elements lie side by side in all three arrays. One step along
// another dimension looks the same, but that its columns lie apart in the far array.
template <class T> bool are_dense_lines(const Elements& p) {
    constexpr int64_t B = sizeof(T);
    return p.steps == 1 && p.bands == 1 && p.index_next == 8 && p.near_next == B && p.far_jump == B && !p.far_next && p.width > SHORT;
}

// Of such lines pair(near, far) for all; each position is read once, and checked then. False if one is out of range, in
// whose stead the first one was taken.
template <class Near, class Far, class F>
bool each_in_lines(const Elements& p, int64_t begin, int64_t end, const char* near, const char* far, F&& pair) {
    bool good = true;
    for (ElementLine l(p, begin); begin < end; ++begin, l.next()) {
        const auto* index = reinterpret_cast<const int64_t*>(p.index + l.index);
        auto* beside = reinterpret_cast<Near*>(const_cast<char*>(near) + l.near);
        auto* line = reinterpret_cast<Far*>(const_cast<char*>(far) + l.far);
        for (int64_t c = 0; c < l.width; c += LONG) {
            if (c) listen();
            const int64_t stop = std::min(l.width, c + LONG), n = p.n;
#pragma GCC unroll 8
            for (int64_t j = c; j < stop; ++j) {
                int64_t k = once(index + j);
                if (__builtin_expect(uint64_t(k) >= uint64_t(n), 0)) {
                    k += k < 0 ? n : 0;
                    if (uint64_t(k) >= uint64_t(n)) good = false, k = 0;
                }
                pair(beside[j], line[k]);
            }
        }
    }
    return good;
}

template <class T> bool gather_all(const Elements& p, const char* x, char* out) {
    std::atomic<bool> bad{false};
    if (are_dense_lines<T>(p)) {
        parallel(p.units(), grain_of(p.width * int64_t(sizeof(T))), [&](int64_t begin, int64_t end) {
            const auto take = [](T& to, const T& from) { to = from; };
            if (!each_in_lines<T, const T>(p, begin, end, out, x, take)) bad = true;
        });
        return !bad;
    }
    const int64_t steps = are_short_units<sizeof(T)>(p) ? p.steps : 1;  // that stay together
    parallel(p.units() * p.steps / steps, grain_of(steps * p.band * int64_t(sizeof(T))), [&](int64_t begin, int64_t end) {
        const auto some = [=](int64_t near, int64_t next, int64_t far, const int64_t* offsets, int64_t m) {
            char* to = out + near;
            const char* from = x + far;
            if (next == sizeof(T))
#pragma GCC unroll 8
                for (int64_t j = 0; j < m; ++j) at<T>(to, j * int64_t(sizeof(T))) = at<T>(from, offsets[j]);
            else
                for (int64_t j = 0; j < m; ++j) at<T>(to, j * next) = at<T>(from, offsets[j]);
        };
        if (!each_pair<sizeof(T)>(p, begin * steps, end * steps, some)) bad = true;
    });
    return !bad;
}

}  // namespace

bool gather(const Elements& p, int bytes, const char* x, char* out) {
    bool good = false;
    by_bytes(bytes, [&](auto t) { good = gather_all<decltype(t)>(p, x, out); });
    return good;
}

namespace {

// Puts src (strides in the plan) into `out`: combine(place, value). Each place belongs to one unit, and the
// steps of a unit are taken in order, so the result does not depend on the threads.
template <class T, class C> bool scatter_all(const Elements& p, const char* src, char* out, C&& combine) {
    constexpr int64_t B = sizeof(T);
    std::atomic<bool> bad{false};
    parallel(p.units(), grain_of(p.unit_bytes(B)), [&](int64_t begin, int64_t end) {
        const auto some = [=](int64_t near, int64_t next, int64_t far, const int64_t* offsets, int64_t m) {
            const char* from = src + near;
            char* to = out + far;
            if (next == B)
#pragma GCC unroll 8
                for (int64_t j = 0; j < m; ++j) combine(at<T>(to, offsets[j]), at<T>(from, j * B));
            else
                for (int64_t j = 0; j < m; ++j) combine(at<T>(to, offsets[j]), at<T>(from, j * next));
        };
        const auto put = [=](const T& from, T& to) { combine(to, from); };
        const bool good = are_dense_lines<T>(p)
            ? each_in_lines<const T, T>(p, begin, end, src, out, put)
            : each_pair<B>(p, begin * p.steps, end * p.steps, some);
        if (!good) bad = true;
    });
    return !bad;
}

template <class C> bool combined(Type type, const Elements& p, const char* src, char* out, C&& combine) {
    bool good = false;
    return by_number(type, [&](auto t) {
        using T = decltype(t);
        good = scatter_all<T>(p, src, out, [=](T& place, T value) { combine(place, value); });
    }) && good;
}

}  // namespace

bool scatter(const Elements& p, int bytes, const char* src, char* out) {
    bool good = false;
    by_bytes(bytes, [&](auto t) {
        using T = decltype(t);
        good = scatter_all<T>(p, src, out, [](T& place, T value) { place = value; });
    });
    return good;
}

bool scatter(Combine how, Type type, const Elements& p, const char* src, char* out) {
    switch (how) {
        case Combine::sum:
            return combined(type, p, src, out, [](auto& place, auto value) { place = sum_of(place, value); });
        case Combine::product:
            return combined(type, p, src, out, [](auto& place, auto value) {
                using T = std::decay_t<decltype(place)>;
                if constexpr (std::is_integral<T>::value) {
                    using U = std::make_unsigned_t<T>;  // integers wrap around
                    place = T(U(place) * U(value));
                } else {
                    place *= value;
                }
            });
        default:
            return combined(type, p, src, out, [largest = how == Combine::largest](auto& place, auto value) {
                bool better = largest ? value > place : value < place;
                if (better || value != value) place = place != place ? place : value;  // nan stays
            });
    }
}

namespace {

// Of places that may be named twice. Each element leaves its number at its place and keeps what it found there: what was there before all,
// or the number of the one that came there before, whose sum it goes on with. The last one of a place writes last.
template <class T> bool add_few(const Elements& p, const char* near, char* far) {
    using Number = Int<T>;
    const int64_t most = p.units() * p.steps * std::min(p.band, p.width);
    if (most > int64_t(std::numeric_limits<Number>::max())) return false;
    int64_t* places = scratch<int64_t>(0, most);
    T *sums = scratch<T>(1, most), *found = scratch<T>(2, most);
    int64_t n = 0;
    const auto take = [&](int64_t from, int64_t next, int64_t line, const int64_t* offsets, int64_t m) {
        if (next == sizeof(T)) std::copy_n(&at<T>(near, from), m, sums + n);
        else for (int64_t j = 0; j < m; ++j) sums[n + j] = at<T>(near + from, j * next);
        for (int64_t j = 0; j < m; ++j) places[n + j] = line + offsets[j];
        for (int64_t j = 0; j < m; ++j, ++n) {
            T& place = at<T>(far + line, offsets[j]);
            found[n] = place, place = bits<T>(Number(n));
        }
    };
    if (!each_pair<sizeof(T)>(p, 0, p.units() * p.steps, take)) {
        while (n--) at<T>(far, places[n]) = found[n];
        return false;
    }
    for (int64_t i = 0; i < n; ++i) {
        const int64_t before = int64_t(bits<Number>(found[i]));
        if (uint64_t(before) < uint64_t(i) && places[before] == places[i]) sums[i] = sum_of(sums[before], sums[i]), found[i] = found[before];
        else sums[i] = sum_of(T(0), sums[i]);
        at<T>(far, places[i]) = with_sum(found[i], sums[i]);
    }
    return true;
}

}  // namespace

bool add_few(Type type, const Elements& p, const char* near, char* far) {
    if (p.single) return combined(type, p, near, far, [](auto& place, auto value) { place = with_sum(place, value); });
    switch (type) {
        case Type::float32: return add_few<float>(p, near, far);
        case Type::float64: return add_few<double>(p, near, far);
        case Type::int64: return add_few<int64_t>(p, near, far);
        case Type::int32: return add_few<int32_t>(p, near, far);
        default: return false;
    }
}

bool one_hot(const int64_t* classes, int64_t n, int64_t count, int64_t* to) {
    std::atomic<bool> bad{false};
    parallel(n, grain_of(count * 8), [&](int64_t begin, int64_t end) {
        memset(to + begin * count, 0, size_t((end - begin) * count) * 8);
        for (int64_t i = begin; i < end; ++i) {
            const int64_t k = once(classes + i);
            if (uint64_t(k) < uint64_t(count))
                to[i * count + k] = 1;
            else
                bad = true;
        }
    });
    return !bad;
}

}  // namespace fw::moving
