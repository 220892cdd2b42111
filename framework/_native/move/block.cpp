// Strided copies.
#include "move/block.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <type_traits>
#include <utility>

#include "base/strided.h"

namespace fw::moving {

bool Block::simplify() {
    for (int i = 1; i < ndim; ++i)  // the order that is written to without leaps
        for (int d = i; d > 0 && std::abs(to[d - 1]) < std::abs(to[d]); --d)
            std::swap(shape[d - 1], shape[d]), std::swap(from[d - 1], from[d]), std::swap(to[d - 1], to[d]);
    int n = 0;
    for (int d = 0; d < ndim; ++d) {
        if (shape[d] == 0) return false;
        if (shape[d] == 1) continue;
        if (n && from[n - 1] == from[d] * shape[d] && to[n - 1] == to[d] * shape[d]) {
            shape[n - 1] *= shape[d], from[n - 1] = from[d], to[n - 1] = to[d];
        } else {
            shape[n] = shape[d], from[n] = from[d], to[n++] = to[d];
        }
    }
    ndim = n;
    return true;
}

int64_t Block::rows() const { return product(shape, 0, ndim - 1); }

Walk::Walk(const Block& b, int leading, int64_t row) : block(b), dims(leading) {
    for (int d = dims - 1; d >= 0; --d) {
        at[d] = row % b.shape[d];
        row /= b.shape[d];
        from += at[d] * b.from[d], to += at[d] * b.to[d];
    }
}

namespace {

constexpr int64_t SHORT_LINE = 16;  // elements of a line up to which lines are copied together

template <class T> FW_INLINE T get(const char* p) {
    T x;
    memcpy(&x, p, sizeof x);
    return x;
}
template <class T> FW_INLINE void put(char* p, T x) { memcpy(p, &x, sizeof x); }

template <class T, int L, size_t... I> FW_INLINE void put_reversed(const char* from, char* to, std::index_sequence<I...>) {
    typedef T Some __attribute__((vector_size(L * sizeof(T))));
    const Some v = get<Some>(from);
    put(to, __builtin_shufflevector(v, v, (L - 1 - int(I))...));
}

// A line of n elements from its end, L or more, L at a time; the last ones perhaps once more.
template <class T, int L> FW_INLINE void copy_reversed(const char* from, char* to, int64_t n) {
    constexpr int64_t S = sizeof(T);
    const auto some = [=](int64_t i) { put_reversed<T, L>(from - (i + L - 1) * S, to + i * S, std::make_index_sequence<L>()); };
    int64_t i = 0;
#pragma GCC unroll 4
    for (; i + L <= n; i += L) some(i);
    if (i < n) some(n - L);
}

template <class T> FW_INLINE void copy_backwards(const char* from, char* to, int64_t n) {
    constexpr int64_t S = sizeof(T);
    if constexpr (std::is_integral_v<T>) {
        if (n >= lanes<T>) return copy_reversed<T, lanes<T>>(from, to, n);
        if (n * S >= 16) return copy_reversed<T, 16 / S>(from, to, n);
    }
    for (int64_t i = 0; i < n; ++i) put(to + i * S, get<T>(from - i * S));
}

template <class T> void copy_line(const char* from, int64_t step, char* to, int64_t to_step, int64_t n) {
    constexpr int64_t S = sizeof(T);
    if (S <= 8 && to_step == 2 * S) {
        T some[64];
        for (int64_t i = 0, m; i < n; i += m) {
            m = std::min<int64_t>(n - i, 64);
            if (step != S && (step || !i)) take_line(some, from + i * step, step, m);
            put_line(to + i * to_step, to_step, step == S ? reinterpret_cast<const T*>(from) + i : some, m);
        }
    } else if (to_step != S) {
        for (int64_t i = 0; i < n; ++i) put(to + i * to_step, get<T>(from + i * step));
    } else if (step == S) {
        for (int64_t i = 0; i < n; ++i) put(to + i * S, get<T>(from + i * S));
    } else if (step == 0) {
        T x = get<T>(from);
        for (int64_t i = 0; i < n; ++i) put(to + i * S, x);
    } else if (step == -S) {
        copy_backwards<T>(from, to, n);
    } else {
        take_line(reinterpret_cast<T*>(to), from, step, n);
    }
}

// Lines of `fixed` elements, or of n: so short that what is done for each counts.
template <class T, int fixed>
void copy_short(const char* from, const int64_t* step, char* to, const int64_t* to_step, int64_t lines, int64_t n) {
    const int64_t s = step[1], t = to_step[1];
    if (s == int64_t(sizeof(T)) && t == s) return copy_short_lines(to, to_step[0], from, step[0], lines, n * s);
    for (; lines > 0; --lines, from += step[0], to += to_step[0]) {
        if constexpr (fixed) {
#pragma GCC unroll 4
            for (int i = 0; i < fixed; ++i) put(to + i * t, get<T>(from + i * s));
        } else {
            for (int64_t i = 0; i < n; ++i) put(to + i * t, get<T>(from + i * s));
        }
    }
}

template <class T> void copy_lines(const Block& b, const char* from, char* to) {
    int inner = b.ndim - 1;
    int64_t n = b.shape[inner], step = b.from[inner], to_step = b.to[inner];
    bool dense = step == sizeof(T) && to_step == sizeof(T) && n * sizeof(T) >= 128;
    if (inner == 0)
        return parallel(n, grain_of(sizeof(T)), [=](int64_t begin, int64_t end) {
            copy_line<T>(from + begin * step, step, to + begin * to_step, to_step, end - begin);
        });
    parallel(b.rows(), grain_of(n * sizeof(T)), [&](int64_t begin, int64_t end) {
        Walk w(b, inner, begin);
        if (n <= SHORT_LINE || (step == sizeof(T) && to_step == sizeof(T) && n * sizeof(T) <= 1024)) {
            const auto copy = n == 2 ? copy_short<T, 2> : n == 3 ? copy_short<T, 3> : n == 4 ? copy_short<T, 4> : copy_short<T, 0>;
            for (int64_t i = begin, lines; i < end; i += lines, w.next(lines)) {
                lines = std::min(end - i, b.shape[inner - 1] - w.at[inner - 1]);
                copy(from + w.from, b.from + inner - 1, to + w.to, b.to + inner - 1, lines, n);
            }
            return;
        }
        if (step == -int64_t(sizeof(T)) && to_step == -step) {
            for (int64_t i = begin; i < end; ++i, w.next()) copy_backwards<T>(from + w.from, to + w.to, n);
            return;
        }
        for (int64_t i = begin; i < end; ++i, w.next()) {
            if (dense)
                memcpy(to + w.to, from + w.from, size_t(n) * sizeof(T));
            else
                copy_line<T>(from + w.from, step, to + w.to, to_step, n);
        }
    });
}

// A tile of a transposition: rows x cols, columns side by side in `from`, rows side by side in `to`.
template <class T>
void turn_tile(const char* from, int64_t from_row, char* to, int64_t to_col, int64_t rows, int64_t cols) {
    int64_t r = 0;
    if constexpr (std::is_same_v<T, uint64_t>) {
        typedef T Some __attribute__((vector_size(32)));
        const int64_t whole = rows / 4 * 4;
        int64_t c = 0;
        for (; c + 4 <= cols; c += 4)  // rows inside: a line of the cache is written before the next one
            for (r = 0; r < whole; r += 4) {
                const char* p = from + r * from_row + c * 8;
                const Some a = get<Some>(p), b = get<Some>(p + from_row), v = get<Some>(p + 2 * from_row),
                           w = get<Some>(p + 3 * from_row);
                const Some even = __builtin_shuffle(a, b, Some{0, 4, 2, 6}), odd = __builtin_shuffle(a, b, Some{1, 5, 3, 7}),
                           evens = __builtin_shuffle(v, w, Some{0, 4, 2, 6}), odds = __builtin_shuffle(v, w, Some{1, 5, 3, 7});
                char* q = to + c * to_col + r * 8;
                put(q, __builtin_shuffle(even, evens, Some{0, 1, 4, 5}));
                put(q + to_col, __builtin_shuffle(odd, odds, Some{0, 1, 4, 5}));
                put(q + 2 * to_col, __builtin_shuffle(even, evens, Some{2, 3, 6, 7}));
                put(q + 3 * to_col, __builtin_shuffle(odd, odds, Some{2, 3, 6, 7}));
            }
        for (; c < cols; ++c)
            for (int64_t k = 0; k < whole; ++k) put(to + c * to_col + k * 8, get<T>(from + k * from_row + c * 8));
        r = whole;
    }
#if defined(__x86_64__)
    if constexpr (sizeof(T) == 4) {
        for (; r + 4 <= rows; r += 4) {
            int64_t c = 0;
            for (; c + 4 <= cols; c += 4) {
                const char* p = from + r * from_row + c * 4;
                __m128 v0 = get<__m128>(p), v1 = get<__m128>(p + from_row), v2 = get<__m128>(p + 2 * from_row),
                       v3 = get<__m128>(p + 3 * from_row);
                _MM_TRANSPOSE4_PS(v0, v1, v2, v3);
                char* q = to + c * to_col + r * 4;
                put(q, v0), put(q + to_col, v1), put(q + 2 * to_col, v2), put(q + 3 * to_col, v3);
            }
            for (; c < cols; ++c)
                for (int64_t k = 0; k < 4; ++k)
                    put(to + c * to_col + (r + k) * 4, get<T>(from + (r + k) * from_row + c * 4));
        }
    }
#endif
    for (int64_t c = 0; c < cols; ++c)
        for (int64_t k = r; k < rows; ++k)
            put(to + c * to_col + k * int64_t(sizeof(T)), get<T>(from + k * from_row + c * int64_t(sizeof(T))));
}

// The last dimension is dense in `to`, dimension d is dense in `from`.
template <class T> void turn(const Block& b, int d, const char* from, char* to) {
    constexpr int64_t TILE = sizeof(T) <= 2 ? 32 : 16;
    int last = b.ndim - 1;
    Block outer;
    for (int i = 0; i < last; ++i)
        if (i != d) outer.add(b.shape[i], b.from[i], b.to[i]);
    int64_t rows = b.shape[last], cols = b.shape[d], bands = (cols + TILE - 1) / TILE;
    int64_t count = product(outer.shape, 0, outer.ndim);
    parallel(count * bands, grain_of(rows * TILE * int64_t(sizeof(T))), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            Walk w(outer, outer.ndim, i / bands);
            int64_t c = i % bands * TILE, width = std::min(TILE, cols - c);
            const char* p = from + w.from + c * int64_t(sizeof(T));
            char* q = to + w.to + c * b.to[d];
            for (int64_t r = 0; r < rows; r += TILE)
                turn_tile<T>(p + r * b.from[last], b.from[last], q + r * int64_t(sizeof(T)), b.to[d],
                             std::min(TILE, rows - r), width);
        }
    });
}

