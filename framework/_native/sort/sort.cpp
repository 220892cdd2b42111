// sort, topk.
#include "sort/sort.h"

namespace fw::sort {
namespace {

// The first m entries of a row as values and places, `step` apart.
template <class T> void write_row(const T* x, const EntryOf<T>* e, int64_t m, int64_t step, T* values,
                                  int64_t* places) {
    for (int64_t i = 0; i < m; ++i) {
        int64_t at = e[i].place();
        values[i * step] = x[at];
        places[i * step] = at;
    }
}

// The first m of a short row in order.
template <class T> void write_ranked(const T* x, int64_t n, int64_t m, bool descending, int64_t step, T* values,
                                     int64_t* places) {
    const Ranks<T> ranks(x, n, descending);
    if (m == n) {
        for (int64_t i = 0; i < n; ++i) values[ranks.of[i] * step] = x[i], places[ranks.of[i] * step] = i;
        return;
    }
    Int<T> order[SHORT];
    for (int64_t i = 0; i < n; ++i) order[ranks.of[i]] = Int<T>(i);
    for (int64_t i = 0; i < m; ++i) {
        values[i * step] = x[order[i]];
        places[i * step] = order[i];
    }
}

// The first m of each row of at most BESIDE elements, in order.
template <class S>
void write_beside(const S* x, bool floating, const Rows& rows, int64_t m, bool descending, S* values, int64_t* places) {
    const int64_t n = rows.n, apart = rows.inner;
    rows.beside(x, floating, m, [=](RowsBeside<S>& b, const S* from, int64_t row, int64_t step, int64_t width, int64_t at, int64_t next) {
        for (int64_t i = 0; i < n; ++i) b.keys[i] ^= splat(S(descending ? -1 : 0));
        b.find_ranks(n);
        S rank[BESIDE * lanes<S>];
        for (int64_t i = 0; i < n; ++i) store(rank + i * lanes<S>, b.rank[i]);
        for (int64_t r = 0; r < width; ++r, from += row, at += next) {
            S all[BESIDE];
            int64_t numbers[BESIDE];
            const bool straight = m == n;  // each has a place in the result
            S* to = straight ? values + at : all;
            int64_t *number = straight ? places + at : numbers, gap = straight ? apart : 1;
            for (int64_t i = 0; i < n; ++i) {
                const int64_t k = rank[i * lanes<S> + r] * gap;
                to[k] = from[i * step], number[k] = i;
            }
            for (int64_t i = 0; !straight && i < m; ++i) values[at + i * apart] = all[i], places[at + i * apart] = numbers[i];
        }
    });
}

// The first m of each row, where rows are so short.
bool in_short_rows(const View& x, int64_t m, int dim, bool descending, void* values, int64_t* places) {
    if (x.shape(dim) > BESIDE) return false;
    const Rows rows(x, dim);
    by_bits(x, [&](auto zero, bool floating) {
        using S = decltype(zero);
        write_beside(x.data<const S>(), floating, rows, m, descending, static_cast<S*>(values), places);
    });
    return true;
}

constexpr int64_t INSERTED = 32;  // so many of the best are kept in order while a row is read

// Into e the best k of a row, in order, for a small k: a block is looked at as a whole first, by vectors.
template <class T> void few_best(const T* x, int64_t n, int64_t k, bool largest, EntryOf<T>* e) {
    constexpr int64_t BLOCK = 64;
    const KeyOf<T> flip = largest ? ~KeyOf<T>(0) : 0;
    int64_t count = 0;
    T worst{};
    auto insert = [&](T v, KeyOf<T> key, int64_t place) {
        const auto entry = EntryOf<T>::of(key, place);
        int64_t at = count < k ? count++ : k - 1;
        for (; at > 0 && entry < e[at - 1]; --at) e[at] = e[at - 1];
        e[at] = entry;
        if (count == k) worst = at == k - 1 ? v : x[e[k - 1].place()];
    };
    int64_t i = 0;
    for (; i < k; ++i) insert(x[i], KeyOf<T>(key_of(x[i]) ^ flip), i);
    for (; i < n;) {
        const int64_t stop = std::min(n, i + BLOCK);
        bool some = false;  // nan is not refused here
        if (largest) for (int64_t j = i; j < stop; ++j) some |= !(x[j] <= worst);
        else for (int64_t j = i; j < stop; ++j) some |= !(x[j] >= worst);
        for (; some && i < stop; ++i) {
            const T v = x[i];
            const KeyOf<T> key = KeyOf<T>(key_of(v) ^ flip);
            if (key < e[k - 1].key()) insert(v, key, i);  // of equal keys the earlier place wins
        }
        i = stop;
    }
}

// Into e the best k of a row, in order: candidates are those before the worst of the best so far.
template <class T> void best_entries(const T* x, int64_t n, int64_t k, bool largest, EntryOf<T>* e) {
    int64_t room = 2 * k + 256, count = std::min(n, room);
    make_entries(x, count, largest, e);
    KeyOf<T> flip = largest ? ~KeyOf<T>(0) : 0;
    auto keep_best = [&] {
        if (count > k) std::nth_element(e, e + k - 1, e + count);
        count = std::min(count, k);
    };
    for (int64_t i = count; i < n;) {
        keep_best();
        auto worst = e[k - 1].key();  // of equal keys the earlier place wins
        for (; i < n && count < room; ++i) {
            auto key = KeyOf<T>(key_of(x[i]) ^ flip);
            e[count] = EntryOf<T>::of(key, i);
            count += key < worst;
        }
    }
    keep_best();
    std::sort(e, e + count);
}

}  // namespace

void sort_along(const View& x, int dim, bool descending, void* values, int64_t* places) {
    if (in_short_rows(x, x.shape(dim), dim, descending, values, places)) return;
    by_type(x, [&](auto zero) {
        using T = decltype(zero);
        const int64_t n = x.shape(dim);
        const Rows rows(x, dim);
        T* to = static_cast<T*>(values);
        rows.go(x.data<const T>(), n, 8, [&](const T* row, int64_t at) {
            if (n <= SHORT) return write_ranked(row, n, n, descending, rows.inner, to + at, places + at);
            auto* e = scratch<EntryOf<T>>(1, 2 * n);
            make_entries(row, n, descending, e);
            write_row(row, sort_entries(e, e + n, n), n, rows.inner, to + at, places + at);
        });
    });
}

void topk(const View& x, int64_t k, int dim, bool largest, void* values, int64_t* places) {
    if (in_short_rows(x, k, dim, largest, values, places)) return;
    by_type(x, [&](auto zero) {
        using T = decltype(zero);
        const int64_t n = x.shape(dim);
        const bool few = k <= INSERTED, all = !few && 8 * k > n;
        const Rows rows(x, dim);
        T* to = static_cast<T*>(values);
        rows.go(x.data<const T>(), k, all ? 8 : 2, [&](const T* row, int64_t at) {
            if (n <= SHORT) return write_ranked(row, n, k, largest, rows.inner, to + at, places + at);
            auto* e = scratch<EntryOf<T>>(1, all ? 2 * n : 2 * k + 257);
            auto* sorted = e;
            if (few) few_best(row, n, k, largest, e);
            else if (all) make_entries(row, n, largest, e), sorted = sort_entries(e, e + n, n);
            else best_entries(row, n, k, largest, e);
            write_row(row, sorted, k, rows.inner, to + at, places + at);
        });
    });
}

namespace {

template <class F> void by_narrow(Narrow type, F&& f) {
    switch (type) {
        case Narrow::int8: return f(int8_t{});
        case Narrow::int16: return f(int16_t{});
        case Narrow::uint16: return f(uint16_t{});
        default: return f(uint8_t{});
    }
}

constexpr int64_t NARROW_GRAIN = 1 << 15;

}  // namespace

void widen(Narrow type, const void* from, int64_t n, int32_t* to) {
    by_narrow(type, [=](auto number) {
        using T = decltype(number);
        constexpr int32_t least = std::numeric_limits<T>::min();
        const T* x = static_cast<const T*>(from);
        const bool truth = type == Narrow::truth;
        parallel(n, NARROW_GRAIN, [=](int64_t begin, int64_t end) {
            if (truth) for (int64_t i = begin; i < end; ++i) to[i] = x[i] != 0;
            else for (int64_t i = begin; i < end; ++i) to[i] = int32_t(x[i]) - least;
        });
    });
}

void narrow(Narrow type, const int32_t* from, int64_t n, void* to) {
    by_narrow(type, [=](auto number) {
        using T = decltype(number);
        constexpr int32_t least = std::numeric_limits<T>::min();
        T* out = static_cast<T*>(to);
        parallel(n, NARROW_GRAIN, [=](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) out[i] = T(from[i] + least);
        });
    });
}

}  // namespace fw::sort
