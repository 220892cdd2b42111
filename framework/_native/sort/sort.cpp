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
    by_type(x, [&](auto zero) {
        using T = decltype(zero);
        const int64_t n = x.shape(dim);
        const Rows rows(x, dim);
        T* to = static_cast<T*>(values);
        rows.go(x.data<const T>(), n, 8, [&](const T* row, int64_t at) {
            auto* e = scratch<EntryOf<T>>(1, 2 * n);
            make_entries(row, n, descending, e);
            write_row(row, sort_entries(e, e + n, n), n, rows.inner, to + at, places + at);
        });
    });
}

void topk(const View& x, int64_t k, int dim, bool largest, void* values, int64_t* places) {
    by_type(x, [&](auto zero) {
        using T = decltype(zero);
        const int64_t n = x.shape(dim);
        const bool all = 8 * k > n;
        const Rows rows(x, dim);
        T* to = static_cast<T*>(values);
        rows.go(x.data<const T>(), k, all ? 8 : 2, [&](const T* row, int64_t at) {
            auto* e = scratch<EntryOf<T>>(1, all ? 2 * n : 2 * k + 257);
            auto* sorted = e;
            if (all) make_entries(row, n, largest, e), sorted = sort_entries(e, e + n, n);
            else best_entries(row, n, k, largest, e);
            write_row(row, sorted, k, rows.inner, to + at, places + at);
        });
    });
}

}  // namespace fw::sort