template <int N> struct Bytes {
    char at[N];
};

// Lines of sizeof(W) to twice as many bytes that lie side by side in both places: the first and the last of a line, which may
// overlap.
template <class W> void copy_ends(const Block& b, int64_t line, const char* from, char* to) {
    const int inner = b.ndim - 1;
    const int64_t step = b.from[inner], to_step = b.to[inner], rest = line - int64_t(sizeof(W));
    parallel(b.rows() * b.shape[inner], grain_of(line), [&](int64_t begin, int64_t end) {
        Walk w(b, b.ndim, begin);
        for (int64_t i = begin, lines; i < end; i += lines, w.next(lines)) {
            lines = std::min(end - i, b.shape[inner] - w.at[inner]);
            const char* p = from + w.from;
            char* q = to + w.to;
            for (int64_t k = 0; k < lines; ++k, p += step, q += to_step) {
                const W first = get<W>(p), last = get<W>(p + rest);
                put(q, first), put(q + rest, last);
            }
        }
    });
}

#if defined(FW_AVX512)
// Lines of `each` numbers, at most half a vector, in turned order: as many at a time as a vector holds. What it holds beyond
// them is written over by the next ones, but for the last.
template <class T> void copy_turned(int64_t count, int64_t each, const char* from, char* to) {
    typedef T Some __attribute__((vector_size(64)));
    constexpr int64_t L = 64 / int64_t(sizeof(T));
    const int64_t rows = L / each, line = each * int64_t(sizeof(T));
    Some order{};
    for (int64_t k = 0; k < rows * each; ++k) order[k] = T((rows - 1 - k / each) * each + k % each);
    parallel(count, grain_of(line), [=](int64_t begin, int64_t end) {
        const auto one = [&](int64_t i) { memcpy(to + i * line, from - i * line, size_t(line)); };
        int64_t i = begin;
        if (i == 0) one(i++);  // behind which there may be no memory
        for (; i + rows <= end && i * line + 64 <= end * line; i += rows)
            put(to + i * line, __builtin_shuffle(get<Some>(from - (i + rows - 1) * line), order));
        for (; i < end; ++i) one(i);
    });
}
#endif

