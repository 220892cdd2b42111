// Matrix products of bfloat16: by vdpbf16ps where the processor has it, else as products of float32.
#include <vector>

#include "gemm/amx.h"
#include "gemm/bf16_tile.h"
#include "gemm/gemm_share.h"
#include "base/scratch.h"

namespace fw {
#if FW_DOT_BF16
namespace pairs {
namespace {

// Complete sums, `width` apart, rounded with their biases to where they go.
void finish(const Tile& t, const float* sums, int height) {
    constexpr int n = lanes<float>;
    for (int j = 0; j < t.cols; j += n) {
        const int left = t.cols - j;
        const __mmask16 mask = left >= n ? 0xffff : __mmask16((1u << left) - 1);
        Bf16 part[n] = {};
        if (t.col_bias) std::memcpy(part, t.col_bias + j, size_t(std::min(left, n)) * sizeof(Bf16));
        const Vec<float> shift = load_wide(part);
        for (int i = 0; i < height; ++i) {
            Vec<float> v = load(sums + i * width + j);
            if (t.row_bias) v += splat(widen(t.row_bias[i]));
            if (t.col_bias) v += shift;
            _mm256_mask_storeu_epi16(t.c + i * t.c_row + j, mask, (__m256i)narrow(v));
        }
    }
}

template <int R, int V> FW_WITH_BF16 void tile(const Tile& t) {
    __m512 sum[R][V];
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
        for (int j = 0; j < V; ++j)
            sum[i][j] = t.add ? _mm512_loadu_ps(t.sums + i * t.sums_row + j * lanes<float>) : _mm512_setzero_ps();
    const int64_t row = t.a_row, step = t.a_step;
    const Bf16* a[(R + 2) / 3];  // one pointer for three rows: base, base + row, base + 2 * row
    for (int i = 0; i < (R + 2) / 3; ++i) a[i] = t.a + 3 * i * row;
    const uint32_t* b = t.b;
    for (int64_t p = t.pairs; p > 0; --p) {
        __m512bh vb[V];
#pragma GCC unroll 2
        for (int j = 0; j < V; ++j) vb[j] = (__m512bh)_mm512_loadu_si512(b + j * lanes<float>);
#pragma GCC unroll 16
        for (int i = 0; i < R; ++i) {
            const __m512bh va = (__m512bh)_mm512_set1_epi32(int(word(a[i / 3] + i % 3 * row)));
#pragma GCC unroll 2
            for (int j = 0; j < V; ++j) sum[i][j] = _mm512_dpbf16_ps(sum[i][j], va, vb[j]);
        }
        b += width;
#pragma GCC unroll 8
        for (int i = 0; i < (R + 2) / 3; ++i) a[i] += step;
    }
    alignas(64) float whole[R][width];
    float* to = t.c ? whole[0] : t.sums;
    const int64_t to_row = t.c ? width : t.sums_row;
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
        for (int j = 0; j < V; ++j) _mm512_storeu_ps(to + i * to_row + j * lanes<float>, sum[i][j]);
    if (t.c) finish(t, whole[0], R);
}

using Function = void (*)(const Tile&);
struct Table {
    Function at[rows][2];
    template <int... I> constexpr explicit Table(std::integer_sequence<int, I...>) : at{} {
        ((at[I / 2][I % 2] = tile<I / 2 + 1, I % 2 + 1>), ...);
    }
};
inline constexpr Table table{std::make_integer_sequence<int, 2 * rows>{}};

}  // namespace

void run(int height, const Tile& t) { table.at[height - 1][t.cols > lanes<float>](t); }

}  // namespace pairs
#endif

namespace {

#if FW_DOT_BF16

using pairs::rows;
using pairs::width;

constexpr int64_t STEPS = 4096;             // what is summed up at a time, even
constexpr int64_t A_BYTES = 256 << 10;      // of A, stays in the level 2 cache
constexpr int64_t B_BYTES = 2 << 20;        // of B, in the last level

// Rows of A in panels of about equal height, at most `rows`; packed, or in place.
class Left {
  public:
    explicit Left(const Gemm<Bf16>& g) : g(g), in_place(g.a_col == 1 && g.k % 2 == 0) {}

    void take(int64_t row, int64_t height, int64_t step, int64_t k) {
        first = g.a + row * g.a_row + step * g.a_col;
        high = height, count = ceil_div(height, rows), words = (k + 1) / 2;
        if (in_place) return;
        uint32_t* to = panels = scratch<uint32_t>(1, count * 16 * words);
        each([&](int64_t i, int h, int64_t) {
            pairs::pack(to, 16, first + i * g.a_row, h, g.a_row, g.a_col, k);
            to += 16 * words;
        });
    }

