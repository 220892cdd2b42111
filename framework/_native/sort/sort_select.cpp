// kthvalue, median, searchsorted.
#include "sort/sort.h"

namespace fw::sort {
namespace {

constexpr int64_t COUNTED = 512;  // elements: from there on, counting the first digits pays
constexpr int FIRST_BITS = 11;

// The place of the element that sorting puts at place k.
template <class T> int64_t select_place(const T* x, int64_t n, int64_t k) {
    if (n <= SHORT) {
        const Ranks<T> ranks(x, n, false);
        return std::find(ranks.of, ranks.of + n - 1, Int<T>(k)) - ranks.of;
    }
    auto* e = scratch<EntryOf<T>>(1, n);
    if (n < COUNTED) {
        make_entries(x, n, false, e);
        std::nth_element(e, e + k, e + n);
        return e[k].place();
    }
    constexpr int shift = 8 * int(sizeof(KeyOf<T>)) - FIRST_BITS;
    uint32_t count[1 << FIRST_BITS] = {};
    for (int64_t i = 0; i < n; ++i) ++count[key_of(x[i]) >> shift];
    uint32_t digit = 0;
    for (; k >= count[digit]; ++digit) k -= count[digit];
    int64_t m = 0;
    for (int64_t i = 0; i < n; ++i) {
        auto key = key_of(x[i]);
        e[m] = EntryOf<T>::of(key, i);
        m += key >> shift == digit;
        if (m == int64_t(count[digit])) break;
    }
    if (m == 0) return 0;  // somebody changes the numbers meanwhile
    k = std::min(k, m - 1);
    std::nth_element(e, e + k, e + m);
    return e[k].place();
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

// The element of each row at place(row, n).
template <class F> void chosen(const View& x, int dim, void* values, int64_t* places, int64_t cost, F&& place) {
    by_type(x, [&](auto zero) {
        using T = decltype(zero);
        T* to = static_cast<T*>(values);
        const int64_t n = x.shape(dim);
        Rows(x, dim).go(x.data<const T>(), 1, cost, [&](const T* row, int64_t r) {
            places[r] = place(row, n);
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
    chosen(x, dim, values, places, 4, [=](const auto* row, int64_t n) { return place_of_kth(row, n, k, nan_wins); });
}

void nanmedian(const View& x, int dim, void* values, int64_t* places) {
    chosen(x, dim, values, places, 4, [](const auto* row, int64_t n) { return place_of_middle(row, n); });
}

void mode(const View& x, int dim, void* values, int64_t* places) {
    chosen(x, dim, values, places, 8, [](const auto* row, int64_t n) { return place_of_mode(row, n); });
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
