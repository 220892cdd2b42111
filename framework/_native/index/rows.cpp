// Whole rows by their positions, and the sums that are the derivatives of choosing them.
#include <algorithm>
#include <atomic>

#include "index/index.h"

namespace fw::moving {
namespace {

template <class I> bool read_one(const I* from, int64_t count, int64_t n, bool first, int64_t* to) {
    std::atomic<bool> bad{false};
    parallel(count, 16384, [&](int64_t begin, int64_t end) {
        uint64_t wrong = 0;  // its highest bit
        for (int64_t i = begin; i < end; ++i) {
            int64_t p = from[i];
            p += p < 0 ? n : 0;
            wrong |= uint64_t(p) | (uint64_t(n - 1) - uint64_t(p));
            to[i] = first ? p : int64_t(uint64_t(to[i]) * uint64_t(n) + uint64_t(p));  // p may be wrong
        }
        if (wrong >> 63) bad = true;
    });
    return !bad;
}

}  // namespace

Places read_places(const View& index, int dims, const int64_t* sizes) {
    Places found;
    const int64_t count = index.size() / dims;
    found.at.resize(size_t(count));
    for (int k = 0; k < dims; ++k) {
        const bool good = index.type() == Type::int64
                              ? read_one(index.data<int64_t>() + k * count, count, sizes[k], !k, found.at.data())
                              : read_one(index.data<int32_t>() + k * count, count, sizes[k], !k, found.at.data());
        if (!good) return found;
    }
    found.good = true;
    return found;
}

namespace {

constexpr int AHEAD = 8;              // rows that are asked for before they are needed
constexpr int64_t NEAR = 256 * 1024;  // bytes of a table which the second cache has

FW_INLINE void prefetch(const char* p, int64_t bytes) {
    for (int64_t b = 0; b < bytes; b += 64) __builtin_prefetch(p + b);
}

// Rows of HALF to 2 HALF bytes, each by two moves that may overlap.
template <int HALF> void take_short(const int64_t* at, int64_t first, int64_t last, int64_t row, bool far, const char* table, char* out) {
    struct Half {
        char bytes[HALF];
    };
    for (int64_t i = first; i < last; ++i) {
        const char* from = table + at[i] * row;
        char* to = out + i * row;
        if (far && i + AHEAD < last) __builtin_prefetch(table + at[i + AHEAD] * row);
        Half a, b;
        std::memcpy(&a, from, HALF), std::memcpy(&b, from + row - HALF, HALF);
        std::memcpy(to, &a, HALF), std::memcpy(to + row - HALF, &b, HALF);
    }
}
// Rows of some vectors, the last of which may overlap the one before.
void take_vectors(const int64_t* at, int64_t first, int64_t last, int64_t row, bool far, const char* table, char* out) {
    constexpr int64_t step = FW_BYTES;
    for (int64_t i = first; i < last; ++i) {
        const char* from = table + at[i] * row;
        char* to = out + i * row;
        if (far && i + AHEAD < last) prefetch(table + at[i + AHEAD] * row, row);
        for (int64_t b = 0; b + step <= row; b += step) store<int8_t>(reinterpret_cast<int8_t*>(to + b), load(reinterpret_cast<const int8_t*>(from + b)));
        const int64_t end = row - step;
        store<int8_t>(reinterpret_cast<int8_t*>(to + end), load(reinterpret_cast<const int8_t*>(from + end)));
    }
}

using TakeShort = void (*)(const int64_t*, int64_t, int64_t, int64_t, bool, const char*, char*);
TakeShort short_taker(int64_t row) {
    if (row > 64) return row <= 1024 ? take_vectors : nullptr;
    return row < 4 ? nullptr : row < 8 ? take_short<4> : row < 16 ? take_short<8> : row < 32 ? take_short<16> : take_short<32>;
}

}  // namespace

void take_rows(const Layout& l, const Places& places, int bytes, const char* from, char* to) {
    int64_t m = places.count(), row = l.inner * bytes, near = std::min<int64_t>(row, 512);
    const int64_t* at = places.begin();
    const TakeShort take_short = l.inner == 1 ? nullptr : short_taker(row);
    parallel(l.outer * m, grain_of(row), [&](int64_t begin, int64_t end) {
        while (begin < end) {
            int64_t o = begin / m, i = begin - o * m, stop = std::min(m, i + end - begin);
            begin += stop - i;
            const char* table = from + o * l.n * row;
            char* out = to + o * m * row;
            if (l.inner == 1) {
                by_bytes(bytes, [&](auto x) {
                    using T = decltype(x);
                    for (; i < stop; ++i)
                        reinterpret_cast<T*>(out)[i] = reinterpret_cast<const T*>(table)[at[i]];
                });
                continue;
            }
            if (take_short) {
                take_short(at, i, stop, row, l.n * row > NEAR, table, out);
                continue;
            }
            for (; i < stop; ++i) {
                if (i + AHEAD < m) prefetch(table + at[i + AHEAD] * row, near);
                memcpy(out + i * row, table + at[i] * row, size_t(row));
            }
        }
    });
}

namespace {

// For each of n targets the sources that have it, in order: those of t are order[start[t] .. start[t + 1]].
struct Sorted {
    std::vector<uint32_t> start, order;

