#include "attention/attention_grad.h"

#include <vector>

// The weights once more, block by block, from the row log-sum-exps.
//
// With P the weights, D = sum of g * out over the features: dS = P (g v^T - D), and dq = dS k, dk = dS^T q,
// dv = P^T g. A thread has a range of the keys of some heads: nobody else adds to its rows of dk and dv. Where
// that cuts the keys of a head into parts, each part has a dq of its own, and those are added in order. Where few keys
// are those of many heads, crews of these heads have a dk and dv of their own, which are added in order as well.
namespace fw {
namespace {

using namespace attention;

// The gradients that are wanted.
template <class T> struct Gradients {
    Operand<T> q, k, v, mask;
};

template <class T> struct Backward : Problem<T> {
    Operand<const T> g, out;
    const T* lse;
    Gradients<T> to;
    bool shared_q;             // several heads add to one dq, which begins as 0
    int64_t parts;             // of the keys
    int64_t crews;             // parts of the heads that add to the same dk and dv
    T* shares = nullptr;       // dk and dv of every crew of every group, if there are several
    int64_t share;             // numbers of one
    std::vector<T*> more;      // dq of every part but the first, (heads, queries, width)

    int64_t work() const { return this->queries * this->keys * (this->width + this->out_width) * 2; }  // of a head
};

// The axes that heads of different threads differ in, and those that one thread goes through.
struct KeySplit {
    std::vector<int64_t> groups{0}, members{0};  // head = group + member