// One line of at most 64 bytes again and again, side by side: by vectors, of as many lines as make whole ones.
void repeat_line(const char* from, int64_t line, int64_t count, char* to) {
    typedef char Some __attribute__((vector_size(64)));
    alignas(64) char pattern[64 * 64];
    const int64_t period = line * 64 / std::gcd(line, int64_t(64)), total = count * line, whole = total / period;
    for (int64_t k = 0; k < period; k += line) memcpy(pattern + k, from, size_t(line));
    parallel(whole, grain_of(period), [&](int64_t begin, int64_t end) {
        char* const first = to;
        for (int64_t i = begin; i < end; ++i)
            for (int64_t k = 0; k < period; k += 64) put(first + i * period + k, get<Some>(pattern + k));
    });
    memcpy(to + whole * period, pattern, size_t(total - whole * period));
}

// Short lines that lie side by side in both places are elements, which need no loop of their own.
bool copied_as_elements(Block& b, int bytes, const char* from, char* to) {
    const int last = b.ndim - 1;
    if (last == 0 || b.from[last] != bytes || b.to[last] != bytes) return false;
    const int64_t line = b.shape[last] * bytes;
    if (line < 4 || line > 64) return false;
    --b.ndim;
    if (b.ndim == 1 && b.from[0] == 0 && b.to[0] == line) return repeat_line(from, line, b.shape[0], to), true;
#if defined(FW_AVX512)
    if (b.ndim == 1 && b.from[0] == -line && b.to[0] == line && line <= 32 && line % 2 == 0) {
        if (line % 4) copy_turned<uint16_t>(b.shape[0], line / 2, from, to);
        else copy_turned<uint32_t>(b.shape[0], line / 4, from, to);
        return true;
    }
#endif
    if (line == 4) copy_lines<uint32_t>(b, from, to);
    else if (line < 8) copy_ends<uint32_t>(b, line, from, to);
    else if (line == 8) copy_lines<uint64_t>(b, from, to);
    else if (line < 16) copy_ends<uint64_t>(b, line, from, to);
    else if (line == 16) copy_lines<Pair>(b, from, to);
    else if (line < 32) copy_ends<Pair>(b, line, from, to);
    else if (line == 32) copy_lines<Bytes<32>>(b, from, to);
    else if (line < 64) copy_ends<Bytes<32>>(b, line, from, to);
    else copy_lines<Bytes<64>>(b, from, to);
    return true;
}

