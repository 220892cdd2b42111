// Products of bfloat16 by the tiles of a matrix unit: blocks of 32 x 32 sums in four tiles.
//
// One operand is read in rows, the left one, where its steps lie side by side even in place; the other one is packed in
// pairs of steps, and stays in the level 2 cache while all rows pass. Which is which, is chosen by what packing
// takes: the product is computed as that of the transposed operands where that is less. No bit of a result depends on it.
#include "base/scratch.h"
#include "gemm/amx_tiles.h"
#include "gemm/gemm_share.h"

namespace fw {
namespace {

using namespace amx;

constexpr int64_t DEPTH = 512;              // steps of rows, 32 KB, which stay in the first cache while columns pass
constexpr int64_t MOST_STEPS = 2048;        // steps of columns that are packed at a time
constexpr int64_t COLUMN_BYTES = 1 << 20;   // of them, in the level 2 cache (2 MB where there is such a unit)
constexpr int64_t FEW_ROWS = 128, FEW_STEPS = 128, FEW_BYTES = COLUMN_BYTES / 2;  // the same where columns lie side by side and
                                            // rows are few: long lines come sooner from memory
constexpr int64_t LEAST_ROWS = 1024, ROW_BYTES = 16 << 20;  // that are packed at a time: columns are packed again for the next

// All columns, 32 by 32. Where columns lie side by side, of all of them some steps at a time: their lines follow each other.
void pack_panels(Bf16* to, const Operand& x, int64_t cols, int64_t k) {
    const int64_t panel = whole_tiles(k) * STEPS, steps = x.line == 1 ? STEPS : std::max<int64_t>(k, 1);
    for (int64_t s = 0; s < k; s += steps)
        for (int64_t j = 0; j < cols; j += BLOCK) {
            const int64_t count = std::min(BLOCK, cols - j);
            const int width = width_of(count);
            pack_columns(to + j * panel + s * width, width, {x.at(j, s), x.line, x.step}, count, std::min(steps, k - s));
        }
}

// -- results --------------------------------------------------------------------------------------

// Where they go: rounded, after a bias; or as they are, float32, after what is there if `add`.
template <class T> struct Results {
    T* c;
    int64_t c_row;
    const Bf16* bias;  // of the columns, or nullptr
    bool add = false;

    Results at(int64_t row, int64_t col) const { return {c + row * c_row + col, c_row, bias ? bias + col : nullptr, add}; }
};

// Complete sums, rounded with their biases; like a product's numbers, what is denormal becomes 0.
void give_block(amx::Twin&, const float* sums, int64_t rows, int64_t cols, const Results<Bf16>& to) {
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < cols; ++j) {
            const float sum = sums[i * BLOCK + j];
            to.c[i * to.c_row + j] = narrow(amx::Twin::flushed(to.bias ? sum + amx::Twin::flushed(widen(to.bias[j])) : sum));
        }
}

#if FW_AMX
FW_WITH_BF16 void give_block(amx::Unit&, const float* sums, int64_t rows, int64_t cols, const Results<Bf16>& to) {
    const __mmask32 mask = cols >= BLOCK ? ~__mmask32(0) : (__mmask32(1) << cols) - 1;
    __m512 low = _mm512_setzero_ps(), high = low;
    if (to.bias) {
        const __m512i bias = _mm512_maskz_loadu_epi16(mask, to.bias);
        low = (__m512)widen(bits<Halves>(_mm512_castsi512_si256(bias)));
        high = (__m512)widen(bits<Halves>(_mm512_extracti64x4_epi64(bias, 1)));
    }
    auto rounded = [&](const float* s) FW_WITH_BF16 __attribute__((always_inline)) {
        return (__m512i)_mm512_cvtne2ps_pbh(_mm512_add_ps(_mm512_load_ps(s + ROWS), high), _mm512_add_ps(_mm512_load_ps(s), low));
    };
    Bf16* c = to.c;
    if (cols >= BLOCK)
        for (int64_t i = 0; i < rows; ++i, c += to.c_row, sums += BLOCK) _mm512_storeu_si512(c, rounded(sums));
    else
        for (int64_t i = 0; i < rows; ++i, c += to.c_row, sums += BLOCK) _mm512_mask_storeu_epi16(c, mask, rounded(sums));
}
#endif

template <class U> void give_block(U&, const float* sums, int64_t rows, int64_t cols, const Results<float>& to) {
    float* c = to.c;
    for (int64_t i = 0; i < rows; ++i, c += to.c_row, sums += BLOCK)
        for (int64_t j = 0; j < cols; j += lanes<float>) {
            const int64_t count = std::min<int64_t>(lanes<float>, cols - j);
            const Vec<float> v = load(sums + j);
            store_first(c + j, to.add ? load_first(c + j, count) + v : v, count);
        }
}

// -- products -------------------------------------------------------------------------------------

// What packing takes, in cycles for 512 numbers.
double as_rows(const Operand& x) { return x.step == 1 ? 5 : x.line == 1 ? 100 : 700; }
double as_columns(const Operand& x) { return x.line == 1 ? 40 : x.step == 1 ? 80 : 700; }

Operand rows_of_a(const Gemm<Bf16>& g) { return {g.a, g.m == 1 ? 1 : g.a_row, g.k == 1 ? 1 : g.a_col}; }
Operand columns_of_b(const Gemm<Bf16>& g) { return {g.b, g.n == 1 ? 1 : g.b_col, g.k == 1 ? 1 : g.b_row}; }

bool better_turned(const Gemm<Bf16>& g) {
    const Operand a = rows_of_a(g), b = columns_of_b(g);
    constexpr double result = 200;
    const double m = double(g.m), n = double(g.n), k = double(g.k);
    return as_rows(b) * n * k + as_columns(a) * m * k + result * m * n < as_rows(a) * m * k + as_columns(b) * n * k;
}

// The product in the calling thread alone, as that of the transposed operands if TURNED.
template <class U, bool TURNED, class T> class TiledProduct {
  public:
    TiledProduct(const Gemm<Bf16>& g, const Results<T>& out)
        : left(TURNED ? columns_of_b(g) : rows_of_a(g)), right(TURNED ? rows_of_a(g) : columns_of_b(g)),
          m(TURNED ? g.n : g.m), n(TURNED ? g.m : g.n), k(g.k), whole_k(whole_tiles(k) * STEPS),
          few(right.line == 1 && m <= FEW_ROWS), steps(std::max<int64_t>(even_part(k, few ? FEW_STEPS : MOST_STEPS, STEPS), 1)),
          depth(even_part(steps, DEPTH, STEPS)),
          columns(even_part(n, std::max(BLOCK, (few ? FEW_BYTES : COLUMN_BYTES) / 2 / steps / BLOCK * BLOCK), BLOCK)),
          height(packs ? even_part(m, std::max(LEAST_ROWS, ROW_BYTES / 2 / std::max<int64_t>(k, 1)), BLOCK) : m),
          row_sums(k <= depth ? SUMS : ceil_div(columns, BLOCK) * SUMS),
          out(out),
          panels(scratch<Bf16>(0, ceil_div(columns, BLOCK) * BLOCK * whole_tiles(steps) * STEPS)),
          rows(scratch<Bf16>(1, packs ? ceil_div(height, BLOCK) * BLOCK * whole_k : BLOCK * DEPTH)),
          sums(reinterpret_cast<float*>(scratch<Bf16>(2, (steps < k ? ceil_div(height, BLOCK) : 1) * row_sums * 2))) {}

    void run() {
        for (int64_t top = 0; top < m; top += height) {
            const int64_t high = std::min(height, m - top);
            if (packs) pack_left(top, high);
            for (int64_t col = 0; col < n; col += columns)
                for (int64_t step = 0; step == 0 || step < k; step += steps)
                    multiply({top, high, col, std::min(columns, n - col), step, std::min(step + steps, k)});
        }
    }

  private:
    struct Part {
        int64_t top, rows, col, cols, step, end;
    };

    const Operand left, right;
    const bool packs = left.step != 1;  // the left one, too
    const int64_t m, n, k, whole_k;
    const bool few;
    const int64_t steps, depth;         // whose columns are packed at a time; that are summed at a time
    const int64_t columns, height;      // of a part
    const int64_t row_sums;             // how many there are of 32 rows: of one block, unless they wait for other steps
    const Results<T> out;
    Bf16 *const panels, *const rows;
    float* const sums;
    U unit;

    // For each 32 rows their tiles of the first `depth` steps, then those of the next.
    void pack_left(int64_t top, int64_t high) {
        for (int64_t step = 0; step < k; step += steps)
            for (int64_t s = step; s < std::min(step + steps, k); s += depth) {
                const int64_t end = std::min({s + depth, step + steps, k});
                for (int64_t t = s; t < end; t += STEPS)
                    for (int64_t i = 0; i < high; i += BLOCK)
                        pack_rows(rows + i * whole_k + s * BLOCK + (t - s) * ROWS, {left.at(top + i, t), left.line, left.step},
                                  std::min(BLOCK, high - i), std::min<int64_t>(STEPS, end - t), whole_tiles(end - s));
            }
    }

    void multiply(const Part& p) {
        pack_panels(panels, {right.at(p.col, p.step), right.line, right.step}, p.cols, p.end - p.step);
        for (int64_t i = 0; i < p.rows; i += BLOCK)
            for (int64_t s = p.step; s == p.step || s < p.end; s += depth)
                multiply(p, i, s, s + depth < p.end ? ahead_of(p, i, s + depth) : ahead_of(p, i + BLOCK, p.step));
    }

    // All blocks of 32 rows.
    void multiply(const Part& p, int64_t i, int64_t s, const Ahead& ahead) {
        const int64_t high = std::min(BLOCK, p.rows - i), deep = std::min(depth, p.end - s);
        const int64_t panel = whole_tiles(p.end - p.step) * STEPS;
        const Rows a = packs ? Rows::packed(rows + i * whole_k + s * BLOCK, deep)
                             : Rows::in_place({left.at(p.top + i, s), left.line, left.step}, high, deep, rows);
        float* own = sums + (steps < k ? i / BLOCK * row_sums : 0);
        for (int64_t j = 0; j < p.cols; j += BLOCK) {
            const int64_t wide = std::min(BLOCK, p.cols - j);
            float* here = row_sums == SUMS ? own : own + j * BLOCK;
            const Bf16* b = panels + j * panel + (s - p.step) * width_of(wide);
            block(unit, a, ahead.part(j, j + wide, p.cols), b, here, s > 0, high, wide);
            if (s + deep >= k) finish(here, p.top + i, high, p.col + j, wide);
        }
    }

    Ahead ahead_of(const Part& p, int64_t i, int64_t s) const {
        if (i >= p.rows) return {};
        if (!packs && p.cols <= 2 * BLOCK) return {};  // the processor sees by itself how rows go on
        if (packs) return {rows + i * whole_k + s * BLOCK, STEPS, BLOCK * STEPS, 0, BLOCK};
        return {left.at(p.top + i, s), left.line, STEPS, 0, std::min(BLOCK, p.rows - i)};
    }

    void finish(const float* from, int64_t row, int64_t high, int64_t col, int64_t wide) {
        if constexpr (TURNED) {
            alignas(64) float turned[SUMS];
            turn_block(unit, from, turned);
            give_block(unit, turned, wide, high, out.at(col, row));
        } else {
            give_block(unit, from, high, wide, out.at(row, col));
        }
    }
};

constexpr int SPEED = 8;  // beside products of float32

// give(part, run): run(results) computes a part.
template <class U, class T, class F> void product(const Gemm<Bf16>& g, F&& give) {
    if (!g.m || !g.n) return;
    auto by = [&](auto turned) {
        share<SPEED>(g, BLOCK, BLOCK, [&](const Gemm<Bf16>& part) {
            give(part, [&](const Results<T>& to) { TiledProduct<U, decltype(turned)::value, T>(part, to).run(); });
        });
    };
    better_turned(g) ? by(std::true_type{}) : by(std::false_type{});
}

template <class U> void one(const Gemm<Bf16>& g) {
    product<U, Bf16>(g, [](const Gemm<Bf16>& part, auto&& run) {
        run({part.c, part.c_row, part.finish.col_bias ? part.finish.col_bias + part.col : nullptr});
    });
}

// -- of float32, rounded --------------------------------------------------------------------------

// A matrix rounded to bfloat16, in rows or columns as it lies.
class Rounded {
  public:
    Rounded(const float* from, int64_t rows, int64_t row, int64_t cols, int64_t col)
        : by_rows(col == 1 || row != 1), lines(by_rows ? rows : cols), length(by_rows ? cols : rows),
          memory(lines * length, sizeof(Bf16)), p(static_cast<Bf16*>(memory.start)) {
        const int64_t line = by_rows ? row : col, step = by_rows ? col : row;
        parallel(lines, std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(length, 1)), [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                if (step == 1) narrow(p + i * length, from + i * line, length);
                else
                    for (int64_t j = 0; j < length; ++j) p[i * length + j] = narrow(from[i * line + j * step]);
            }
        });
    }
    int64_t row() const { return by_rows ? length : 1; }
    int64_t col() const { return by_rows ? 1 : length; }

  private:
    const bool by_rows;
    const int64_t lines, length;
    Borrowed memory;

  public:
    Bf16* const p;
};

template <class U> void one_rounded(const Gemm<float>& g) {
    const Rounded a(g.a, g.m, g.a_row, g.k, g.a_col), b(g.b, g.k, g.b_row, g.n, g.b_col);
    Gemm<Bf16> narrow{g.m, g.n, g.k, a.p, a.row(), a.col(), b.p, b.row(), b.col(), a.p, 0};  // its c is not written
    product<U, float>(narrow, [&](const Gemm<Bf16>& part, auto&& run) {
        float* c = g.c + part.row * g.c_row + part.col;
        run({c, g.c_row, nullptr, g.add});
        if (g.finish.run) g.finish.run(g.finish, c, g.c_row, g.row + part.row, part.m, g.col + part.col, part.n);
    });
}

}  // namespace

void gemm_by_tiles(const Gemm<Bf16>& g, const Batch& batch, bool plain) {
    if (plain) share_batch(g, batch, one<Twin>);
    else share_batch<SPEED, Unit>(g, batch, one<Unit>);
}

void gemm_rounded(const Gemm<float>& g, const Batch& batch) { share_batch<SPEED, Unit>(g, batch, one_rounded<Unit>); }

}  // namespace fw
