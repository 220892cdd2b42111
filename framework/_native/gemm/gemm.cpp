#include <algorithm>

#include "gemm/gemm_share.h"
#include "gemm/gemv.h"
#include "base/pool_internal.h"
#include "base/scratch.h"

namespace fw {
namespace {

// A block of A, ROWS x STEPS, stays in the level 2 cache; one of B, STEPS x COLUMNS, in the last level.
// Steps of one sum: with doubles fewer, since sums of 384 lose more digits than those of other libraries.
// Processors with AVX-512 have 1 MB of the former at least: C is read and written again less often then. Where a block of B
// has so few bytes (NEAR_BYTES) that it stays in that cache, too, C is written line by line.
#if defined(FW_AVX512)
constexpr int64_t ROWS = 16 * tile_rows, NEAR_BYTES = 3 << 18;
#else
constexpr int64_t ROWS = 8 * tile_rows, NEAR_BYTES = 1 << 17;
#endif
// (512 of float32 take 2 % less time with AVX-512, and lose more digits than NumPy.)
template <class T> constexpr int64_t STEPS = sizeof(T) == 8 ? 320 : 384;
constexpr int64_t COLUMNS = 1024;
constexpr int64_t ROWS_AT_ONCE = 16 * tile_rows;  // of products with packed weights, which are read once then
constexpr int64_t TINY = 64;             // rows, columns and steps of products that are not cut up

template <class T> void finish_part(const Gemm<T>& g) {
    if (g.finish.run) g.finish.run(g.finish, g.c, g.c_row, g.row, g.m, g.col, g.n);
}

// Whether lines so far apart fall into few sets of the cache and drive each other out.
template <class T> bool collides(int64_t stride) { return stride * int64_t(sizeof(T)) % 2048 == 0; }

// All into one.
template <class T> bool shares_a_set(int64_t stride) { return stride * int64_t(sizeof(T)) % 4096 == 0; }

template <class T> void copy_rows(T* to, int64_t to_row, const T* from, int64_t from_row, int rows, int64_t k) {
    for (int i = 0; i < rows; ++i) std::copy(from + i * from_row, from + i * from_row + k, to + i * to_row);
}

// One block: rows x columns of C, over a part of k. B is in panels, or in place but for its last columns.
template <class T> class BlockOfC {
  public:
    BlockOfC(const Gemm<T>& g, bool direct_a, bool direct_b) : g(g), direct_a(direct_a), direct_b(direct_b) {}

    void take_b() {
        if (g.panels) return;
        int64_t first = direct_b ? g.n / lanes<T> * lanes<T> / tile_cols<T> * tile_cols<T> : 0;
        if (direct_b && g.n % lanes<T> == 0) return;
        T* to = panels_b = scratch<T>(0, (g.n - first + tile_cols<T>) * g.k);
        for (int64_t j = first; j < g.n; j += tile_cols<T>, to += tile_cols<T> * g.k) {
            int cols = int(std::min<int64_t>(g.n - j, tile_cols<T>));
            pack_panel(to, tile_cols<T>, g.b + j * g.b_col, cols, g.b_col, g.b_row, g.k);
        }
    }

    void multiply(int64_t row, int64_t rows) {
        int64_t count = ceil_div(rows, tile_rows);
        T* panels_a = nullptr;
        if (!direct_a) {
            T* to = panels_a = scratch<T>(1, rows * g.k + lanes<T>);
            each_panel(row, rows, count, [&](int64_t i, int h, int64_t) {
                pack_panel(to, h, g.a + i * g.a_row, h, g.a_row, g.a_col, g.k);
                to += h * g.k;
            });
        }
        // Rows of A in place that drive each other out of the cache are copied, a panel at a time.
        const bool copies = direct_a && g.a_col == 1 && collides<T>(g.a_row);
        const int64_t copy_row = g.k + lanes<T>;
        T* copy = copies ? scratch<T>(1, tile_rows * copy_row) : nullptr;
        // tile(its column, its rows, so many rows of A before them)
        auto tile = [&](int64_t j, int64_t i, int h, int64_t done) {
            Tile<T> t;
            t.cols = int(std::min<int64_t>(g.n - j, tile_cols<T>));
            t.k = g.k, t.add = g.add, t.c_row = g.c_row;
            set_b(t, j);
            t.a = copies ? copy : direct_a ? g.a + i * g.a_row : panels_a + done * g.k;
            t.a_row = copies ? copy_row : direct_a ? g.a_row : 1;
            t.a_step = direct_a ? g.a_col : h;
            t.c = g.c + i * g.c_row + j;
            run_tile(h, t);
        };
        if (copies || (!g.panels && g.k * g.n * int64_t(sizeof(T)) <= NEAR_BYTES)) {
            return each_panel(row, rows, count, [&](int64_t i, int h, int64_t done) {
                if (copies) copy_rows(copy, copy_row, g.a + i * g.a_row, g.a_row, h, g.k);
                for (int64_t j = 0; j < g.n; j += tile_cols<T>) tile(j, i, h, done);
            });
        }
        for (int64_t j = 0; j < g.n; j += tile_cols<T>) {
            const int64_t next = j + tile_cols<T> < g.n && (direct_b || (g.panels && rows == g.m)) ? j + tile_cols<T> : 0;
            each_panel(row, rows, count, [&](int64_t i, int h, int64_t done) {
                if (next) fetch(next, done * g.k / rows, (done + h) * g.k / rows);
                tile(j, i, h, done);
            });
        }
    }

  private:
    const Gemm<T>& g;
    bool direct_a, direct_b;
    T* panels_b = nullptr;

    // The rows in panels of about equal height.
    template <class F> void each_panel(int64_t row, int64_t rows, int64_t count, F&& f) {
        int64_t low = rows / count, higher = rows % count, done = 0;
        for (int64_t i = 0; i < count; ++i) {
            int h = int(low + (i < higher));
            f(row + done, h, done);
            done += h;
        }
    }

    // Steps of a panel of B, of the columns from j on, come nearer while the one before is at work: they would be waited for.
    void fetch(int64_t j, int64_t begin, int64_t end) const {
        constexpr int64_t line = 64 / int64_t(sizeof(T));
        const T* from = g.panels ? panel_at(j) : g.b + j;
        const int64_t step = g.panels ? tile_cols<T> : g.b_row;
        for (int64_t p = begin; p < end; ++p)
            for (int64_t l = 0; l < tile_cols<T>; l += line) __builtin_prefetch(from + p * step + l, 0, 2);
    }

    const T* panel_at(int64_t j) const { return g.panels + (g.col + j) * g.panel_steps; }  // parts begin at panels

    void set_b(Tile<T>& t, int64_t j) {
        if (g.panels) {
            t.b = panel_at(j), t.b_step = tile_cols<T>;
        } else if (direct_b && t.cols % lanes<T> == 0) {
            t.b = g.b + j, t.b_step = g.b_row;
        } else {
            t.b = panels_b + (direct_b ? 0 : j * g.k), t.b_step = tile_cols<T>;
        }
    }
};

// Packing costs as much as a few rows or columns of the product.
template <class T> bool may_read_a_in_place(const Gemm<T>& g) {
    if (g.a_row == 1) return g.n <= (shares_a_set<T>(g.a_col) ? 1 : collides<T>(g.a_col) ? 2 : 4) * tile_cols<T>;
    return g.n <= (g.a_col == 1 ? 8 : 1) * tile_cols<T>;
}

template <class T> bool may_read_b_in_place(const Gemm<T>& g) {
    return g.b_col == 1 && g.m <= (shares_a_set<T>(g.b_row) ? 7 : 16) * tile_rows;
}

// Whether C is made turned, column by column: the product of B, each of whose columns lies side by side and is read as it
// lies, with few rows of A, which are packed. Sums are added up in the same order.
template <class T> bool turns(const Gemm<T>& g) {
    constexpr int64_t few_steps = 128;  // of which putting sums in their places would take a good part
    return !g.panels && g.b_row == 1 && g.b_col != 1 && g.m > lanes<T> && g.m <= 10 * tile_rows && g.n >= 4 * tile_rows && g.k >= few_steps;
}

template <class T> void multiply_turned(const Gemm<T>& g) {
    const int64_t steps = std::max<int64_t>(even_part(g.k, STEPS<T>), 1);
    const int64_t width = tile_cols<T>, wide = ceil_div(g.m, width);
    const bool copies = shares_a_set<T>(g.b_col);
    const int64_t copy_row = steps + lanes<T>, count = ceil_div(g.n, tile_rows);
    T* panels = scratch<T>(0, wide * width * steps);
    T* copy = copies ? scratch<T>(1, tile_rows * copy_row) : nullptr;
    for (int64_t step = 0; step < g.k; step += steps) {
        const int64_t k = std::min(steps, g.k - step);
        const bool add = g.add || step > 0;
        for (int64_t i = 0; i < g.m; i += width)
            pack_panel(panels + i * k, int(width), g.a + i * g.a_row + step * g.a_col, int(std::min(width, g.m - i)), g.a_row,
                       g.a_col, k);
        for (int64_t p = 0, j = 0; p < count; ++p) {
            const int h = int(g.n / count + (p < g.n % count));
            const T* from = g.b + j * g.b_col + step;
            const int64_t row = copies ? copy_row : g.b_col;
            if (copies) copy_rows(copy, copy_row, from, g.b_col, h, k);
            if (copies) from = copy;
            for (int64_t i = 0; i < g.m; i += width) {
                Tile<T> t{from, row, 1, panels + i * k, width, g.c + i * g.c_row + j, g.c_row, k, int(std::min(width, g.m - i)), add, true};
                run_tile(h, t);
            }
            j += h;
            listen();
        }
    }
    finish_part(g);
}

// The product in the calling thread alone.
template <class T> void multiply(const Gemm<T>& whole) {
    if (turns(whole)) return multiply_turned(whole);
    int64_t steps = std::max<int64_t>(even_part(whole.k, STEPS<T>), 1);
    int64_t columns = even_part(whole.n, COLUMNS, tile_cols<T>);
    int64_t rows = whole.panels && whole.m <= ROWS_AT_ONCE ? whole.m : even_part(whole.m, ROWS, tile_rows);
    bool direct_a = may_read_a_in_place(whole), direct_b = may_read_b_in_place(whole);
    for (int64_t col = 0; col < whole.n; col += columns) {
        for (int64_t step = 0; step == 0 || step < whole.k; step += steps) {
            Gemm<T> g = part(whole, 0, whole.m, col, std::min(columns, whole.n - col));
            g.a += step * g.a_col;
            g.b += step * g.b_row;
            if (g.panels) g.panels += step * tile_cols<T>;
            g.k = std::min(steps, whole.k - step);
            g.add = whole.add || step > 0;
            BlockOfC<T> block(g, direct_a, direct_b);
            block.take_b();
            for (int64_t row = 0; row < g.m; row += rows) {
                int64_t height = std::min(rows, g.m - row);
                block.multiply(row, height);
                listen();  // a product that one thread makes has no pieces
                if (step + steps >= whole.k) finish_part(part(g, row, height, 0, g.n));
            }
        }
    }
}

// Of a product with many steps and a small C, whose operands two threads would both read as a whole, each thread makes the sums
// of some steps. How many sums there are follows from the sizes alone, and they are added up in their order.
template <class T> int64_t sums_of(const Gemm<T>& g) {
    constexpr int64_t small = 1 << 16, most = 8;
    if (g.row_by_row || g.m * g.n > small) return 1;
    return std::min(g.k / (4 * STEPS<T>), most);
}

template <class T> void add_up(const Gemm<T>& g, int64_t sums) {
    const int64_t size = g.m * g.n, steps = ceil_div(g.k, sums);
    const Borrowed room(sums * size, sizeof(T));
    T* const parts = static_cast<T*>(room.start);
    parallel(sums, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            Gemm<T> one = g;
            one.a += i * steps * g.a_col, one.b += i * steps * g.b_row;
            if (g.panels) one.panels += i * steps * tile_cols<T>;
            one.k = std::min(steps, g.k - i * steps);
            one.c = parts + i * size, one.c_row = g.n, one.add = false, one.finish = {};
            multiply(one);
        }
    });
    for (int64_t i = 0; i < g.m; ++i)
        for (int64_t j = 0; j < g.n; ++j) {
            T* c = g.c + i * g.c_row + j;
            T sum = g.add ? *c : T(0);
            for (int64_t p = 0; p < sums; ++p) sum += parts[p * size + i * g.n + j];
            *c = sum;
        }
    finish_part(g);
}