    Sorted(const Places& places, int64_t n) : start(size_t(n) + 2), order(size_t(places.count())) {
        uint32_t* next = start.data() + 1;  // shifted by one: after the second pass it is where each ends
        for (int64_t p : places.at) ++start[size_t(p) + 2];
        for (int64_t t = 0; t < n; ++t) next[t + 1] += next[t];
        for (size_t i = 0; i < order.size(); ++i) order[next[places.at[i]]++] = uint32_t(i);
    }
};

// To zeros, or to x where it is given.
template <class T> void add_sorted(const Layout& l, const Places& places, const T* x, const T* from, T* to) {
    Sorted sorted(places, l.n);
    int64_t m = places.count(), inner = l.inner;
    const uint32_t *start = sorted.start.data(), *order = sorted.order.data();
    parallel(l.outer * l.n, grain_of(inner * int64_t(sizeof(T))), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
            int64_t o = r / l.n, t = r - o * l.n;
            const T* rows = from + o * m * inner;
            T* sum = to + r * inner;
            const uint32_t *i = order + start[t], *stop = order + start[t + 1];
            if (i == stop) {
                if (x) memcpy(sum, x + r * inner, size_t(inner) * sizeof(T));
                else memset(sum, 0, size_t(inner) * sizeof(T));
                continue;
            }
            if (stop + AHEAD < order + m)
                prefetch(reinterpret_cast<const char*>(rows + stop[AHEAD / 2] * inner),
                         std::min<int64_t>(inner * int64_t(sizeof(T)), 512));
            const T* row = rows + *i * inner;
            for (int64_t j = 0; j < inner; ++j) sum[j] = T(0) + row[j];
            while (++i < stop) {
                row = rows + *i * inner;
                for (int64_t j = 0; j < inner; ++j) sum[j] = sum_of(sum[j], row[j]);
            }
            if (x) add_sums(x + r * inner, inner, sum);
        }
    });
}

constexpr int64_t WIDE = 8;            // rows of fewer elements are not worth sorting
constexpr int64_t SORTED_FROM = 8192;  // elements

template <class T> void add_numbers(const Layout& l, const Places& places, const T* x, const T* from, T* to) {
    int64_t m = places.count(), inner = l.inner;
    if (inner >= WIDE && l.outer * m * inner >= SORTED_FROM && std::max(m, l.n) < UINT32_MAX)
        return add_sorted(l, places, x, from, to);
    const int64_t* at = places.begin();
    parallel(l.outer, grain_of((l.n + m) * inner * int64_t(sizeof(T))), [&](int64_t begin, int64_t end) {
        for (int64_t o = begin; o < end; ++o) {
            T* sums = to + o * l.n * inner;
            const T* rows = from + o * m * inner;
            memset(static_cast<void*>(sums), 0, size_t(l.n * inner) * sizeof(T));
            if (inner == 1) {
                for (int64_t i = 0; i < m; ++i) sums[at[i]] = sum_of(sums[at[i]], rows[i]);
            } else {
                for (int64_t i = 0; i < m; ++i)
                    for (int64_t j = 0; j < inner; ++j) {
                        T& sum = sums[at[i] * inner + j];
                        sum = sum_of(sum, rows[i * inner + j]);
                    }
            }
            if (x) add_sums(x + o * l.n * inner, l.n * inner, sums);
        }
    });
}

}  // namespace

bool add_rows(Type type, const Layout& l, const Places& places, const void* from, void* to) {
    return by_number(type, [&](auto number) {
        using T = decltype(number);
        add_numbers<T>(l, places, nullptr, static_cast<const T*>(from), static_cast<T*>(to));
    });
}

bool add_rows_to(Type type, const Layout& l, const Places& places, const void* x, const void* from, void* to) {
    return by_number(type, [&](auto number) {
        using T = decltype(number);
        add_numbers(l, places, static_cast<const T*>(x), static_cast<const T*>(from), static_cast<T*>(to));
    });
}

