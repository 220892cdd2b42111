// kthvalue, median, searchsorted.
#include "sort/sort.h"

#include <cmath>

namespace fw::sort {
namespace {

constexpr int64_t COUNTED = 512;  // elements: from there on, looking at some of them first pays

// The place of the first of the keys that have `before` ones equal to them before it.
template <class S> int64_t place_of(const S* keys, int64_t n, S key, int64_t before) {
    constexpr int64_t BLOCK = 256;
    for (int64_t b = 0; b < n; b += BLOCK) {
        const int64_t end = std::min(n, b + BLOCK);
        S equal = 0;
        for (int64_t i = b; i < end; ++i) equal += keys[i] == key;
        if (equal <= before) {
            before -= equal;
            continue;
        }
        for (int64_t i = b;; ++i)
            if (keys[i] == key && !before--) return i;
    }
    return 0;  // there is one
}

// The place of the key that sorting puts at place k. Of many most are not between two of them, which are taken from some chosen
// here and there; those that are come to lie in `some`.
template <class S> int64_t place_in_keys(const S* keys, int64_t n, int64_t k, S* some) {
    int64_t before = 0, count = 0;
    S least = std::numeric_limits<S>::min(), most = std::numeric_limits<S>::max();
    if (n >= COUNTED) {
        const int64_t m = std::min<int64_t>(1024, n / 8), wide = int64_t(1.5 * std::sqrt(double(m))) + 1, middle = k * m / n;
        for (int64_t i = 0; i < m; ++i)  // places that follow no pattern of the rows that were put here one after another
            some[i] = keys[int64_t((uint64_t(i) * 0x9E3779B97F4A7C15u >> 32) * uint64_t(n) >> 32)];
        const int64_t from = std::max<int64_t>(0, middle - wide), to = std::min(m - 1, middle + wide);
        std::nth_element(some, some + from, some + m);
        if (to > from) std::nth_element(some + from + 1, some + to, some + m);
        const S low = some[from], high = some[to];
        int64_t below = 0, not_above_low = 0, below_high = 0, not_above = 0;
        for (int64_t i = 0; i < n; ++i) {
            const S key = keys[i];
            below += key < low, not_above_low += key <= low, below_high += key < high, not_above += key <= high;
        }
        if (below <= k && k < not_above_low) return place_of(keys, n, low, k - below);
        if (below_high <= k && k < not_above) return place_of(keys, n, high, k - below_high);
        if (k < below) most = low - 1;
        else if (k < below_high) least = low + 1, most = high - 1, before = not_above_low;
        else least = high + 1, before = not_above;
    }
    for (int64_t i = 0; i < n; ++i) some[count] = keys[i], count += (keys[i] >= least) & (keys[i] <= most);
    k -= before;
    std::nth_element(some, some + k, some + count);
    const S key = some[k];
    for (int64_t i = 0; i < count; ++i) k -= some[i] < key;
    return place_of(keys, n, key, k);
}

// The place of the element that sorting puts at place k.
template <class T> int64_t select_place(const T* x, int64_t n, int64_t k) {
    using S = Int<T>;
    if (n <= SHORT) {
        const Ranks<T> ranks(x, n, false);
        return std::find(ranks.of, ranks.of + n - 1, S(k)) - ranks.of;
    }
    S *keys = scratch<S>(1, n + lanes<S>), *some = scratch<S>(2, n + 1);
    make_keys(x, n, keys);  // which nobody changes meanwhile
    return place_in_keys(keys, n, k, some);
}

// The first nan, or -1.
template <class T> int64_t first_nan(const T* x, int64_t n) {
    constexpr int64_t CHUNK = 256;
    for (int64_t b = 0; b < n; b += CHUNK) {
        int64_t end = std::min(n, b + CHUNK);
        bool found = false;
        for (int64_t i = b; i < end; ++i) found |= x[i] != x[i];
        if (!found) continue;
        const int64_t at = std::find_if(x + b, x + end, [](T v) { return v != v; }) - x;
        if (at < end) return at;  // else somebody changed it meanwhile
    }
    return -1;
}

template <class T> int64_t place_of_kth(const T* x, int64_t n, int64_t k, bool nan_wins) {
    if (nan_wins) {
        int64_t at = first_nan(x, n);
        if (at >= 0) return at;
    }
    return select_place(x, n, k);
}

// The place of the middle one of the numbers that are not nan, of two the lower.
template <class T> int64_t place_of_middle(const T* x, int64_t n) {
    int64_t numbers = 0;
    for (int64_t i = 0; i < n; ++i) numbers += x[i] == x[i];
    return select_place(x, n, std::max<int64_t>(0, numbers - 1) / 2);
}

// The place of the last one of the numbers that come most often, the smallest of several; each nan counts for itself.
template <class T> int64_t place_of_mode(const T* x, int64_t n) {
    auto* entries = scratch<EntryOf<T>>(1, 2 * n);
    make_entries(x, n, false, entries);
    const auto* e = sort_entries(entries, entries + n, n);
    const KeyOf<T> nan = ~KeyOf<T>(0);
    int64_t longest = 0, at = n - 1;
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && e[end].key() == e[i].key(); ++end) {}
        const bool counts = std::numeric_limits<T>::is_integer || e[i].key() != nan;
        if (counts && end - i > longest) longest = end - i, at = e[end - 1].place();
    }
    return at;
}

