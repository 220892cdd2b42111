// Elementwise programs as data, and how they run: one pass over memory, block by block through registers that
// stay in the L1 cache.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/layout.h"
#include "base/pool.h"

namespace fw {

template <class T> using Instruction = void (*)(T* d, const T* a, const T* b, const T* c, int64_t n);

constexpr int MOST_SLOTS = 64;            // arguments, constants, registers and the result of a program
constexpr int64_t L1_BYTES = 24 << 10;    // what the registers of a block may take
constexpr int64_t LEAST_BLOCK = 128, MOST_BLOCK = 2048;
constexpr int64_t STEPS_BLOCK = 512;      // of several steps: the stores of the last one, if they are few, wait in the
                                          // processor while the next block is computed
constexpr int64_t SCRATCH_BYTES = std::max<int64_t>(L1_BYTES, (MOST_SLOTS + 2) * LEAST_BLOCK * 8);
constexpr int64_t PIECE_COST = 1 << 16;   // additions that are worth a thread's attention

inline int64_t grain(int cost) { return std::max<int64_t>(PIECE_COST / cost, 4096) / 64 * 64; }

struct Step {
    std::string name;
    int d, a, b, c;
};

// An instruction where its second operand is the same number throughout, and the third, if `third` says so.
template <class T> struct Fixed {
    Instruction<T> run = nullptr;
    bool third = false;
};

template <class T> struct Compiled {
    std::vector<std::pair<Instruction<T>, Step>> steps;
    std::vector<Fixed<T>> fixed;  // of each step
    std::vector<T> constants;
    std::vector<int> costs;  // of each step
    int cost = 0;
    bool fits = false;
};

// Slots are numbered: arguments, constants, registers, and last the result.
struct Program {
    int arguments = 0, registers = 0;
    std::vector<double> constants;
    std::vector<Step> steps;
    std::vector<bool> truth;  // which arguments are truth values
    bool truth_result = false;
    int once = 0;  // steps at the beginning that depend on settings and constants only
    Compiled<float> f32;
    Compiled<double> f64;
    Compiled<int32_t> i32;
    Compiled<int64_t> i64;

    int first_register() const { return arguments + int(constants.size()); }
    int result() const { return first_register() + registers; }

    const char* wrong() const;  // why it cannot run, nullptr if it can; before `compile`
    void compile();             // fills in the last four
};

std::vector<const char*> instruction_names_of_all();  // those of numbers with fractions, then of whole ones

// -- running -----------------------------------------------------------------------------------

// Truth values between lanes of ones or zeros and NumPy's bytes, which are 1 or 0.
template <class T> void narrow(const T* lane_values, char* to, int64_t n) {
    typedef Int<T> __attribute__((may_alias)) Lane;
    const Lane* from = reinterpret_cast<const Lane*>(lane_values);
    for (int64_t i = 0; i < n; ++i) to[i] = char(from[i] & 1);
}

template <class T> void widen(const char* from, T* lane_values, int64_t n) {
    typedef Int<T> __attribute__((may_alias)) Lane;
    Lane* to = reinterpret_cast<Lane*>(lane_values);
    for (int64_t i = 0; i < n; ++i) to[i] = Lane(-Lane(from[i]));
}

template <class T> struct Run {
    const Program& program;
    const Compiled<T>& compiled;
    const Layout& layout;                 // of the result and the array arguments
    const std::vector<Operand>& operands;  // one for each argument; a number has stride 0 everywhere
    char* result;
    const Operand* target = nullptr;  // where results go that do not lie in the order of their numbers

    // Whether the arguments of the first steps are numbers: their buffers are filled once, as a whole.
    bool settings_are_numbers() const {
        for (int i = 0; i < program.once; ++i)
            for (int s : {compiled.steps[i].second.a, compiled.steps[i].second.b, compiled.steps[i].second.c})
                if (s < program.arguments && !operands[s].constant) return false;
        return true;
    }

    bool is_number(int slot) const {
        return slot < program.arguments ? operands[slot].constant : slot < program.first_register();
    }

    // Numbers in a block. Where operands are broadcast, blocks end where their lines do: no line is copied then.
    int64_t block() const {
        int64_t buffers = program.registers + int64_t(program.constants.size()) + 2;
        bool flat = true;
        for (const Operand& o : operands) {
            buffers += !o.flat;
            flat = flat && (o.flat || o.constant);
        }
        const int64_t fit = L1_BYTES / int64_t(sizeof(T)) / buffers / 64 * 64;
        const int64_t limit = compiled.steps.size() > 1 ? STEPS_BLOCK : MOST_BLOCK;
        const int64_t most = std::min(std::max(fit, LEAST_BLOCK), limit), line = flat ? 0 : layout.line();
        if (line < LEAST_BLOCK) return most;
        if (line <= most) return most / line * line;
        const int64_t parts = (line + most - 1) / most;
        return line % parts == 0 ? line / parts : most;
    }

    // What becomes of a block: its elements [at, at + n) are in `values`.
    using Use = void (*)(const Run&, const T* values, int64_t at, int64_t n);

    void operator()(int64_t begin, int64_t end) const {
        if (program.truth_result) {
            blocks(begin, end, nullptr, [](const Run& run, const T* values, int64_t at, int64_t n) {
                narrow(values, run.result + at, n);
            });
        } else if (target) {
            blocks(begin, end, nullptr, [](const Run& run, const T* values, int64_t at, int64_t n) {
                run.layout.each_run(*run.target, at, n, [&](const char* p, int64_t stride, int64_t count, int64_t offset) {
                    char* to = const_cast<char*>(p);
                    for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * stride, values + offset + i, sizeof(T));
                });
            });
        } else {
            compute(begin, end, reinterpret_cast<T*>(result) + begin);
        }
    }

