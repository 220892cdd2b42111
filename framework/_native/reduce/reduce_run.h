// Reductions as one or two folds: a task says which, and what comes between and after them.
#pragma once

#include <atomic>
#include <vector>

#include "base/short_rows.h"
#include "reduce/reduce_fold.h"

namespace fw {
namespace reduce {

// What a task of one fold leaves out. Of two, `Second` maps elements with `center(result of the first)`.
// by_vectors: whether `finish_all` finishes a vector of results.
struct OneFold {
    static constexpr bool twice = false, by_vectors = false;
};
struct TwoFolds {
    static constexpr bool twice = true, by_vectors = false;
};

// The folds of a task, as functions: what walks through strips and pieces is compiled once for each type of numbers.
// `second` says which of two folds is meant.
template <class Number, class From> class Folds {
  public:
    using T = Number;
    using W = typename WideOf<T>::type;
    using Source = From;
    const bool twice;

    // Blocks [begin, end) of a row, and lines [begin, end) of some columns.
    virtual W row(bool second, const Plan& plan, const Source& source, int64_t ahead, int64_t x, int64_t begin,
                  int64_t end, T shift) const = 0;
    virtual const T* columns(bool second, const Plan& plan, typename Source::Reading& reader, int64_t x, int64_t width,
                             int64_t begin, int64_t end, const T* shift) const = 0;
    // The pieces of a result as one; those of a strip lie `room` apart.
    virtual W joined(bool second, const W* parts, int64_t pieces) const = 0;
    virtual const T* joined(bool second, const T* parts, int64_t width, int64_t room, int64_t pieces) const = 0;
    virtual W none() const = 0;
    virtual bool decides(W v) const = 0;  // whether no other piece can change the result
    virtual T center(W v) const = 0;
    virtual T finish(W v, T center) const = 0;
    virtual void center(const T* v, int64_t width, T* centers) const = 0;
    virtual void finish(const T* v, const T* centers, int64_t width, T* out, int64_t step) const = 0;

  protected:
    explicit Folds(bool twice) : twice(twice) {}
    ~Folds() = default;
};

template <class Task, class Source> class FoldsOf final : public Folds<typename Task::T, Source> {
    using Base = Folds<typename Task::T, Source>;
    using T = typename Base::T;
    using W = typename Base::W;
    const Task& task;

    template <class Body> static auto choose(bool second, Body&& body) {  // body(a fold)
        if constexpr (Task::twice)
            if (second) return body(typename Task::Second());
        (void)second;
        return body(typename Task::First());
    }

  public:
    explicit FoldsOf(const Task& task) : Base(Task::twice), task(task) {}

    W row(bool second, const Plan& plan, const Source& source, int64_t ahead, int64_t x, int64_t begin, int64_t end,
          T shift) const override {
        return choose(second, [&](auto f) {
            auto&& reader = source.reader(ahead);
            return fold_blocks<decltype(f)>(plan, reader, x, begin, end, shift);
        });
    }
    const T* columns(bool second, const Plan& plan, typename Source::Reading& reader, int64_t x, int64_t width, int64_t begin,
                     int64_t end, const T* shift) const override {
        if constexpr (Source::rows_only) return nullptr;
        else return choose(second, [&](auto f) {
            return fold_columns<decltype(f)>(plan, reader, x, width, begin, end, shift);
        });
    }
    W joined(bool second, const W* parts, int64_t pieces) const override {
        return choose(second, [&](auto f) {
            Tree<decltype(f)> tree;
            for (int64_t p = 0; p < pieces; ++p) tree.push(parts[p]);
            return tree.total();
        });
    }
    const T* joined(bool second, const T* parts, int64_t width, int64_t room, int64_t pieces) const override {
        return choose(second, [&](auto f) {
            Lines<decltype(f)> sums(width, pieces);
            for (int64_t p = 0; p < pieces; ++p) {
                std::copy_n(parts + p * room, width, sums.line());
                sums.put_aside();
            }
            return sums.total();
        });
    }
    W none() const override { return Task::First::none(); }
    bool decides(W v) const override { return Task::First::stops && Task::First::decides(v); }
    T center(W v) const override {
        if constexpr (Task::twice) return task.center(v);
        else return (void)v, T();
    }
    T finish(W v, T center) const override { return task.finish(v, center); }
    void center(const T* v, int64_t width, T* centers) const override {
        if constexpr (Task::twice)
            for (int64_t j = 0; j < width; ++j) centers[j] = task.center(v[j]);
        else (void)v, (void)width, (void)centers;
    }
    void finish(const T* v, const T* centers, int64_t width, T* out, int64_t step) const override {
        int64_t j = 0;
        if constexpr (Task::by_vectors)
            for (; step == 1 && j + lanes<T> <= width; j += lanes<T>) store<T>(out + j, task.finish_all(load(v + j)));
        for (; j < width; ++j) out[j * step] = task.finish(v[j], Task::twice ? centers[j] : T());
    }
};

// Divided into pieces, the folds of all results come one after the other.
template <class Folds>
void rows_in_pieces(const Plan& plan, const typename Folds::Source& source, typename Folds::T* out, int64_t blocks,
                    int64_t pieces, const Folds& folds) {
    using T = typename Folds::T;
    using W = typename Folds::W;
    std::vector<W> parts(size_t(plan.outer * pieces), folds.none());
    std::vector<T> centers(static_cast<size_t>(plan.outer));
    for (bool second : {false, true}) {
        if (second && !folds.twice) break;
        for (int64_t r = 0; second && r < plan.outer; ++r) centers[r] = folds.center(parts[r]);
        std::atomic<bool> decided{false};
        parallel(plan.outer * pieces, 1, [&](int64_t begin, int64_t end) {
            for (int64_t u = begin; u < end && !decided; ++u) {
                Walk at(plan.kept, plan.nkept, u / pieces);
                int64_t p = u % pieces, first = blocks * p / pieces, last = blocks * (p + 1) / pieces;
                int64_t ahead = std::min(plan.inner.size, last * BLOCK<T>) - first * BLOCK<T>;
                if (plan.nfolded) ahead = 0;
                parts[u] = folds.row(second, plan, source, ahead * int64_t(sizeof(T)), at.x, first, last,
                                     centers[u / pieces]);
                if (plan.outer == 1 && folds.decides(parts[u])) decided = true;
            }
        });
        for (int64_t r = 0; r < plan.outer; ++r) parts[r] = folds.joined(second, &parts[r * pieces], pieces);
    }
    Walk at(plan.kept, plan.nkept, 0);
    for (int64_t r = 0; r < plan.outer; ++r, at.next()) out[at.out] = folds.finish(parts[r], centers[r]);
}

// Rows of at most one vector that lie one after another, `lanes` of them at a time: as `fold_row` joins the lanes.
template <class Task, int W>
void short_rows(const typename Task::T* from, typename Task::T* out, int64_t k, int64_t count, const Task& task) {
    using T = typename Task::T;
    constexpr int n = lanes<T>;
    const ShortRows<T, W> whole{k};
    const Mask<T> inside = whole.inside();
    auto fold = [inside](auto f, const ShortRows<T, W>& rows, const T* at, Vec<T> shifts) __attribute__((always_inline)) {
        using F = decltype(f);
        Vec<T> v[W];
#pragma GCC unroll 4
        for (int i = 0; i < W; ++i) {
            v[i] = rows.at(at + i * rows.together * rows.k, F::neutral());
            if constexpr (!F::plain) {
                const Vec<T> shift = F::shifts ? rows.spread(shifts, i) : Vec<T>{};
                v[i] = select<T>(inside, F::map(v[i], shift), splat<T>(F::neutral()));
            }
        }
        return joined_groups<T, W, W / 2>(v, [](Vec<T> a, Vec<T> b) { return F::join(a, b); });
    };
    for (int64_t r = 0; r < count; r += n) {
        const int64_t left = std::min<int64_t>(n, count - r);
        alignas(64) T room[n * W], made[n], centers[n] = {};
        const ShortRows<T, W> rows{left < n ? W : k};
        if (left < n) whole.copy(from + r * k, k, left, Task::First::neutral(), room);
        const T* at = left < n ? room : from + r * k;
        const Vec<T> first = fold(typename Task::First(), rows, at, Vec<T>{});
        if constexpr (Task::by_vectors) {
            if (left == n) store<T>(out + r, task.finish_all(first));
            else store_part<T>(out + r, task.finish_all(first), left);
            continue;
        }
        store<T>(made, first);
        if constexpr (Task::twice) {
            for (int i = 0; i < n; ++i) centers[i] = task.center(typename WideOf<T>::type(made[i]));
            store<T>(made, fold(typename Task::Second(), rows, at, load(centers)));
        }
        for (int64_t i = 0; i < left; ++i) out[r + i] = task.finish(typename WideOf<T>::type(made[i]), centers[i]);
    }
}

template <class Task, class Source>
void rows(const Plan& plan, const Source& source, typename Task::T* out, const Task& task) {
    using T = typename Task::T;
    int64_t blocks = plan.lines * ((plan.inner.size + BLOCK<T> - 1) / BLOCK<T>);
    int64_t pieces = pieces_of(plan.outer, plan.count());
    if (pieces > 1) {
        const FoldsOf<Task, Source> folds(task);
        return rows_in_pieces<Folds<T, Source>>(plan, source, out, blocks, pieces, folds);
    }
    int64_t bytes = plan.inner.size * int64_t(sizeof(T));
    bool dense = plan.nfolded == 0 && plan.nkept == 1 && plan.kept[0].step == bytes;
    if constexpr (std::is_same<Source, InMemory>::value && sizeof(T) >= 4) {
        const int64_t k = plan.inner.size;
        if (dense && plan.kept[0].out == 1 && k > 1 && k <= lanes<T> && plan.outer >= lanes<T>) {
            const T* from = source.template at<T>(0, 0);
            return with_short_rows<T>(k, k, [&](auto w) {
                parallel(plan.outer, std::max<int64_t>(lanes<T>, GRAIN / k / lanes<T> * lanes<T>), [&](int64_t begin, int64_t end) {
                    short_rows<Task, w>(from + begin * k, out + begin, k, end - begin, task);
                });
            });
        }
    }
    parallel(plan.outer, std::max<int64_t>(1, GRAIN / plan.count()), [&](int64_t begin, int64_t end) {
        Walk at(plan.kept, plan.nkept, begin);
        auto&& reader = source.reader(dense ? (end - begin) * bytes : 0);
        for (int64_t r = begin; r < end; ++r, at.next()) {
            auto v = fold_row<typename Task::First>(plan, reader, at.x, blocks, T());
            T center = T();
            if constexpr (Task::twice) {
                center = task.center(v);
                v = fold_row<typename Task::Second>(plan, reader, at.x, blocks, center);
            }
            out[at.out] = task.finish(v, center);
        }
    });
}

// A strip of columns of one line of results.
struct Strip {
    int64_t x, out, width;
};

struct Strips {
    const Plan& plan;
    int64_t width, across, count;

