// Single elements by their positions along one dimension: gather, scatter, and scattering that combines.
#include <algorithm>
#include <atomic>

#include "base/pool_internal.h"
#include "index/index.h"

namespace fw::moving {
namespace {

constexpr int64_t LINE = 64;
constexpr int64_t CHUNK = 256;  // positions that are read and checked at once
constexpr int64_t LONG = 4096 * CHUNK;  // pairs between two questions whether to go on: one line may be all that there is

}  // namespace

Elements::Elements(const View& index, int ndim, const int64_t* far_shape, const int64_t* far_strides,
                   const int64_t* near_strides, int64_t dim, int bytes, bool shared) {
    Elements& p = *this;
    if (index.type() != Type::int64 || index.ndim() != ndim || ndim < 1 || ndim > MOST_INDEX_DIMS || dim < 0 || dim >= ndim || !index.size()) return;
    for (int d = 0; d < ndim; ++d)
        if (d != dim && index.shape(d) > far_shape[d]) return;
    int last = ndim - 1, k = int(dim);
    p.index = index.data<const char>();
    for (int d = 0; d < last; ++d) {
        if (d == k) continue;
        p.far_outer[p.outer.ndim] = far_strides[d];
        p.outer.add(index.shape(d), index.stride(d), near_strides[d]);
    }
    p.n = far_shape[k], p.width = p.band = index.shape(last);
    p.index_next = index.stride(last), p.near_next = near_strides[last], p.far_jump = far_strides[k];
    if (k != last) {
        p.steps = index.shape(k), p.index_step = index.stride(k), p.near_step = near_strides[k];
        p.far_next = far_strides[last];
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

// The offsets of `width` positions in the far array, those of further columns `far_next` apart; false if one is
// out of range. Last: dim is the last dimension, and they are elements instead of bytes.
template <bool Last> FW_INLINE bool read_offsets(const Elements& p, const char* index, int64_t width, int64_t* offsets) {
    bool wrong = false;
    int64_t n = p.n, step = p.index_next, jump = p.far_jump, next = p.far_next;
    int64_t j = 0;
    if (step == 8) {
        using V = Vec<int64_t>;
        constexpr int L = lanes<int64_t>;
        V column{}, bad{}, size = splat(n), by = splat(jump);
        for (int i = 0; i < L; ++i) column[i] = i * next;
        for (; j + L <= width; j += L, column += L * next) {
            V k = load(reinterpret_cast<const int64_t*>(index) + j);
            k += (k < 0) & size;
            const V there = (k >= 0) & (k < size);
            bad |= ~there;
            k &= there;  // a wrong one may be too large to be multiplied
            store(offsets + j, Last ? k : k * by + column);
        }
        for (int i = 0; i < L; ++i) wrong |= bad[i] != 0;
    }
    for (; j < width; ++j) {
        int64_t k = *reinterpret_cast<const int64_t*>(index + j * step);
        k += k < 0 ? n : 0;
        wrong |= uint64_t(k) >= uint64_t(n);
        offsets[j] = Last ? k : int64_t(uint64_t(k) * uint64_t(jump) + uint64_t(j * next));  // k may be wrong
    }
    return !wrong;
}

template <class T> FW_INLINE T& at(char* p, int64_t offset) { return *reinterpret_cast<T*>(p + offset); }
template <class T> FW_INLINE const T& at(const char* p, int64_t offset) {
    return *reinterpret_cast<const T*>(p + offset);
}

// Calls f(near offset, far offset) for each pair of some steps of a unit; false if a position is out of range.
template <int64_t B, bool Last, class F>
bool each_pair(const Elements& p, const ElementLine& l, int64_t from_step, int64_t to_step, F&& f) {
    int64_t offsets[CHUNK];
    for (int64_t s = from_step; s < to_step; ++s) {
        for (int64_t c = 0; c < l.width; c += CHUNK) {
            int64_t m = std::min(CHUNK, l.width - c), near = l.near + s * p.near_step + c * p.near_next;
            int64_t far = l.far + c * p.far_next;
            const char* index = p.index + l.index + s * p.index_step + c * p.index_next;
            if (c % LONG == LONG - CHUNK) listen();
            if (!read_offsets<Last>(p, index, m, offsets)) return false;
            if (p.near_next == B)
                for (int64_t j = 0; j < m; ++j) f(near + j * B, far + offsets[j] * (Last ? B : 1));
            else
                for (int64_t j = 0; j < m; ++j) f(near + j * p.near_next, far + offsets[j] * (Last ? B : 1));
        }
    }
    return true;
}

// Whether the units are short rows, one after the other in all three arrays: some of them are read at once.
template <int64_t B> bool are_short_rows(const Elements& p) {
    if (p.steps != 1 || p.bands != 1 || p.far_next || p.far_jump != B || p.index_next != 8 || p.near_next != B) return false;
    int64_t rows = 1;
    for (int d = p.outer.ndim; d-- > 0; rows *= p.outer.shape[d])
        if (p.outer.from[d] != rows * p.width * 8 || p.outer.to[d] != rows * p.width * B || p.far_outer[d] != rows * p.n * B)
            return false;
    return p.width <= CHUNK / 8;
}

template <int64_t B, class F> bool each_pair_of_rows(const Elements& p, int64_t begin, int64_t end, F&& f) {
    using V = Vec<int64_t>;
    constexpr int L = lanes<int64_t>;
    const int64_t at_once = std::min(CHUNK / p.width, end - begin);
    const V size = splat(p.n);
    int64_t base[CHUNK], offsets[CHUNK];  // where rows begin in the far array, in elements
    for (int64_t r = 0, j = 0; r < at_once; ++r)
        for (const int64_t next = j + p.width; j < next; ++j) base[j] = r * p.n;
    for (int64_t row = begin; row < end; row += at_once) {
        const int64_t m = std::min(at_once, end - row) * p.width, first = row * p.width, far = row * p.n;
        const int64_t* index = reinterpret_cast<const int64_t*>(p.index) + first;
        bool wrong = false;
        int64_t j = 0;
        V bad{};
        for (; j + L <= m; j += L) {
            V k = load(index + j);
            k += (k < 0) & size;
            const V there = (k >= 0) & (k < size);
            bad |= ~there;
            store(offsets + j, (k & there) + load(base + j));
        }
        for (int i = 0; i < L; ++i) wrong |= bad[i] != 0;
        for (; j < m; ++j) {
            int64_t k = once(index + j);
            k += k < 0 ? p.n : 0;
            wrong |= uint64_t(k) >= uint64_t(p.n);
            offsets[j] = int64_t(uint64_t(k) + uint64_t(base[j]));  // k may be wrong
        }
        if (wrong) return false;
        for (j = 0; j < m; ++j) f((first + j) * B, (far + offsets[j]) * B);
    }
    return true;
}

// The same for whole and parts of units: `begin` and `end` count steps.
template <int64_t B, class F> bool each_pair(const Elements& p, int64_t begin, int64_t end, F&& f) {
    if (are_short_rows<B>(p)) return each_pair_of_rows<B>(p, begin, end, f);
    int64_t step = begin % p.steps;
    bool last = p.far_next == 0 && p.far_jump == B;
    for (ElementLine l(p, begin / p.steps);; l.next()) {
        int64_t stop = std::min(p.steps, step + end - begin);
        if (!(last ? each_pair<B, true>(p, l, step, stop, f) : each_pair<B, false>(p, l, step, stop, f))) return false;
        begin += stop - step, step = 0;
        if (begin == end) return true;
    }
}

// -- gather ---------------------------------------------------------------------------------------

template <class T> bool gather_all(const Elements& p, const char* x, char* out) {
    std::atomic<bool> bad{false};
    parallel(p.units() * p.steps, grain_of(p.band * int64_t(sizeof(T))), [&](int64_t begin, int64_t end) {
        bool good = each_pair<sizeof(T)>(p, begin, end, [=](int64_t a, int64_t b) { at<T>(out, a) = at<T>(x, b); });
        if (!good) bad = true;
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
        bool good = each_pair<B>(p, begin * p.steps, end * p.steps,
                                 [=](int64_t a, int64_t b) { combine(at<T>(out, b), at<T>(src, a)); });
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