    void take(int64_t size, int64_t step, bool together) {
        std::vector<int64_t>& list = together ? members : groups;
        std::vector<int64_t> longer;
        for (int64_t place : list)
            for (int64_t i = 0; i < size; ++i) longer.push_back(place + i * step);
        list = std::move(longer);
    }
};

// Where the gradients of one head go; of what is not wanted no matrix.
template <class T> struct Target {
    Matrix<T> q, k, v;
};

template <class T> void clear(Matrix<T> m, int64_t rows, int64_t width) {
    for (int64_t i = 0; m.p && i < rows; ++i) std::fill(m.p + i * m.row, m.p + i * m.row + width, T(0));
}

// One block of scores and what its derivative needs.
template <class T> class GradBlock {
  public:
    GradBlock(const Backward<T>& a, const Coins& coins)
        : a(a), coins(coins), wide(padded<T>(a.width)), out_wide(padded<T>(a.out_width)), room(size(a)),
          qt(room.take(a.width * QUERIES)), gt(room.take(a.out_width * QUERIES)), q(room.take(QUERIES * wide)),
          room_of_g(room.take(QUERIES * out_wide)), weights(room.take(BLOCK_SIZE)), ds(room.take(BLOCK_SIZE)),
          added(room.take(BLOCK_SIZE)), drop(room.take(BLOCK_SIZE)), rows(room.take(BLOCK_SIZE)),
          k(a.k, a.keys, a.width, a.queries, room), v(a.v, a.keys, a.out_width, a.queries, room),
          dq(room.take(QUERIES * wide)), out(room.take(a.out_width * QUERIES)) {}

    // The queries from `first` on with the keys [begin, end); what is wanted of their dq, dk and dv goes to `to`.
    void run(int64_t head, int64_t first, int64_t begin, int64_t end, const Target<T>& target, bool add) {
        const Matrix<T> to_q = target.q;
        const int64_t count = std::min(QUERIES, a.queries - first);
        if (begin >= end) return add ? void() : clear(to_q.from(first), count, a.width);
        width = padded<T>(count);
        take_queries(head, first, count);
        k.begin(head), v.begin(head);
        for (int64_t key = begin; key < end; key += KEYS) {
            Place<T> at{head, first, count, key, std::min(KEYS, end - key)};
            find_scores(k.left(key, at.keys), at.keys, a.width, q, qt, count, weights);
            product<T>(at.keys, width, a.out_width, v.left(key, at.keys), gt, QUERIES,
                       ds, QUERIES, false);
            take_mask(a, at, added, rows);
            if (a.p > 0) take_coins(a, coins, at, drop, rows);
            const bool open = a.masking == Masking::causal && key + at.keys <= first + 1;
            choosing_masking(open ? Masking::none : a.masking, [&](auto m) { differentiate<m.value>(at); });
            spread(at, target, key > begin);
        }
        if (to_q.p) give_queries(to_q.from(first), count, add);
    }

  private:
    const Backward<T>& a;
    const Coins& coins;
    const int64_t wide, out_wide;
    int64_t width = 0;
    Room<T> room;
    T *qt, *gt, *q, *room_of_g, *weights, *ds, *added, *drop, *rows;
    RowsOfHead<T> k, v;
    T *dq, *out;
    Matrix<const T> g;
    T lse[QUERIES], d[QUERIES];

    static int64_t size(const Backward<T>& a) {
        const int64_t wide = padded<T>(a.width), out_wide = padded<T>(a.out_width);
        return (a.width + 2 * a.out_width + 2 * wide + out_wide) * QUERIES + 5 * BLOCK_SIZE +
               RowsOfHead<T>::numbers(a.keys, a.width, a.queries) +
               RowsOfHead<T>::numbers(a.keys, a.out_width, a.queries);
    }

    // Rows of q (times the scale) and g, as they lie and turned, and D, for all queries side by side.
    void take_queries(int64_t head, int64_t first, int64_t count) {
        pack_queries(qt, a.q.at(head).from(first), count, a.width);
        pack_queries(gt, a.g.at(head).from(first), count, a.out_width);
        pack_queries(out, a.out.at(head).from(first), count, a.out_width);
        pack_rows(q, a.q.at(head).from(first), count, a.width);
        g = as_right(a.g.at(head).from(first), count, a.out_width, room_of_g);
        scale_by(a.scale, qt, a.width * QUERIES);
        scale_by(a.scale, q, count * wide);
        for (int64_t i = 0; i < QUERIES; ++i) lse[i] = i < count ? a.lse[head * a.queries + first + i] : T(0);
        for (int64_t i = 0; i < QUERIES; i += lanes<T>) {
            Vec<T> sum{};
            for (int64_t f = 0; f < a.out_width; ++f)
                sum = fma<T>(load(gt + f * QUERIES + i), load(out + f * QUERIES + i), sum);
            store<T>(d + i, sum);
        }
    }

    // From scores and g v^T: the weights that multiply the values, and dS.
    template <Masking Here> [[gnu::noinline]] void differentiate(const Place<T>& at) {
        for (int64_t i = 0; i < width; i += lanes<T>) {
            const Vec<T> top = load(lse + i), mean = load(d + i);
            const Mask<T> empty = top == splat(-LEAST<T>);
            const Int<T> lead = Int<T>(at.query + i - at.key);
            for (int64_t j = 0; j < at.keys; ++j) {
                const int64_t place = j * QUERIES + i;
                auto [s, closed] = masked<Here>(load(weights + place), added + place, Int<T>(lead - j));
                Vec<T> w = decay<T>(s - top), dw = load(ds + place);
                if constexpr (Here == Masking::added) w = select<T>(empty, Vec<T>{}, w);
                Vec<T> kept = w;
                if (a.p > 0) kept = w * load(drop + place), dw = dw * load(drop + place);
                Vec<T> change = w * (dw - mean);
                if constexpr (Here == Masking::causal || Here == Masking::closed)
                    change = select<T>(closed, Vec<T>{}, change);
                store<T>(weights + place, kept);
                store<T>(ds + place, change);
            }
        }
    }

    // What the block adds to dk, dv, the mask's gradient and (in `dq`) to dq.
    void spread(const Place<T>& at, const Target<T>& to, bool add) {
        auto add_rows = [&](const Matrix<T>& to, const T* block, const T* right, int64_t row, int64_t cols) {
            if (!to.p) return;
            Matrix<T> c = to.from(at.key);
            product<T>(at.keys, cols, at.queries, {block, QUERIES, 1}, right, row, c.p, c.row, true);
        };
        add_rows(to.v, weights, g.p, g.row, a.out_width);
        add_rows(to.k, ds, q, wide, a.width);
        if (to.q.p) {
            const Matrix<const T> right = k.right(at.key, at.keys);
            product<T>(at.queries, a.width, at.keys, {ds, 1, QUERIES}, right.p, right.row, dq, wide, add);
        }
        if (!a.to.mask.wanted()) return;
        Matrix<T> m = a.to.mask.at(at.head);
        m.p += at.query * m.row + at.key * m.col;
        for (int64_t i = 0; i < at.queries; ++i)
            for (int64_t j = 0; j < at.keys; ++j) m.p[i * m.row + j * m.col] += ds[j * QUERIES + i];
    }

    void give_queries(Matrix<T> to, int64_t count, bool add) {
        const Vec<T> scale = splat(a.scale);
        for (int64_t i = 0; i < count; ++i)
            vectors<T>(0, a.width, [&](int64_t e, auto part, int) {
                T* p = to.p + i * to.row + e;
                Vec<T> sum = take(dq + i * wide + e, part) * scale;  // what lies beside may be no normal number
                put(p, add ? take(p, part) + sum : sum, part);
            });
    }
};

template <class T> bool all_finite(const Backward<T>& a, int64_t head) {
    return finite<T>(a.q.at(head), a.queries, a.width) && finite<T>(a.g.at(head), a.queries, a.out_width) &&
           finite<T>(a.k.at(head), a.keys, a.width) && finite<T>(a.v.at(head), a.keys, a.out_width);
}

// dk and dv of one crew of a group.
template <class T> Target<T> share_of(const Backward<T>& a, int64_t group, int64_t crew) {
    T* start = a.shares + (group * a.crews + crew) * a.share;
    Target<T> to{};
    if (a.to.k.wanted()) to.k = {start, a.width, 1}, start += a.keys * a.width;
    if (a.to.v.wanted()) to.v = {start, a.out_width, 1};
    return to;
}

template <class T> void all(const Backward<T>& a, const KeySplit& split) {
    const int64_t blocks = ceil_div(a.keys, KEYS), groups = int64_t(split.groups.size()), members = int64_t(split.members.size());
    const Coins coins(a.key, a.p);
    const int64_t work = std::max<int64_t>(1, ceil_div(members, a.crews) * a.work() / a.parts);
    parallel(groups * a.parts * a.crews, std::max<int64_t>(1, worth(GRAIN) / work), [&](int64_t first, int64_t last) {
        GradBlock<T> block(a, coins);
        for (int64_t t = first; t < last; ++t) {
            const int64_t number = t / a.crews / a.parts, group = split.groups[size_t(number)];
            const int64_t part = t / a.crews % a.parts, crew = t % a.crews;
            const int64_t begin = part * blocks / a.parts * KEYS;
            const int64_t end = std::min((part + 1) * blocks / a.parts * KEYS, a.keys);
            auto each = [&](auto&& body) {
                for (int64_t m = crew * members / a.crews; m < (crew + 1) * members / a.crews; ++m) {
                    const int64_t head = group + split.members[size_t(m)];
                    Target<T> to = a.crews > 1 ? share_of(a, number, crew) : Target<T>{{}, a.to.k.at(head), a.to.v.at(head)};
                    to.q = a.to.q.at(head);
                    if (to.q.p && part) to.q = {a.more[size_t(part - 1)] + head * a.queries * a.width, a.width, 1};
                    body(head, to);
                }
            };
            each([&](int64_t, const Target<T>& to) {
                clear(to.k.from(begin), end - begin, a.width);
                clear(to.v.from(begin), end - begin, a.out_width);
            });
            each([&](int64_t head, const Target<T>& to) {
                const bool skips = a.may_skip() && all_finite(a, head);
                for (int64_t i = 0; i < a.queries; i += QUERIES)
                    block.run(head, i, begin, std::min(end, a.last_key(i + QUERIES, skips)), to, a.shared_q && !part);
            });
        }
    });
}

template <class T> void add_rows(Matrix<T> to, Matrix<T> more, int64_t rows, int64_t width, bool add) {
    for (int64_t i = 0; to.p && i < rows; ++i)
        for (int64_t e = 0; e < width; ++e) to.p[i * to.row + e] = (add ? to.p[i * to.row + e] : T(0)) + more.p[i * more.row + e];
}

template <class T> void add_crews(const Backward<T>& a, const KeySplit& split) {
    if (a.crews == 1) return;
    parallel(int64_t(split.groups.size()), grain_of(a.crews * a.share), [&](int64_t begin, int64_t end) {
        for (int64_t group = begin; group < end; ++group)
            for (int64_t crew = 0; crew < a.crews; ++crew) {
                const Target<T> share = share_of(a, group, crew);
                add_rows(a.to.k.at(split.groups[size_t(group)]), share.k, a.keys, a.width, crew > 0);
                add_rows(a.to.v.at(split.groups[size_t(group)]), share.v, a.keys, a.out_width, crew > 0);
            }
    });
}

template <class T> void add_parts(const Backward<T>& a) {
    if (!a.to.q.wanted() || a.parts == 1) return;
    const int64_t rows = a.heads.count * a.queries;
    parallel(rows, a.shared_q ? rows : grain_of(a.width * a.parts), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
            Matrix<T> m = a.to.q.at(r / a.queries).from(r % a.queries);
            for (const T* more : a.more)
                for (int64_t e = 0; e < a.width; ++e) m.p[e] += more[r * a.width + e];
        }
    });
}