namespace {

template <class T, class F> FW_INLINE void combine_row(T* to, const T* from, int64_t n, F f) {
    int64_t i = 0;
    for (; i + lanes<T> <= n; i += lanes<T>) store<T>(to + i, f(load(to + i), load(from + i)));
    if (i < n) store_part<T>(to + i, f(load_part(to + i, n - i), load_part(from + i, n - i)), n - i);
}

// The numbers of those that go to one place, in order: of group g they are order[start[g] .. start[g + 1]]. Found by a table of places, in
// which two of one hash stand side by side.
struct Groups {
    std::vector<int64_t> order, start;

    explicit Groups(const Places& places) : order(places.at.size()), start(1, 0) {
        const int64_t m = places.count(), *at = places.begin();
        int bits = 2;
        while ((int64_t(1) << bits) < 2 * m) ++bits;
        std::vector<int64_t> table(size_t(1) << bits, -1), group(order.size());  // numbers of the first ones of groups
        const size_t last = table.size() - 1;
        for (int64_t i = 0; i < m; ++i) {
            size_t slot = size_t(uint64_t(at[i]) * 0x9E3779B97F4A7C15u >> (64 - bits));
            while (table[slot] >= 0 && at[table[slot]] != at[i]) slot = (slot + 1) & last;
            if (table[slot] < 0) table[slot] = i, group[size_t(i)] = int64_t(start.size()) - 1, start.push_back(0);
            else group[size_t(i)] = group[size_t(table[slot])];
            ++start[size_t(group[size_t(i)]) + 1];
        }
        for (size_t g = 1; g < start.size(); ++g) start[g] += start[g - 1];
        std::vector<int64_t> next(start.begin(), start.end() - 1);
        for (int64_t i = 0; i < m; ++i) order[size_t(next[size_t(group[size_t(i)])]++)] = i;
    }
    int64_t count() const { return int64_t(start.size()) - 1; }
};

constexpr int64_t NARROW = 4;  // numbers of a row up to which they are added one by one

// Sums of rows of few numbers; those of one `outer` after another.
template <class T> void add_narrow(const Layout& l, const Places& places, const Groups& groups, const T* rows, T* to) {
    const int64_t m = places.count(), count = groups.count(), inner = l.inner, n = l.n, *start = groups.start.data();
    std::vector<int64_t> order(groups.order), where;  // numbers of elements
    for (int64_t& i : order) i *= inner;
    for (int64_t g = 0; g < count; ++g) where.push_back(places.at[size_t(groups.order[size_t(start[g])])] * inner);
    const int64_t *numbers = order.data(), *places_of = where.data();
    parallel(l.outer, grain_of(m * inner * int64_t(sizeof(T))), [=](int64_t begin, int64_t end) {
        for (int64_t o = begin; o < end; ++o) {
            const T* from = rows + o * m * inner;
            T* table = to + o * n * inner;
            for (int64_t g = 0; g < count; ++g) {
                const int64_t *i = numbers + start[g], *last = numbers + start[g + 1];
                T* place = table + places_of[g];
                for (int64_t j = 0; j < inner; ++j) {
                    T sum = from[*i + j];
                    for (const int64_t* k = i + 1; k < last; ++k) sum = sum_of(sum, from[*k + j]);
                    place[j] = with_sum(place[j], sum);
                }
            }
        }
    });
}

template <class T> void combine_numbers(Combine how, const Layout& l, const Places& places, const T* rows, T* to) {
    const Groups groups(places);
    if (how == Combine::sum && l.inner <= NARROW) return add_narrow(l, places, groups, rows, to);
    const int64_t m = places.count(), *at = places.begin(), count = groups.count(), *order = groups.order.data();
    const auto add = [](Vec<T> a, Vec<T> b) -> Vec<T> { return a + b; };
    const auto add_sum = [](Vec<T> a, Vec<T> b) -> Vec<T> { return b == Vec<T>{} ? a : a + b; };
    const auto largest = [](Vec<T> a, Vec<T> b) -> Vec<T> { return select<T>((a > b) | (a != a), a, b); };  // of equals the last
    const auto smallest = [](Vec<T> a, Vec<T> b) -> Vec<T> { return select<T>((a < b) | (a != a), a, b); };
    parallel(l.outer * count, grain_of(l.inner * int64_t(sizeof(T))), [&](int64_t begin, int64_t end) {
        T* sum = scratch<T>(0, l.inner);
        for (int64_t u = begin; u < end; ++u) {
            const int64_t o = u / count, first = groups.start[size_t(u % count)], last = groups.start[size_t(u % count + 1)];
            T* place = to + (o * l.n + at[order[first]]) * l.inner;
            const auto row = [&](int64_t k) { return rows + (o * m + order[k]) * l.inner; };
            const bool sums = how == Combine::sum && last - first > 1;
            if (sums) std::copy_n(row(first), l.inner, sum);
            for (int64_t k = first + sums; k < last; ++k) {
                if (sums) combine_row(sum, row(k), l.inner, add);
                else if (how == Combine::sum) combine_row(place, row(k), l.inner, add_sum);
                else if (how == Combine::largest) combine_row(place, row(k), l.inner, largest);
                else combine_row(place, row(k), l.inner, smallest);
            }
            if (sums) combine_row(place, sum, l.inner, add_sum);
        }
    });
}

}  // namespace