enum class Which { kth, middle, most_often };

// One element of each row: number k in order (with `nan_wins` the first nan), or as RowsBeside says.
void chosen(const View& x, int dim, void* values, int64_t* places, Which which, int64_t k, bool nan_wins) {
    const int64_t n = x.shape(dim);
    const Rows rows(x, dim);
    if (n <= BESIDE)
        return by_bits(x, [&](auto zero, bool floating) {
            using S = decltype(zero);
            S* to = static_cast<S*>(values);
            rows.beside(x.data<const S>(), floating, 1, [&](RowsBeside<S>& b, const S* from, int64_t row, int64_t step,
                                                           int64_t width, int64_t at, int64_t) {
                S found[lanes<S>];
                store(found, which == Which::kth ? b.at_rank(n, splat(S(k)), nan_wins)
                             : which == Which::middle ? b.middle(n) : b.most_often(n));
                for (int64_t r = 0; r < width; ++r, ++at) places[at] = found[r], to[at] = from[r * row + found[r] * step];
            });
        });
    by_type(x, [&](auto zero) {
        using T = decltype(zero);
        T* to = static_cast<T*>(values);
        rows.go(x.data<const T>(), 1, which == Which::most_often ? 8 : 4, [&](const T* row, int64_t r) {
            places[r] = which == Which::kth ? place_of_kth(row, n, k, nan_wins)
                        : which == Which::middle ? place_of_middle(row, n) : place_of_mode(row, n);
            to[r] = row[places[r]];
        });
    });
}

constexpr int KEYS = 8;  // searched at once: each waits for memory at every step

// How many of the n sorted elements, none nan, are before each of KEYS keys.
template <class T, bool Right> void count_before(const T* a, int64_t n, const T* keys, int64_t* counts) {
    auto before = [](T v, T key) { return Right ? v <= key : v < key; };
    int64_t base[KEYS] = {};
    for (int64_t left = n; left > 1; left -= left / 2)
        for (int k = 0; k < KEYS; ++k) base[k] += before(a[base[k] + left / 2 - 1], keys[k]) ? left / 2 : 0;
    for (int k = 0; k < KEYS; ++k) counts[k] = base[k] + (n > 0 && before(a[base[k]], keys[k]));
}

// As in sorting, nan is the largest.
template <class T, bool Right>
void search_row(const T* a, int64_t n, const T* keys, int64_t count, int64_t* out) {
    int64_t numbers = std::partition_point(a, a + n, [](T v) { return v == v; }) - a;
    for (int64_t i = 0; i < count; i += KEYS) {
        int64_t some = std::min<int64_t>(KEYS, count - i), counts[KEYS];
        T wanted[KEYS] = {};
        std::copy_n(keys + i, some, wanted);
        count_before<T, Right>(a, numbers, wanted, counts);
        for (int64_t k = 0; k < some; ++k)
            out[i + k] = wanted[k] == wanted[k] ? counts[k] : Right ? n : numbers;
    }
}

}  // namespace

void kth(const View& x, int64_t k, int dim, bool nan_wins, void* values, int64_t* places) {
    chosen(x, dim, values, places, Which::kth, k, nan_wins);
}

void nanmedian(const View& x, int dim, void* values, int64_t* places) {
    chosen(x, dim, values, places, Which::middle, 0, false);
}

void mode(const View& x, int dim, void* values, int64_t* places) {
    chosen(x, dim, values, places, Which::most_often, 0, false);
}

void median(const View& x, void* value) {
    by_type(x, [&](auto zero) {
        using T = decltype(zero);
        const T* from = x.data<const T>();
        *static_cast<T*>(value) = from[place_of_kth(from, x.size(), (x.size() - 1) / 2, true)];
    });
}

bool searchable(const View& a, const View& keys) {
    if (a.type() != keys.type() || !sortable(a.type()) || !a.contiguous() || !keys.contiguous() || !a.ndim() || !keys.size())
        return false;
    return a.ndim() == 1 || (a.ndim() == keys.ndim() && std::equal(a.sizes, a.sizes + a.ndim() - 1, keys.sizes));
}

void search(const View& a, const View& keys, bool right, int64_t* counts) {
    by_type(keys, [&](auto zero) {
        using T = decltype(zero);
        const int64_t n = a.shape(a.ndim() - 1), each = a.ndim() == 1 ? keys.size() : keys.shape(keys.ndim() - 1);
        const T *sequence = a.data<const T>(), *wanted = keys.data<const T>();
        parallel(keys.size(), 1024, [&](int64_t begin, int64_t end) {
            while (begin < end) {
                const int64_t row = begin / each, some = std::min(end, (row + 1) * each) - begin;
                (right ? search_row<T, true> : search_row<T, false>)(sequence + row * n, n, wanted + begin, some,
                                                                    counts + begin);
                begin += some;
            }
        });
    });
}

}  // namespace fw::sort