    Strips(const Plan& plan, int64_t most, int64_t unit) : plan(plan) {
        int64_t n = plan.inner.size, wanted = (n + most - 1) / most;
        width = ((n + wanted - 1) / wanted + unit - 1) / unit * unit;
        across = (n + width - 1) / width;
        count = plan.outer * across;
    }
    Strip operator[](int64_t i) const {
        Walk at(plan.kept, plan.nkept, i / across);
        int64_t j = i % across * width;
        return {at.x + j * plan.inner.step, at.out + j * plan.inner.out,
                std::min(width, plan.inner.size - j)};
    }
};

template <class Folds>
void columns_in_pieces(const Strips& strips, const typename Folds::Source& source, typename Folds::T* out,
                       int64_t pieces, const Folds& folds) {
    using T = typename Folds::T;
    const Plan& plan = strips.plan;
    const int64_t room = (strips.width + lanes<T> - 1) / lanes<T> * lanes<T>;
    std::vector<T> parts(size_t(strips.count * pieces * room)), centers(size_t(strips.count * room));
    for (bool second : {false, true}) {
        if (second && !folds.twice) break;
        parallel(strips.count * pieces, 1, [&](int64_t begin, int64_t end) {
            for (int64_t u = begin; u < end; ++u) {
                Strip s = strips[u / pieces];
                const int64_t p = u % pieces, first = plan.lines * p / pieces, last = plan.lines * (p + 1) / pieces;
                auto&& reader = source.reader(bytes_of_lines<T>(plan, s.width, last - first));
                const T* sums = folds.columns(second, plan, reader, s.x, s.width, first, last, &centers[u / pieces * room]);
                std::copy_n(sums, s.width, &parts[u * room]);
            }
        });
        for (int64_t i = 0; i < strips.count; ++i) {
            Strip s = strips[i];
            const T* v = folds.joined(second, &parts[i * pieces * room], s.width, room, pieces);
            if (folds.twice && !second) folds.center(v, s.width, &centers[i * room]);
            else folds.finish(v, &centers[i * room], s.width, out + s.out, plan.inner.out);
        }
    }
}

constexpr int64_t SECOND_CACHE = 256 << 10;  // bytes: what is gone over twice should fit

template <class Folds>
void columns(const Plan& plan, const typename Folds::Source& source, typename Folds::T* out, const Folds& folds) {
    using T = typename Folds::T;
    constexpr int64_t longer = std::decay_t<decltype(source.reader(0))>::stays ? 1 : 4;  // what is read once, in order
    int64_t most = STRIP<T> * longer, unit = 4 * lanes<T>;
    if (folds.twice) {
        int64_t fits = SECOND_CACHE / int64_t(sizeof(T)) / plan.lines;
        if (fits >= most / 4) most = std::min(most, fits / unit * unit);  // narrower strips are read slowly
    }
    Strips strips(plan, most, unit);
    int64_t each = plan.lines * std::min(strips.width, plan.inner.size);
    int64_t pieces = pieces_of(strips.count, each);
    if (pieces > 1) return columns_in_pieces(strips, source, out, pieces, folds);
    const int64_t bytes = bytes_of_lines<T>(plan, plan.inner.size, plan.lines);
    const bool one_after_another = strips.across == 1 && (plan.nkept == 0 || (plan.nkept == 1 && plan.kept[0].step == bytes));
    parallel(strips.count, std::max<int64_t>(1, GRAIN / each), [&](int64_t begin, int64_t end) {
        auto&& reader = source.reader(one_after_another ? (end - begin) * bytes : 0);
        for (int64_t i = begin; i < end; ++i) {
            Strip s = strips[i];
            T* centers = nullptr;
            const T* v = folds.columns(false, plan, reader, s.x, s.width, 0, plan.lines, nullptr);
            if (folds.twice) {
                centers = scratch<T>(1, s.width);
                folds.center(v, s.width, centers);
                v = folds.columns(true, plan, reader, s.x, s.width, 0, plan.lines, centers);
            }
            folds.finish(v, centers, s.width, out + s.out, plan.inner.out);
        }
    });
}

// The results of a task, into `out`.
template <class Task, class Source>
void run_plan(const Plan& plan, const Source& source, typename Task::T* out, Task& task) {
    task.count = plan.count();
    if (plan.rows) return rows(plan, source, out, task);
    const FoldsOf<Task, Source> folds(task);
    columns<Folds<typename Task::T, Source>>(plan, source, out, folds);
}

}  // namespace reduce
}  // namespace fw
