// Reductions as one or two folds: a task says which, and what comes between and after them.
#pragma once

#include <atomic>
#include <vector>

#include "reduce_fold.h"

namespace fw {
namespace reduce {

// What a task of one fold leaves out. Of two, `Second` maps elements with `center(result of the first)`.
struct OneFold {
    static constexpr bool twice = false;
};
struct TwoFolds {
    static constexpr bool twice = true;
};

// Divided into pieces, the folds of all results come one after the other.
template <class Task, class Source>
void rows_in_pieces(const Plan& plan, const Source& source, typename Task::T* out, int64_t blocks, int64_t pieces,
                    const Task& task) {
    using T = typename Task::T;
    using W = typename Task::First::W;
    std::vector<W> parts(size_t(plan.outer * pieces), Task::First::none());
    std::vector<T> centers(static_cast<size_t>(plan.outer));
    auto fold = [&](auto f) {
        using F = decltype(f);
        std::atomic<bool> decided{false};
        parallel(plan.outer * pieces, 1, [&](int64_t begin, int64_t end) {
            for (int64_t u = begin; u < end && !decided; ++u) {
                Walk at(plan.kept, plan.nkept, u / pieces);
                int64_t p = u % pieces, first = blocks * p / pieces, last = blocks * (p + 1) / pieces;
                int64_t ahead = std::min(plan.inner.size, last * BLOCK<T>) - first * BLOCK<T>;
                if (plan.nfolded) ahead = 0;
                auto&& reader = source.reader(ahead * int64_t(sizeof(T)));
                parts[u] = fold_row<F>(plan, reader, at.x, first, last, centers[u / pieces]);
                if (F::stops && plan.outer == 1 && F::decides(parts[u])) decided = true;
            }
        });
        for (int64_t r = 0; r < plan.outer; ++r) {
            Tree<F> tree;
            for (int64_t p = 0; p < pieces; ++p) tree.push(parts[r * pieces + p]);
            parts[r] = tree.total();
        }
    };
    fold(typename Task::First());
    if constexpr (Task::twice) {
        for (int64_t r = 0; r < plan.outer; ++r) centers[r] = task.center(parts[r]);
        fold(typename Task::Second());
    }
    Walk at(plan.kept, plan.nkept, 0);
    for (int64_t r = 0; r < plan.outer; ++r, at.next()) out[at.out] = task.finish(parts[r], centers[r]);
}

template <class Task, class Source>
void rows(const Plan& plan, const Source& source, typename Task::T* out, const Task& task) {
    using T = typename Task::T;
    int64_t blocks = plan.lines * ((plan.inner.size + BLOCK<T> - 1) / BLOCK<T>);
    int64_t pieces = pieces_of(plan.outer, plan.count());
    if (pieces > 1) return rows_in_pieces(plan, source, out, blocks, pieces, task);
    int64_t bytes = plan.inner.size * int64_t(sizeof(T));
    bool dense = plan.nfolded == 0 && plan.nkept == 1 && plan.kept[0].step == bytes;
    parallel(plan.outer, std::max<int64_t>(1, GRAIN / plan.count()), [&](int64_t begin, int64_t end) {
        Walk at(plan.kept, plan.nkept, begin);
        auto&& reader = source.reader(dense ? (end - begin) * bytes : 0);
        for (int64_t r = begin; r < end; ++r, at.next()) {
            auto v = fold_row<typename Task::First>(plan, reader, at.x, 0, blocks, T());
            T center = T();
            if constexpr (Task::twice) {
                center = task.center(v);
                v = fold_row<typename Task::Second>(plan, reader, at.x, 0, blocks, center);
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

template <class Task> void finish_strip(const Plan& plan, const Strip& s, const typename Task::T* v,
                                        const typename Task::T* centers, typename Task::T* out,
                                        const Task& task) {
    using T = typename Task::T;
    for (int64_t j = 0; j < s.width; ++j)
        out[s.out + j * plan.inner.out] = task.finish(v[j], Task::twice ? centers[j] : T());
}

template <class Task, class Source>
void columns_in_pieces(const Strips& strips, const Source& source, typename Task::T* out, int64_t pieces,
                       const Task& task) {
    using T = typename Task::T;
    const Plan& plan = strips.plan;
    int64_t room = Lines<typename Task::First>::padded(strips.width);
    std::vector<T> parts(size_t(strips.count * pieces * room)), centers(size_t(strips.count * room));
    auto fold = [&](auto f, auto&& use) {  // use(strip's number, its sums)
        using F = decltype(f);
        parallel(strips.count * pieces, 1, [&](int64_t begin, int64_t end) {
            for (int64_t u = begin; u < end; ++u) {
                Strip s = strips[u / pieces];
                int64_t p = u % pieces;
                const T* sums = fold_columns<F>(plan, source, s.x, s.width, plan.lines * p / pieces,
                                                plan.lines * (p + 1) / pieces, &centers[u / pieces * room]);
                std::copy_n(sums, s.width, &parts[u * room]);
            }
        });
        for (int64_t i = 0; i < strips.count; ++i) {
            Lines<F> sums(strips[i].width, pieces);
            for (int64_t p = 0; p < pieces; ++p) {
                std::copy_n(&parts[(i * pieces + p) * room], strips[i].width, sums.line());
                sums.put_aside();
            }
            use(i, sums.total());
        }
    };
    auto finish = [&](int64_t i, const T* v) {
        finish_strip(plan, strips[i], v, &centers[i * room], out, task);
    };
    if constexpr (Task::twice) {
        fold(typename Task::First(), [&](int64_t i, const T* v) {
            for (int64_t j = 0; j < strips[i].width; ++j) centers[i * room + j] = task.center(v[j]);
        });
        fold(typename Task::Second(), finish);
    } else {
        fold(typename Task::First(), finish);
    }
}

constexpr int64_t SECOND_CACHE = 256 << 10;  // bytes: what is gone over twice should fit

template <class Task, class Source>
void columns(const Plan& plan, const Source& source, typename Task::T* out, const Task& task) {
    using T = typename Task::T;
    constexpr int64_t longer = std::decay_t<decltype(source.reader(0))>::stays ? 1 : 4;  // what is read once, in order
    int64_t most = STRIP<T> * longer, unit = 4 * lanes<T>;
    if (Task::twice) {
        int64_t fits = SECOND_CACHE / int64_t(sizeof(T)) / plan.lines;
        if (fits >= most / 4) most = std::min(most, fits / unit * unit);  // narrower strips are read slowly
    }
    Strips strips(plan, most, unit);
    int64_t each = plan.lines * std::min(strips.width, plan.inner.size);
    int64_t pieces = pieces_of(strips.count, each);
    if (pieces > 1) return columns_in_pieces(strips, source, out, pieces, task);
    parallel(strips.count, std::max<int64_t>(1, GRAIN / each), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            Strip s = strips[i];
            T* centers = nullptr;
            const T* v = fold_columns<typename Task::First>(plan, source, s.x, s.width, 0, plan.lines, nullptr);
            if constexpr (Task::twice) {
                centers = scratch<T>(1, s.width);
                for (int64_t j = 0; j < s.width; ++j) centers[j] = task.center(v[j]);
                v = fold_columns<typename Task::Second>(plan, source, s.x, s.width, 0, plan.lines, centers);
            }
            finish_strip(plan, s, v, centers, out, task);
        }
    });
}

// The results of a task for the dimensions `dims` of x, or not_implemented().
template <class Task> nb::object run(const Array& x, nb::handle dims, bool keepdim, Task task) {
    uint32_t mask;
    Plan plan;
    if (!read_dims(dims, x.ndim(), mask) || !plan.make(x, mask)) return not_implemented();
    Array out = results_array(x, mask, keepdim, x.type());
    task.count = plan.count();
    {
        Release release(x.size() * int64_t(sizeof(typename Task::T)));
        auto fold = plan.rows ? rows<Task, InMemory> : columns<Task, InMemory>;
        fold(plan, InMemory{x.data<char>()}, out.data<typename Task::T>(), task);
    }
    return give(out);
}

}  // namespace reduce
}  // namespace fw