    template <class F> void each(F&& f) const {  // f(first row of a panel, its height, its number)
        for (int64_t i = 0, n = 0; n < count; ++n) {
            const int h = int(high / count + (n < high % count));
            f(i, h, n);
            i += h;
        }
    }

    void set(pairs::Tile& t, int64_t i, int64_t panel) const {
        if (in_place) {
            t.a = first + i * g.a_row, t.a_row = g.a_row, t.a_step = 2;
        } else {
            t.a = reinterpret_cast<const Bf16*>(panels + panel * 16 * words), t.a_row = 2, t.a_step = 32;
        }
    }

  private:
    const Gemm<Bf16>& g;
    const bool in_place;
    const Bf16* first = nullptr;
    uint32_t* panels = nullptr;
    int64_t high = 0, count = 0, words = 0;
};

// The product in the calling thread alone.
void multiply(const Gemm<Bf16>& g) {
    const int64_t steps = g.k <= STEPS ? std::max<int64_t>(g.k, 1) : ceil_div(even_part(g.k, STEPS), 2) * 2;
    const int64_t least = steps * int64_t(sizeof(Bf16));
    const int64_t height = even_part(g.m, std::max<int64_t>(A_BYTES / least / rows, 1) * rows, rows);
    const int64_t columns = even_part(g.n, std::max<int64_t>(B_BYTES / least / width, 1) * width, width);
    const int64_t sums_row = ceil_div(columns, width) * width;
    const bool several = steps < g.k;
    std::vector<float> sums(size_t(several ? g.m * sums_row : 0));
    Left left(g);
    for (int64_t col = 0; col < g.n; col += columns) {
        const int64_t n = std::min(columns, g.n - col);
        for (int64_t step = 0; step == 0 || step < g.k; step += steps) {
            const int64_t k = std::min(steps, g.k - step), count = (k + 1) / 2;
            uint32_t* panels = scratch<uint32_t>(0, ceil_div(n, width) * width * count);
            for (int64_t j = 0; j < n; j += width)
                pairs::pack(panels + j * count, width, g.b + (col + j) * g.b_col + step * g.b_row,
                            int(std::min<int64_t>(width, n - j)), g.b_col, g.b_row, k);
            for (int64_t row = 0; row < g.m; row += height) {
                const int64_t m = std::min(height, g.m - row);
                left.take(row, m, step, k);
                for (int64_t j = 0; j < n; j += width)
                    left.each([&](int64_t i, int h, int64_t panel) {
                        pairs::Tile t;
                        left.set(t, i, panel);
                        t.b = panels + j * count, t.pairs = count, t.cols = int(std::min<int64_t>(width, n - j));
                        t.sums = sums.data() + (several ? (row + i) * sums_row + j : 0), t.sums_row = sums_row;
                        t.add = step > 0;
                        if (step + steps >= g.k) {
                            t.c = g.c + (row + i) * g.c_row + col + j, t.c_row = g.c_row;
                            if (g.finish.col_bias) t.col_bias = g.finish.col_bias + g.col + col + j;
                        }
                        pairs::run(h, t);
                    });
            }
        }
    }
}

// -- few rows: each number of B is read once ------------------------------------------------------

constexpr int FEW = 4;

// c[i, j] = the inner product of row i of A and column j of B for i < R and j < S, both with steps side by side.
template <int R, int S>
FW_WITH_BF16 void dots(const Bf16* a, int64_t a_row, const Bf16* b, int64_t b_row, int64_t k, float (&out)[R][S]) {
    __m512 sum[R][S];
    for (int i = 0; i < R; ++i)
        for (int j = 0; j < S; ++j) sum[i][j] = _mm512_setzero_ps();
    for (int64_t p = 0; p < k; p += 32) {
        const __mmask32 mask = k - p >= 32 ? ~__mmask32(0) : (__mmask32(1) << (k - p)) - 1;
        __m512bh va[R];
#pragma GCC unroll 4
        for (int i = 0; i < R; ++i) va[i] = (__m512bh)_mm512_maskz_loadu_epi16(mask, a + i * a_row + p);
#pragma GCC unroll 4
        for (int j = 0; j < S; ++j) {
            const __m512bh vb = (__m512bh)_mm512_maskz_loadu_epi16(mask, b + j * b_row + p);
#pragma GCC unroll 4
            for (int i = 0; i < R; ++i) sum[i][j] = _mm512_dpbf16_ps(sum[i][j], va[i], vb);
        }
    }
    for (int i = 0; i < R; ++i)
        for (int j = 0; j < S; ++j) out[i][j] = sum_lanes<float>((Vec<float>)sum[i][j]);
}

template <int R> void few_rows(const Gemm<Bf16>& g) {
    constexpr int S = 4;
    for (int64_t j = 0; j < g.n; j += S) {
        float found[R][S] = {};
        const int64_t n = std::min<int64_t>(S, g.n - j);
        if (n == S) {
            dots<R, S>(g.a, g.a_row, g.b + j * g.b_col, g.b_col, g.k, found);
        } else {
            for (int64_t l = 0; l < n; ++l) {
                float one[R][1];
                dots<R, 1>(g.a, g.a_row, g.b + (j + l) * g.b_col, g.b_col, g.k, one);
                for (int i = 0; i < R; ++i) found[i][l] = one[i][0];
            }
        }
        for (int i = 0; i < R; ++i)
            for (int64_t l = 0; l < n; ++l) {
                const Bf16* bias = g.finish.col_bias ? g.finish.col_bias + g.col + j + l : nullptr;
                g.c[i * g.c_row + j + l] = narrow(found[i][l] + (bias ? widen(*bias) : 0));
            }
    }
}

void multiply_few(const Gemm<Bf16>& g) {
    switch (g.m) {
        case 1: return few_rows<1>(g);
        case 2: return few_rows<2>(g);
        case 3: return few_rows<3>(g);
        default: return few_rows<4>(g);
    }
}

void one_by_pairs(const Gemm<Bf16>& g) {
    if (!g.m || !g.n) return;
    if (g.m <= FEW && g.a_col == 1 && g.b_row == 1) {
        const int64_t grain = std::max<int64_t>(64, (128 << 10) / std::max<int64_t>(g.k, 1) / 4 * 4);
        return parallel(g.n, grain, [&](int64_t begin, int64_t end) {
            multiply_few(part(g, 0, g.m, begin, end - begin));
        });
    }
    share(g, rows, width, multiply);
}

// One or two rows with weights that do not stay in the level 2 cache: reading four columns from end to end, as `dots`
// does, takes 0.8 to 0.9 of the time of tiles.
bool reads_memory(const Gemm<Bf16>& g) {
    return g.m <= 2 && g.a_col == 1 && g.b_row == 1 && double(g.n) * double(g.k) * sizeof(Bf16) > 2 << 20;
}

#else
bool reads_memory(const Gemm<Bf16>&) { return false; }
#endif

// -- by way of float32 ----------------------------------------------------------------------------

// A matrix widened, its strides those of rows; of a vector that is repeated (stride 0) as of any other.
std::vector<float> wide(const Bf16* from, int64_t rows, int64_t row, int64_t cols, int64_t col) {
    std::vector<float> to(size_t(rows * cols));
    parallel(rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(cols, 1)), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            float* out = to.data() + i * cols;
            if (col == 1) widen(out, from + i * row, cols);
            else
                for (int64_t j = 0; j < cols; ++j) out[j] = widen(from[i * row + j * col]);
        }
    });
    return to;
}