int dense_elsewhere(const Block& b, int bytes) {
    int last = b.ndim - 1;
    if (b.to[last] != bytes || b.from[last] == bytes || b.from[last] == 0 || b.shape[last] < 4) return -1;
    for (int d = 0; d < last; ++d)
        if (b.from[d] == bytes && b.shape[d] >= 4) return d;
    return -1;
}

}  // namespace

void copy_bytes(const char* from, char* to, int64_t n) {
    parallel(n, GRAIN_BYTES,
             [&](int64_t begin, int64_t end) { memcpy(to + begin, from + begin, size_t(end - begin)); });
}

namespace {

typedef char Line __attribute__((vector_size(64)));

// Lines of the cache that are alike, of which eight bytes are. From some size on the processor's own loop is quicker: it does not
// read what it overwrites (16 MB that are not in its caches in 0.2 ms for 0.35).
void fill_lines(char* to, const Line& line, int64_t count, bool by_itself) {
#if defined(__x86_64__)
    if (by_itself) {
        uint64_t word;
        memcpy(&word, &line, sizeof word);
        int64_t words = count * 8;
        asm volatile("rep stosq" : "+D"(to), "+c"(words) : "a"(word) : "memory");
        return;
    }
#endif
    static_cast<void>(by_itself);
    const Line x = line;  // registers
    for (int64_t i = 0; i < count; ++i) put(to + i * 64, x);
}

}  // namespace

