// Recurrent sequences: the rows of the steps, the product with the state, and the walk through the steps.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/view.h"
#include "gemm/gemm.h"
#include "base/rows.h"
#include "base/scratch.h"
#include "gemm/gemm_kernel.h"

namespace fw {
namespace rnn {

// The rows of each step, in the order of the recurrence.
struct Steps {
    std::vector<int64_t> start, size;
    int64_t rows = 0, most = 0;

    // sizes: of each step, from 1 to INT32_MAX
    Steps(const std::vector<int64_t>& sizes, bool reverse) {
        for (int64_t n : sizes) {
            start.push_back(rows), size.push_back(n);
            rows += n;
            most = std::max(most, n);
        }
        if (reverse) std::reverse(start.begin(), start.end()), std::reverse(size.begin(), size.end());
    }

    int64_t count() const { return int64_t(size.size()); }

    // how many of the step's sequences took part in the step before
    int64_t known(int64_t s) const { return s ? std::min(size[s], size[s - 1]) : 0; }

    // the state of sequence k when step s began: what the step before left, or the first one
    template <class T> const T* before(int64_t s, int64_t k, const T* first, const T* left, int64_t width) const {
        return k < known(s) ? left + (start[s - 1] + k) * width : first + k * width;
    }
};

// A matrix that the state is multiplied by in every step, in panels of tile_cols columns; those of different
// groups (gates) are in different panels. B[p, j] lies at w + j * row + p * step.
template <class T> class Panels {
  public:
    Panels(const T* w, int64_t groups, int64_t width, int64_t k, int64_t row, int64_t step)
        : Panels(nullptr, width, k) {
        static thread_local ThreadScratch memory;
        T* to = static_cast<T*>(memory.at_least(size_t(numbers(groups)) * sizeof(T)));
        pack(to, w, groups, row, step);
        panels = to;
    }
    // Those that `pack` wrote before.
    Panels(const T* ready, int64_t width, int64_t k) : Panels(ready, width, k, k * tile_cols<T>, tile_cols<T>) {}

    // The matrix of one group where it lies, its columns side by side: for few products, which packing costs more than it saves.
    static Panels in_place(const T* w, int64_t width, int64_t k, int64_t step) {
        return Panels(w, width, k, tile_cols<T>, step);
    }
    static bool serves_in_place(int64_t width, int64_t k) { return fills<T>(width) && k * width <= 4 * PIECE; }

    int64_t numbers(int64_t groups) const { return groups * blocks * k * tile_cols<T>; }
    void pack(T* to, const T* w, int64_t groups, int64_t row, int64_t step) const {
        parallel(groups * blocks, std::max<int64_t>(1, PIECE / (k * tile_cols<T>)), [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                int64_t group = i / blocks, block = i % blocks;
                const T* from = w + (group * width + block * tile_cols<T>) * row;
                pack_panel(to + i * k * tile_cols<T>, tile_cols<T>, from, columns(block), row, step, k);
            }
        });
    }

    int columns(int64_t block) const { return int(std::min<int64_t>(tile_cols<T>, width - block * tile_cols<T>)); }

    static constexpr bool in_rows = true;  // whether one row goes by itself
    void take(const T*, int64_t, int64_t, bool = false) const {}  // rows are read where they lie

    // c = a B (+ c) in the columns of one block; c points to the first of them.
    void multiply(int64_t group, int64_t block, const T* a, int64_t a_row, int64_t rows, T* c, int64_t c_row,
                  bool add) const {
        Tile<T> t = tile(group, block, c_row, add);
        t.a_row = a_row;
        for (int64_t left = (rows + tile_rows - 1) / tile_rows, done = 0; left > 0; --left) {
            int high = int((rows - done) / left);
            t.a = a + done * a_row, t.c = c + done * c_row;
            run_tile(high, t);
            done += high;
        }
    }

    // One row with the panels of all gates at once, of which each would wait for its own sums.
    template <class Cell> void multiply_row(int64_t block, const T* a, T* c, int64_t c_row) const {
        Tile<T> t[Cell::gates];
        for (int g = 0; g < Cell::gates; ++g) {
            t[g] = tile(g, block, c_row, Cell::adds(g));
            t[g].a = a, t[g].a_row = 1, t[g].c = c + Cell::place(g) * width;
        }
        run_rows(Cell::gates, t);
    }

    const int64_t k, width, blocks;

  private:
    Panels(const T* panels, int64_t width, int64_t k, int64_t panel, int64_t step)
        : k(k), width(width), blocks((width + tile_cols<T> - 1) / tile_cols<T>), panels(panels), panel(panel), step(step) {}

