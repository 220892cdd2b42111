// The parameters of an optimizer's step: checks, which memory they share, and the walk over them.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/pool.h"
#include "base/pool_internal.h"
#include "optim/optimizers.h"

namespace fw::optim {
namespace {

constexpr int64_t GRAIN = 16384;  // elements

bool is_float(const View& v) { return v.type() == Type::float32 || v.type() == Type::float64; }

// Without gaps, whatever the order of the dimensions.
bool dense(const View& v) {
    if (v.contiguous()) return true;
    std::vector<int> order;  // from the smallest step in memory to the largest
    for (int d = 0; d < v.ndim(); ++d)
        if (v.shape(d) != 1) order.push_back(d);
    std::sort(order.begin(), order.end(), [&](int a, int b) { return v.stride(a) < v.stride(b); });
    int64_t step = bytes_of(v.type());
    for (int d : order) {
        if (v.stride(d) != step) return false;
        step *= v.shape(d);
    }
    return true;
}

bool alike(const View& a, const View& b) {
    if (a.type() != b.type() || a.ndim() != b.ndim() || !std::equal(a.sizes, a.sizes + a.dims, b.sizes)) return false;
    for (int d = 0; d < a.ndim(); ++d)
        if (a.shape(d) > 1 && a.stride(d) != b.stride(d)) return !a.size();
    return true;
}

struct Extent {
    const char *begin, *end;
    bool operator<(const Extent& o) const { return begin < o.begin; }
    bool operator==(const Extent& o) const { return begin == o.begin && end == o.end; }
};

// What the updates write, sorted; the last few such lists, since they rarely change from step to step.
struct Written {
    std::vector<Extent> given, sorted;
    bool disjoint;
};

const Written& written(std::vector<Extent> given) {
    constexpr size_t MOST = 64;
    thread_local std::map<const char*, Written> known;
    auto found = known.find(given[0].begin);
    if (found != known.end() && found->second.given == given) return found->second;
    if (known.size() >= MOST) known.clear();
    Written fresh{given, std::move(given), true};
    std::sort(fresh.sorted.begin(), fresh.sorted.end());
    for (size_t i = 1; i < fresh.sorted.size(); ++i)
        if (fresh.sorted[i].begin < fresh.sorted[i - 1].end) fresh.disjoint = false;
    return known[fresh.given[0].begin] = std::move(fresh);
}

// Whether no memory that one update writes is used by another; a gradient may be its parameter itself.
bool independent(const std::vector<Parameter>& all, int count) {
    std::vector<Extent> ranges;
    ranges.reserve(all.size() * size_t(count));
    for (const Parameter& one : all)
        for (int k = 0; k < count; ++k)
            if (k != 1 && one.size) ranges.push_back({one.arrays[k], one.arrays[k] + one.size * (one.wide ? 8 : 4)});
    if (ranges.empty()) return true;
    const Written& w = written(std::move(ranges));
    if (!w.disjoint) return false;
    for (const Parameter& one : all) {
        if (count == 1 || !one.size || one.arrays[1] == one.arrays[0]) continue;
        const Extent g{one.arrays[1], one.arrays[1] + one.size * (one.wide ? 8 : 4)};
        auto after = std::upper_bound(w.sorted.begin(), w.sorted.end(), g);
        if (after != w.sorted.end() && after->begin < g.end) return false;
        if (after != w.sorted.begin() && (after - 1)->end > g.begin) return false;
    }
    return true;
}

}  // namespace

void ParameterList::add(const View* arrays, int count) {
    const View& p = arrays[0];
    bool good = is_float(p) && dense(p);
    for (int k = 1; k < count && good; ++k) good = alike(p, arrays[k]);
    if (!good) return skip();
    Parameter one;
    for (int k = 0; k < count; ++k) one.arrays[k] = arrays[k].data<char>();
    one.size = p.size();
    one.wide = p.type() == Type::float64;
    bytes += one.size * count * bytes_of(p.type());
    all.push_back(one);
    ends.push_back(one.size + (ends.empty() ? 0 : ends.back()));
}

void ParameterList::part(int count) {
    if (independent(all, count)) return;
    const size_t n = all.size() + skipped.size();
    *this = {};
    while (skipped.size() < n) skip();
}

bool ParameterRows::take(const View* arrays, int count, const int64_t* given, int64_t n) {
    const View& p = arrays[0];
    if (!is_float(p) || p.ndim() < 1) return false;
    const int64_t there = p.shape(0);
    std::vector<Extent> extents;
    for (int k = 0; k < count; ++k) {
        const View& a = arrays[k];
        if (a.type() != p.type() || a.ndim() != p.ndim() || !a.contiguous() || a.shape(0) != (k == 1 ? n : there) ||
            !std::equal(a.sizes + 1, a.sizes + a.dims, p.sizes + 1))
            return false;
        one.arrays[k] = a.data<char>();
        extents.push_back({one.arrays[k], one.arrays[k] + a.size() * bytes_of(a.type())});
    }
    std::sort(extents.begin(), extents.end());
    for (size_t k = 1; k < extents.size(); ++k)
        if (extents[k].begin < extents[k - 1].end) return false;
    one.wide = p.type() == Type::float64;
    width = there ? p.size() / there : 0;
    rows.assign(given, given + n);
    for (int64_t i = 0; i < n; ++i)
        if (rows[size_t(i)] < 0 || rows[size_t(i)] >= there || (i && rows[size_t(i)] <= rows[size_t(i) - 1])) return false;
    return true;
}

// Pieces of all parameters, several small ones or parts of a large one for each thread.
void run(const Method& method, const ParameterList& list) {
    if (list.all.empty()) return;
    parallel(list.ends.back(), GRAIN, [&](int64_t begin, int64_t end) {
        const Flushing flushing(method.flushes);
        size_t k = size_t(std::upper_bound(list.ends.begin(), list.ends.end(), begin) - list.ends.begin());
        for (; begin < end; ++k) {
            const Parameter& one = list.all[k];
            const int64_t start = list.ends[k] - one.size, stop = std::min(end, list.ends[k]);
            method.apply(one.wide, one.arrays, begin - start, stop - start);
            begin = stop;
        }
    });
}

void run(const Method& method, const ParameterRows& work) {
    const int64_t bytes = work.width * (work.one.wide ? 8 : 4), n = int64_t(work.rows.size());
    parallel(n, 1 + GRAIN / (work.width + 1), [&](int64_t begin, int64_t end) {
        const Flushing flushing(method.flushes);
        constexpr int64_t AHEAD = 8, LINE = 64;  // rows lie anywhere in memory: several are on their way at a time
        for (int64_t i = begin; i < end; ++i) {
            char* at[MOST_ARRAYS];
            for (int k = 0; k < method.count; ++k) {
                at[k] = work.one.arrays[k] + (k == 1 ? i : work.rows[size_t(i)]) * bytes;
                if (k == 1 || i + AHEAD >= end) continue;
                const char* next = work.one.arrays[k] + work.rows[size_t(i + AHEAD)] * bytes;
                for (int64_t b = 0; b < std::min<int64_t>(bytes, 16 * LINE); b += LINE) __builtin_prefetch(next + b, 1);
            }
            method.apply(work.one.wide, at, 0, work.width);
        }
    });
}

namespace {

constexpr int64_t CHUNK = 16384;

// The sum of squares, in an order of its own whatever the threads.
template <class T> double squares(const T* x, int64_t n) {
    constexpr int SUMS = 16;
    double sums[SUMS] = {};
    int64_t i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (int k = 0; k < SUMS; ++k) sums[k] += double(x[i + k]) * double(x[i + k]);
    for (int k = 0; i < n; ++i, ++k) sums[k] += double(x[i]) * double(x[i]);
    double total = 0;
    for (double s : sums) total += s;
    return total;
}

}  // namespace

double norm_of(const ParameterList& list) {
    std::vector<std::pair<const Parameter*, int64_t>> chunks;
    for (const Parameter& one : list.all)
        for (int64_t i = 0; i < one.size; i += CHUNK) chunks.emplace_back(&one, i);
    std::vector<double> sums(chunks.size());
    parallel(int64_t(chunks.size()), 1, [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
            const auto [one, i] = chunks[size_t(c)];
            const int64_t n = std::min(CHUNK, one->size - i);
            sums[size_t(c)] = one->wide ? squares(reinterpret_cast<const double*>(one->arrays[0]) + i, n)
                                        : squares(reinterpret_cast<const float*>(one->arrays[0]) + i, n);
        }
    });
    double total = 0;
    for (double s : sums) total += s;
    return std::sqrt(total);
}

}  // namespace fw::optim