void fill_elements(char* to, int64_t n, int bytes, const Pair& bits) {
    constexpr int64_t LARGE = 1 << 20;
    Line line;
    for (int i = 0; i < 64; i += bytes) memcpy(reinterpret_cast<char*>(&line) + i, &bits, size_t(bytes));
    int64_t size = n * bytes;
    // stores that cross lines of the cache take half again as long
    const int64_t before = int64_t(-uintptr_t(to) % 64);
    if (size >= 256 && before % bytes == 0) memcpy(to, &line, size_t(before)), to += before, size -= before;
    const int64_t lines = size / 64;
    const bool by_itself = size >= LARGE && bytes <= 8;
    parallel(lines, GRAIN_BYTES / 64, [=](int64_t begin, int64_t end) { fill_lines(to + begin * 64, line, end - begin, by_itself); });
    memcpy(to + lines * 64, &line, size_t(size - lines * 64));
}

void fill_bytes(char* to, int64_t n, int value) {
    Pair bits;
    memset(&bits, value, sizeof bits);
    fill_elements(to, n, 1, bits);
}

void copy_block(Block b, int bytes, const char* from, char* to) {
    if (!b.simplify()) return;
    if (b.ndim == 0) {
        memcpy(to, from, size_t(bytes));
        return;
    }
    int last = b.ndim - 1;
    if (last == 0 && b.from[0] == bytes && b.to[0] == bytes) return copy_bytes(from, to, b.shape[0] * bytes);
    if (last == 0 && b.from[0] == 0 && b.to[0] == bytes && bytes <= int(sizeof(Pair))) {
        Pair bits{};
        memcpy(&bits, from, size_t(bytes));
        return fill_elements(to, b.shape[0], bytes, bits);
    }
    if (copied_as_elements(b, bytes, from, to)) return;
    int d = dense_elsewhere(b, bytes);
    by_bytes(bytes, [&](auto x) {
        using T = decltype(x);
        if (d >= 0)
            turn<T>(b, d, from, to);
        else
            copy_lines<T>(b, from, to);
    });
}

void copy_triangles(const char* from, char* to, int64_t rows, int64_t height, int64_t width, int bytes, int64_t k, bool lower) {
    const int64_t row = width * bytes;
    k = std::max(-height - 1, std::min(k, width + 1));
    parallel(rows, grain_of(row), [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t cut = std::max<int64_t>(0, std::min(width, i % height + k + lower)) * bytes;
            const char* x = from + i * row;
            char* y = to + i * row;
            memcpy(y, lower ? x : y, size_t(lower ? cut : 0));
            memset(lower ? y + cut : y, 0, size_t(lower ? row - cut : cut));
            if (!lower) memcpy(y + cut, x + cut, size_t(row - cut));
        }
    });
}

void clear_triangles(const Block& matrices, int64_t height, int64_t width, int64_t down, int64_t across, int bytes, int64_t k, bool lower,
                     char* to) {
    k = std::max(-height - 1, std::min(k, width + 1));
    if (across != bytes && down == bytes) std::swap(height, width), std::swap(down, across), k = -k, lower = !lower;
    const int64_t count = product(matrices.shape, 0, matrices.ndim);
    const int64_t first = lower ? 0 : std::max<int64_t>(0, 1 - k), rows = (lower ? std::min(height, width - k - 1) : height) - first;
    if (rows <= 0) return;  // of a matrix, that lose something
    parallel(count * rows, grain_of(width * bytes), [&](int64_t begin, int64_t end) {
        Walk walk(matrices, matrices.ndim, begin / rows);
        for (int64_t i = begin % rows; begin < end; ++begin) {
            const int64_t cut = std::max<int64_t>(0, std::min(width, first + i + k + lower)), n = lower ? width - cut : cut;
            char* row = to + walk.to + (first + i) * down + (lower ? cut * across : 0);
            if (across == bytes) memset(row, 0, size_t(n * bytes));
            else by_bytes(bytes, [&](auto zero) {
                for (int64_t j = 0; j < n; ++j) memcpy(row + j * across, &zero, sizeof zero);
            });
            if (++i == rows) i = 0, walk.next();
        }
    });
}

}  // namespace fw::moving