template <class T> void multiply_in_pool(const Gemm<T>& g) {
    if (const int64_t sums = sums_of(g); sums > 1) return add_up(g, sums);
    share(g, tile_rows, tile_cols<T>, multiply<T>);
}

// So small that finding the best way would take longer than the product.
template <class T> bool is_tiny(const Gemm<T>& g) {
    return g.m <= TINY && g.n <= TINY && g.k <= TINY && g.m > 1 && g.n > 1 && g.k > 0;
}

template <class T> void multiply_tiny(const Gemm<T>& g) {
    alignas(64) T panel[TINY * tile_cols<T>];
    for (int64_t col = 0; col < g.n; col += tile_cols<T>) {
        int cols = int(std::min<int64_t>(g.n - col, tile_cols<T>));
        Tile<T> t{g.a, g.a_row, g.a_col, g.b + col * g.b_col, g.b_row, g.c + col, g.c_row, g.k, cols, g.add};
        if (g.panels) {
            t.b = g.panels + col * g.panel_steps, t.b_step = tile_cols<T>;
        } else if (g.b_col != 1 || cols % lanes<T> != 0) {
            int width = int(ceil_div(cols, lanes<T>)) * lanes<T>;
            pack_panel(panel, width, t.b, cols, g.b_col, g.b_row, g.k);
            t.b = panel, t.b_step = width;
        }
        for (int left = int(g.m); left > 0; left -= tile_rows) {
            run_tile(std::min(left, tile_rows), t);
            t.a += tile_rows * g.a_row;
            t.c += tile_rows * g.c_row;
        }
    }
}