    Tile<T> tile(int64_t group, int64_t block, int64_t c_row, bool add) const {
        Tile<T> t;
        t.b = panels + (group * blocks + block) * panel;
        t.b_step = step, t.a_step = 1, t.c_row = c_row;
        t.k = k, t.cols = columns(block), t.add = add;
        return t;
    }

    const T* panels;
    int64_t panel, step;  // from one panel to the next, and from one row of a panel to the next
};

// body(block) for all blocks of columns, shared by the threads where a step is worth it.
template <class W, class F> void each_block(const W& w, int64_t work, F&& body) {
    constexpr int64_t alone = 200 * 1000;  // multiplications that one thread makes before others are awake
    int64_t grain = work < alone ? w.blocks : (w.blocks + threads() - 1) / threads();
    parallel(w.blocks, grain, [&](int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; ++block) body(block);
    });
}

// Every step: what comes from the state is added to the gates, then cell.step(s, columns) finishes them.
template <class T, class W, class Cell>
void forward(const Steps& steps, W&& w, const Cell& cell, const T* h0, const T* y, int64_t width) {
    const int64_t row = Cell::row * width;
    for (int64_t s = 0; s < steps.count(); ++s) {
        int64_t known = steps.known(s), fresh = steps.size[s] - known;
        T* gates = cell.a + steps.start[s] * row;
        if (known) w.take(y + steps.start[s - 1] * width, width, known);
        if (fresh) w.take(h0 + known * width, width, fresh, known > 0);
        each_block(w, steps.size[s] * w.k * width * Cell::gates, [&](int64_t block) {
            int64_t j = block * tile_cols<T>;
            bool several = false;
            if constexpr (Cell::gates > 2 && std::decay_t<W>::in_rows) {
                several = steps.size[s] == 1 && w.columns(block) == tile_cols<T>;
                if (several) w.template multiply_row<Cell>(block, known ? y + steps.start[s - 1] * width : h0, gates + j, row);
            }
            for (int g = 0; g < Cell::gates && !several; ++g) {
                T* c = gates + Cell::place(g) * width + j;
                bool add = Cell::adds(g);
                const T* left = known ? y + steps.start[s - 1] * width : nullptr;
                if (known) w.multiply(g, block, left, width, known, c, row, add);
                if (fresh) w.multiply(g, block, h0 + known * width, width, fresh, c + known * row, row, add);
            }
            cell.step(s, j, j + w.columns(block));
        });
    }
}

// Every step from the last: cell.step(s, columns) makes the gates' gradients d of dh, and those, times the
// weights, are the dh of the step before. At the end dh is that of the first state, if `last`.
template <class T, class W, class Cell>
void backward(const Steps& steps, W&& w, const Cell& cell, const T* d, T* dh, bool last) {
    for (int64_t s = steps.count(); s > 0 || (s == 0 && last); --s) {
        int64_t rows = s < steps.count() ? steps.size[s] : 0;
        if (rows) w.take(d + steps.start[s] * w.k, w.k, rows);
        each_block(w, steps.size[std::max<int64_t>(s - 1, 0)] * w.k * w.width, [&](int64_t block) {
            int64_t j = block * tile_cols<T>;
            if (rows) w.multiply(0, block, d + steps.start[s] * w.k, w.k, rows, dh + j, w.width, Cell::keeps);
            if (s > 0) cell.step(s - 1, j, j + w.columns(block));
        });
    }
}

// The states that the sequences end with, from the outputs of all steps.
template <class T> void final_states(const Steps& steps, const T* y, T* h, int64_t width) {
    for (int64_t s = 0; s < steps.count(); ++s) {
        int64_t go_on = s + 1 < steps.count() ? std::min(steps.size[s], steps.size[s + 1]) : 0;
        for (int64_t k = go_on; k < steps.size[s]; ++k)
            std::memcpy(h + k * width, y + (steps.start[s] + k) * width, size_t(width) * sizeof(T));
    }
}

// The states that the steps began with, one row for each of y.
template <class T> void first_states(const Steps& steps, const T* h0, const T* y, T* out, int64_t width) {
    for (int64_t s = 0; s < steps.count(); ++s) {
        T* to = out + steps.start[s] * width;
        int64_t known = steps.known(s), row = width * int64_t(sizeof(T));
        if (known) std::memcpy(to, y + steps.start[s - 1] * width, size_t(known * row));
        std::memcpy(to + known * width, h0 + known * width, size_t((steps.size[s] - known) * row));
    }
}

}  // namespace rnn
}  // namespace fw