// Which heads one thread must go through: those that add to one gradient.
template <class T> KeySplit split_of(const Backward<T>& a, const View (&wanted)[4]) {
    KeySplit split;
    int64_t step = a.heads.count;
    for (int d = 0; d < a.heads.ndim; ++d) {
        bool together = false;
        for (const View& x : wanted) {
            if (!x.start) continue;
            int own = d - a.heads.ndim + x.ndim() - 2;
            together = together || own < 0 || x.shape(own) == 1;
        }
        step /= a.heads.shape[d];
        split.take(a.heads.shape[d], step, together && a.heads.shape[d] > 1);
    }
    return split;
}

// So many that eight threads have work; not more with more threads, so that the sums stay the same.
template <class T> int64_t parts_of(const Backward<T>& a, int64_t groups) {
    const bool one_column = a.to.mask.wanted() && a.to.mask.first.col == 0;
    return one_column ? 1 : std::min(ceil_div(a.keys, KEYS), ceil_div(8, groups));
}

// So many that eight threads have work, if all heads of a group add to one dk and one dv and to nothing else.
template <class T> int64_t crews_of(const Backward<T>& a, const KeySplit& split) {
    if (a.shared_q || a.to.mask.wanted()) return 1;
    for (int64_t head : split.members)
        if (a.to.k.at(head).p != a.to.k.first.p || a.to.v.at(head).p != a.to.v.first.p) return 1;
    const int64_t members = int64_t(split.members.size()), most = members * a.work() / GRAIN;
    const int64_t wanted = ceil_div(8, int64_t(split.groups.size()) * a.parts);
    return std::max<int64_t>(1, std::min({wanted, most, members / 2}));
}