template <class T> void one(const Gemm<T>& g) {
    if (g.m == 0 || g.n == 0) return;
    if (is_tiny(g)) {
        multiply_tiny(g);
    } else if (!try_gemv(g)) {
        return multiply_in_pool(g);
    }
    finish_part(g);
}

// Many products of so few numbers that the second operand stays in registers: the sums of tiles, in their order.
constexpr int64_t FEW = 4;

template <class T> FW_INLINE T added_product(T a, T b, T sum) {
#if defined(FW_AVX512) || defined(FW_AVX2) || defined(FW_NEON)
    return std::fma(a, b, sum);
#else
    return a * b + sum;
#endif
}

template <class T, int K, int N> void multiply_few(const Gemm<T>& g) {
    T b[K][N];
    for (int p = 0; p < K; ++p)
        for (int j = 0; j < N; ++j) b[p][j] = g.b[p * g.b_row + j * g.b_col];
    for (int64_t i = 0; i < g.m; ++i) {
        const T* a = g.a + i * g.a_row;
        T* c = g.c + i * g.c_row;
        T sums[N] = {};
        for (int p = 0; p < K; ++p)
            for (int j = 0; j < N; ++j) sums[j] = added_product(a[p * g.a_col], b[p][j], sums[j]);
        for (int j = 0; j < N; ++j) c[j] = g.add ? c[j] + sums[j] : sums[j];
    }
    finish_part(g);
}

