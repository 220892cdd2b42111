// The matrix that a recurrent state is multiplied by, and the state, rounded to bfloat16 for the matrix unit; sums stay float32.
#pragma once

#include "gemm/amx_tiles.h"
#include "rnn/rnn.h"

#if FW_AMX
namespace fw {
namespace rnn {

class RoundedPanels {
  public:
    static constexpr bool in_rows = false;  // whether one row goes by itself
    static_assert(amx::BLOCK == tile_cols<float>, "columns are finished as many at a time as those of Panels");

    // As for Panels: B[p, j] lies at w + j * row + p * step. most: rows of a state.
    RoundedPanels(const float* w, int64_t groups, int64_t width, int64_t k, int64_t row, int64_t step, int64_t most)
        : k(k), width(width), blocks((width + amx::BLOCK - 1) / amx::BLOCK), steps(amx::whole_tiles(k) * amx::STEPS),
          memory(groups * blocks * steps * amx::BLOCK, sizeof(Bf16)),
          of_states((most + 2 * amx::BLOCK) / amx::BLOCK * amx::BLOCK * steps * 2, sizeof(Bf16)),
          panels(static_cast<Bf16*>(memory.start)) {
        const Borrowed room(amx::BLOCK * steps, sizeof(Bf16));
        for (int64_t i = 0; i < groups * blocks; ++i)
            pack(i, w + (i / blocks * width + i % blocks * amx::BLOCK) * row, row, step, static_cast<Bf16*>(room.start));
        states[0] = static_cast<Bf16*>(of_states.start);
    }

    int columns(int64_t block) const { return int(std::min<int64_t>(amx::BLOCK, width - block * amx::BLOCK)); }

    // Rows that are multiplied next, at most two lots of them.
    void take(const float* a, int64_t a_row, int64_t rows, bool second = false) {
        if (second) states[1] = states[0] + taken * steps;
        taken = (rows + amx::BLOCK - 1) / amx::BLOCK * amx::BLOCK;
        from[second] = a;
        const int64_t tiles = steps / amx::STEPS;
        for (int64_t i = 0; i < rows; ++i)
            for (int64_t t = 0; t < tiles; ++t) {
                Bf16* to = states[second] + (i / amx::ROWS * tiles + t) * amx::TILE + i % amx::ROWS * amx::STEPS;
                const int64_t there = std::min<int64_t>(amx::STEPS, k - t * amx::STEPS);
                narrow(to, a + i * a_row + t * amx::STEPS, there);
                std::fill(to + there, to + amx::STEPS, Bf16{0});
            }
    }

    // c = a B (+ c) of rows that were taken, in the columns of one block; c points to the first of them.
    void multiply(int64_t group, int64_t block, const float* a, int64_t, int64_t rows, float* c, int64_t c_row, bool add) const {
        const int64_t cols = columns(block);
        const Bf16* state = states[a == from[1]];
        for (int64_t i = 0; i < rows; i += amx::BLOCK) {
            alignas(64) float sums[amx::SUMS];
            const int64_t high = std::min<int64_t>(amx::BLOCK, rows - i);
            {
                amx::Unit own;
                amx::block(own, amx::Rows::packed(state + i * steps, k), {}, panels + (group * blocks + block) * steps * amx::BLOCK,
                           sums, false, high, cols);
            }
            for (int64_t r = 0; r < high; ++r)
                for (int64_t j = 0; j < cols; j += lanes<float>) {
                    const int64_t count = std::min<int64_t>(lanes<float>, cols - j);
                    float* to = c + (i + r) * c_row + j;
                    const Vec<float> v = load(sums + r * amx::BLOCK + j);
                    store_first(to, add ? load_first(to, count) + v : v, count);
                }
        }
    }

    const int64_t k, width, blocks;

  private:
    const int64_t steps;  // in whole tiles
    Borrowed memory, of_states;
    Bf16* const panels;
    Bf16* states[2] = {};
    const float* from[2] = {};
    int64_t taken = 0;
    amx::Unit unit;  // of the thread that walks through the steps

    void pack(int64_t i, const float* w, int64_t row, int64_t step, Bf16* room) {
        const int cols = columns(i % blocks);
        Bf16* to = panels + i * steps * amx::BLOCK;
        if (step == 1) {
            for (int64_t j = 0; j < cols; ++j) narrow(room + j * k, w + j * row, k);
            return amx::pack_columns(to, amx::width_of(cols), {room, k, 1}, cols, k);
        }
        for (int64_t p = 0; p < k; ++p) narrow(room + p * cols, w + p * step, cols);
        amx::pack_columns(to, amx::width_of(cols), {room, 1, cols}, cols, k);
    }
};

}  // namespace rnn
}  // namespace fw
#endif