// Numbers of dk and dv of a crew, whole lines of the cache.
template <class T> int64_t share_size(const Backward<T>& a) {
    const int64_t width = (a.to.k.wanted() ? a.width : 0) + (a.to.v.wanted() ? a.out_width : 0);
    return ceil_div(a.keys * width, 16) * 16;
}

bool shared(const Heads& heads, const View& x) {
    int64_t own = 1;
    for (int d = 0; d < x.ndim() - 2; ++d) own *= x.shape(d);
    return own < heads.count;
}

void fill_zero(const View& x) { std::memset(x.start, 0, size_t(x.size() * bytes_of(x.type()))); }

// Of a dq that one part of the keys has for itself.
template <class T> int64_t numbers_of_part(const Backward<T>& a) {
    const int64_t sizes[] = {a.heads.count, a.queries, a.width, a.parts};
    if (!countable(sizes, 4)) throw std::bad_alloc();
    return a.heads.count * a.queries * a.width;
}

}  // namespace

namespace attention {

template <class T>
void attend_grad(const Problem<T>& problem, const Operand<const T>& g, const Operand<const T>& out, const T* lse,
                 const View (&to)[4]) {
    Backward<T> a{problem, g, out, lse};
    Operand<T>* wanted[] = {&a.to.q, &a.to.k, &a.to.v, &a.to.mask};
    for (int i = 0; i < 4; ++i)
        if (to[i].start) *wanted[i] = {a.heads, to[i]};
    const KeySplit split = split_of(a, to);
    a.parts = parts_of(a, int64_t(split.groups.size()));
    a.shared_q = to[0].start && shared(a.heads, to[0]);
    a.crews = crews_of(a, split), a.share = share_size(a);
    const int64_t sizes[] = {int64_t(split.groups.size()), a.crews, a.share};
    if (a.crews > 1 && !countable(sizes, 3)) throw std::bad_alloc();
    Borrowed shares(a.crews > 1 ? sizes[0] * sizes[1] * sizes[2] : 0, sizeof(T));
    a.shares = static_cast<T*>(shares.start);
    const int64_t further = a.to.q.wanted() ? a.parts - 1 : 0, each = further ? numbers_of_part(a) : 0;
    Borrowed memory(further * each, sizeof(T));
    for (int64_t i = 0; i < further; ++i) a.more.push_back(static_cast<T*>(memory.start) + i * each);
    if (a.shared_q) fill_zero(to[0]);
    if (to[3].start) fill_zero(to[3]);
    all(a, split);
    add_parts(a);
    add_crews(a, split);
}

template void attend_grad(const Problem<float>&, const Operand<const float>&, const Operand<const float>&, const float*,
                          const View (&)[4]);
template void attend_grad(const Problem<double>&, const Operand<const double>&, const Operand<const double>&, const double*,
                          const View (&)[4]);

}  // namespace attention
}  // namespace fw