template <class T> using Multiply = void (*)(const Gemm<T>&);
template <class T, size_t... I> Multiply<T> few_by_size(size_t at, std::index_sequence<I...>) {
    constexpr Multiply<T> all[] = {multiply_few<T, I / FEW + 1, I % FEW + 1>...};
    return all[at];
}

template <class T> void gemm_of(const Gemm<T>& g, const Batch& batch) {
    if (try_inner_products(g, batch)) return;
    const bool few = g.k >= 1 && g.k <= FEW && g.n >= 1 && g.n <= FEW && g.m >= 1 && g.m <= TINY && !g.panels;
    if (few && batch.size() > 1)
        share_batch(g, batch, few_by_size<T>(size_t((g.k - 1) * FEW + g.n - 1), std::make_index_sequence<FEW * FEW>{}));
    else
        share_batch(g, batch, one<T>);
}

}  // namespace

template <class T> bool packs_b(const Gemm<T>& g) {
    if (g.m <= 1 || g.n <= 1 || g.k < 1 || sums_rows(g)) return false;
    return g.b_col != 1 || !(is_tiny(g) || may_read_b_in_place(g));
}

template <class T> int64_t panels_size(const Gemm<T>& g) { return ceil_div(g.n, tile_cols<T>) * tile_cols<T> * g.k; }

template <class T> void pack_panels(const Gemm<T>& g, T* to) {
    parallel(ceil_div(g.n, tile_cols<T>), 1 + (1 << 14) / (g.k * tile_cols<T>), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t first = i * tile_cols<T>, cols = std::min<int64_t>(tile_cols<T>, g.n - first);
            pack_panel(to + first * g.k, tile_cols<T>, g.b + first * g.b_col, int(cols), g.b_col, g.b_row, g.k);
        }
    });
}

template bool packs_b(const Gemm<float>&);
template bool packs_b(const Gemm<double>&);
template int64_t panels_size(const Gemm<float>&);
template int64_t panels_size(const Gemm<double>&);
template void pack_panels(const Gemm<float>&, float*);
template void pack_panels(const Gemm<double>&, double*);

void gemm(const Gemm<float>& g, const Batch& batch) { gemm_of(g, batch); }
void gemm(const Gemm<double>& g, const Batch& batch) { gemm_of(g, batch); }

}  // namespace fw