    // The elements [begin, end), into `to`.
    void compute(int64_t begin, int64_t end, T* to) const {
        blocks(begin, end, to, [](const Run&, const T*, int64_t, int64_t) {});
    }

    // Computes the elements [begin, end) block by block: into `to`, or where `use` then finds them.
    void blocks(int64_t begin, int64_t end, T* to, Use use) const {
        alignas(64) static thread_local unsigned char memory[SCRATCH_BYTES];
        const int64_t whole = block(), size = (std::min(whole, end - begin) + 63) / 64 * 64;
        T* free = reinterpret_cast<T*>(memory);
        T* slots[MOST_SLOTS];
        bool filled[MOST_SLOTS] = {};
        int slot = 0, first_step = 0;
        for (const Operand& o : operands) {
            slots[slot] = o.flat && !program.truth[slot] ? nullptr : free;
            free += slots[slot++] ? size : 0;
        }
        for (T c : compiled.constants) {
            std::fill(free, free + size, c);
            slots[slot++] = free;
            free += size;
        }
        for (int i = 0; i < program.registers; ++i, free += size) slots[slot++] = free;
        const bool settled = program.once && settings_are_numbers();
        for (int64_t at = begin, n; at < end; at += n) {
            n = std::min(whole - at % whole, end - at);
            const T* inputs[MOST_SLOTS];
            for (int i = 0; i < program.arguments; ++i)
                inputs[i] = argument(operands[i], program.truth[i], slots[i], filled[i], at, n, size);
            slots[slot] = to ? to + (at - begin) : free;
            if (to && compiled.steps.size() > 1)  // the result's lines come while the first steps compute
                for (int64_t i = 0; i < n; i += 64 / int64_t(sizeof(T))) __builtin_prefetch(slots[slot] + i, 1);
            auto in = [&](int s) { return s < program.arguments ? inputs[s] : slots[s]; };
            for (int i = first_step; i < int(compiled.steps.size()); ++i) {
                const auto& [ordinary, step] = compiled.steps[i];
                const Fixed<T> fixed = compiled.fixed[i];
                const bool quick = fixed.run && is_number(step.b) && (!fixed.third || is_number(step.c));
                const auto instruction = quick ? fixed.run : ordinary;
                instruction(slots[step.d], in(step.a), in(step.b), in(step.c), settled && i < program.once ? size : n);
            }
            if (settled) first_step = program.once;
            use(*this, slots[slot], at, n);
        }
    }

    const T* argument(const Operand& o, bool truth, T* buffer, bool& filled, int64_t at, int64_t n,
                      int64_t size) const {
        if (!buffer) return reinterpret_cast<const T*>(o.data) + at;
        if (o.constant) {
            if (!filled) {
                T value;
                if (truth) value = bits<T>(Int<T>(-(*o.data != 0)));
                else std::memcpy(&value, o.data, sizeof value);
                std::fill(buffer, buffer + size, value);
                filled = true;
            }
            return buffer;
        }
        if (truth) {
            auto put = [&](const char* from, int64_t stride, int64_t count, int64_t offset) {
                if (stride == 1) widen(from, buffer + offset, count);
                else for (int64_t i = 0; i < count; ++i) widen(from + i * stride, buffer + offset + i, 1);
            };
            if (o.flat) put(o.data + at, 1, n, 0);
            else layout.each_run(o, at, n, put);
            return buffer;
        }
        return layout.template gather<T>(o, buffer, at, n);
    }
};

}  // namespace fw