void one_by_float32(const Gemm<Bf16>& g) {
    if (!g.m || !g.n) return;
    // along what lies side by side
    const bool a_rows = g.a_col == 1 || g.a_row != 1, b_rows = g.b_col == 1 || g.b_row != 1;
    const auto a = a_rows ? wide(g.a, g.m, g.a_row, g.k, g.a_col) : wide(g.a, g.k, g.a_col, g.m, g.a_row);
    const auto b = b_rows ? wide(g.b, g.k, g.b_row, g.n, g.b_col) : wide(g.b, g.n, g.b_col, g.k, g.b_row);
    std::vector<float> c(size_t(g.m * g.n)), bias(size_t(g.finish.col_bias ? g.n : 0));
    Gemm<float> f{g.m, g.n, g.k, a.data(), a_rows ? g.k : 1, a_rows ? 1 : g.m,
                  b.data(), b_rows ? g.n : 1, b_rows ? 1 : g.k, c.data(), g.n};
    if (g.finish.col_bias) {
        widen(bias.data(), g.finish.col_bias, g.n);
        f.finish = finish<float, Identity>(nullptr, bias.data());
    }
    gemm(f);
    parallel(g.m, std::max<int64_t>(1, 16384 / g.n), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) narrow(g.c + i * g.c_row, c.data() + i * g.n, g.n);
    });
}

}  // namespace

void gemm(const Gemm<Bf16>& g, const Batch& batch) {
    if (amx::available() && !reads_memory(g)) return gemm_by_tiles(g, batch, false);
#if FW_DOT_BF16
    if (has_dot_bf16()) return share_batch(g, batch, one_by_pairs);
#endif
    share_batch(g, batch, one_by_float32);
}

}  // namespace fw