bool combine_rows(Combine how, Type type, const Layout& l, const Places& places, const void* rows, void* to) {
    const auto combine = [&](auto number) {
        using T = decltype(number);
        combine_numbers(how, l, places, static_cast<const T*>(rows), static_cast<T*>(to));
        return true;
    };
    if (how == Combine::product) return false;
    switch (type) {
        case Type::float32: return combine(float{});
        case Type::float64: return combine(double{});
        case Type::int64: return how == Combine::sum ? combine(uint64_t{}) : combine(int64_t{});
        case Type::int32: return how == Combine::sum ? combine(uint32_t{}) : combine(int32_t{});
        default: return false;
    }
}

namespace {

void fill_row(char* to, int64_t n, int bytes, const Pair& bits) {
    by_bytes(bytes, [&](auto x) {
        using T = decltype(x);
        memcpy(&x, &bits, sizeof x);
        std::fill_n(reinterpret_cast<T*>(to), n, x);
    });
}

}  // namespace

void put_rows(const Layout& l, const Places& places, int bytes, const char* rows, const Pair& number, char* to) {
    int64_t m = places.count(), row = l.inner * bytes;
    const int64_t* at = places.begin();
    if (l.inner == 1 && (l.outer > 1 || l.n * 4 > m)) {
        parallel(l.outer, grain_of(m * bytes), [&](int64_t begin, int64_t end) {
            by_bytes(bytes, [&](auto x) {
                using T = decltype(x);
                memcpy(&x, &number, sizeof x);
                for (int64_t o = begin; o < end; ++o) {
                    T* line = reinterpret_cast<T*>(to) + o * l.n;
                    const T* values = reinterpret_cast<const T*>(rows) + o * m;
                    if (rows) for (int64_t i = 0; i < m; ++i) line[at[i]] = values[i];
                    else for (int64_t i = 0; i < m; ++i) line[at[i]] = x;
                }
            });
        });
        return;
    }
    auto write = [&](int64_t o, int64_t i) {
        char* p = to + (o * l.n + at[i]) * row;
        if (rows)
            memcpy(p, rows + (o * m + i) * row, size_t(row));
        else
            fill_row(p, l.inner, bytes, number);
    };
    if (l.outer > 1 || l.n * 4 > m * row || m * row < 4 * GRAIN_BYTES || m >= INT32_MAX) {
        parallel(l.outer, grain_of(m * row), [&](int64_t begin, int64_t end) {
            for (int64_t o = begin; o < end; ++o)
                for (int64_t i = 0; i < m; ++i) write(o, i);
        });
        return;
    }
    std::vector<int32_t> last(size_t(l.n), -1);
    for (int64_t i = 0; i < m; ++i) last[size_t(at[i])] = int32_t(i);
    parallel(m, grain_of(row), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            if (last[size_t(at[i])] == i) write(0, i);
    });
}

void range_of(const int64_t* at, int64_t n, int64_t& smallest, int64_t& largest) {
    std::atomic<int64_t> low{at[0]}, high{at[0]};
    parallel(n, 16384, [&](int64_t begin, int64_t end) {
        using V = Vec<int64_t>;
        constexpr int L = lanes<int64_t>;
        int64_t a = at[begin], b = a, i = begin;
        V least[2] = {splat(a), splat(a)}, most[2] = {least[0], least[0]};
        for (; i + 2 * L <= end; i += 2 * L) {
#pragma GCC unroll 2
            for (int k = 0; k < 2; ++k) {
                V v = load(at + i + k * L);
                least[k] = v < least[k] ? v : least[k];
                most[k] = v > most[k] ? v : most[k];
            }
        }
        for (int k = 0; k < 2 * L; ++k) a = std::min(a, least[k / L][k % L]), b = std::max(b, most[k / L][k % L]);
        for (; i < end; ++i) a = std::min(a, at[i]), b = std::max(b, at[i]);
        for (int64_t now = low; a < now && !low.compare_exchange_weak(now, a);) {}
        for (int64_t now = high; b > now && !high.compare_exchange_weak(now, b);) {}
    });
    smallest = low, largest = high;
}

}  // namespace fw::moving
