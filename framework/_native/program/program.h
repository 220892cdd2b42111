// Elementwise programs as data, and how they run: one pass over memory, block by block through registers that
// stay in the L1 cache.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/layout.h"
#include "base/pool.h"

namespace fw {

template <class T> using Instruction = void (*)(T* d, const T* a, const T* b, const T* c, int64_t n);

constexpr int MOST_SLOTS = 64;            // arguments, constants, registers and the result of a program
constexpr int64_t L1_BYTES = 24 << 10;    // what the registers of a block may take
constexpr int64_t MOST_BLOCK = 2048;
constexpr int64_t STEPS_BLOCK = 1024;      // of several steps: the stores of the last one, if they are few, wait in the
                                          // processor while the next block is computed
constexpr int64_t SCRATCH_BYTES = std::max<int64_t>(L1_BYTES, (MOST_SLOTS + 2) * LEAST_BLOCK * 8);
constexpr int64_t PIECE_COST = 1 << 16;   // additions of 4 bytes that are worth a thread's attention

inline int64_t grain(int cost, size_t bytes = 4) { return worth(std::max<int64_t>(PIECE_COST * 4 / (cost * int64_t(bytes)), 4096)) / 64 * 64; }

struct Step {
    std::string name;
    int d, a, b, c;
};

// An instruction where its second operand is the same number throughout, and the third, if `third` says so. turned: where the first
// of its two is, which comes second here.
template <class T> struct Fixed {
    Instruction<T> run = nullptr;
    bool third = false;
    Instruction<T> turned = nullptr;
    bool not_by_lines = false;  // not of one number for each line: there is a third one besides, or its results are others
};

// Two steps that one loop computes: what the first one makes is the second one's operand `through`. p: the operands of both, a, b
// and c; `arrays` and `numbers` have a bit for each that is looked at. same: whether both have the same a.
template <class T> struct Both {
    const char *first, *second;
    int through, arrays, numbers;
    bool same;
    void (*run)(T* d, const T* const* p, int64_t n);
};

template <class T> struct Compiled {
    std::vector<std::pair<Instruction<T>, Step>> steps;
    const Both<T>* both = nullptr;  // where they are such steps
    std::vector<Fixed<T>> fixed;  // of each step
    std::vector<T> constants;
    std::vector<int> costs;  // of each step
    int cost = 0;
    bool fits = false;
};

// The loops of the first steps of a program, as many as are chosen: those for numbers where operands are the same throughout, as
// numbers are, and what is made of them. is_number(slot): of arguments and constants.
template <class T> struct Chosen {
    static constexpr size_t MOST = 32;
    const Compiled<T>& compiled;
    Instruction<T> loops[MOST];

    template <class F> Chosen(const Compiled<T>& compiled, int first_register, F&& is_number) : compiled(compiled) {
        bool same[MOST_SLOTS] = {};
        for (int s = 0; s < first_register; ++s) same[s] = is_number(s);
        for (size_t i = 0; i < std::min(MOST, compiled.steps.size()); ++i) {
            const auto& [ordinary, step] = compiled.steps[i];
            const Fixed<T> fixed = compiled.fixed[i];
            const bool quick = fixed.run && same[step.b] && (!fixed.third || same[step.c]);
            loops[i] = quick ? fixed.run : ordinary;
            same[step.d] = same[step.a] && same[step.b] && same[step.c];
        }
    }
    Instruction<T> operator[](size_t i) const { return i < MOST ? loops[i] : compiled.steps[i].first; }
};

// What is known of a program for numbers of 16 bits (`program_bf16.cpp`): which loop of its own it has, if it is so short, and
// whether it is one step that changes signs.
struct NarrowForm {
    enum Sign : char { OTHER, NEG, ABS, COPYSIGN };
    int loop = -1;
    bool nan_number = false;  // whether another number comes in place of nan, as its second step
    Sign sign = OTHER;
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
    NarrowForm narrow;

    int first_register() const { return arguments + int(constants.size()); }
    int result() const { return first_register() + registers; }

    const char* wrong() const;  // why it cannot run, nullptr if it can; before `compile`
    void compile();             // fills in the last five
};

NarrowForm narrow_form_of(const Program& program);
std::vector<const char*> instruction_names_of_all();  // those of numbers with fractions, then of whole ones

// -- running -----------------------------------------------------------------------------------

template <class T> struct Run {
    const Program& program;
    const Compiled<T>& compiled;
    const Layout& layout;                 // of the result and the array arguments
    const OperandList& operands;  // one for each argument; a number has stride 0 everywhere
    char* result;
    const Operand* target = nullptr;  // where results go that do not lie in the order of their numbers

    // The elements [begin, end), to where results go.
    void operator()(int64_t begin, int64_t end) const;
    // The elements [begin, end), into `to`.
    void compute(int64_t begin, int64_t end, T* to) const;

  private:
    // What becomes of a block: its elements [at, at + n) are in `values`.
    using Use = void (*)(const Run&, const T* values, int64_t at, int64_t n);
    bool takes_numbers() const;
    bool in_lines(const Operand& o) const;
    bool settings_are_numbers() const;
    bool is_number(int slot) const {
        return slot < program.arguments ? operands[slot].constant : slot < program.first_register();
    }
    const T* number_at(int slot, T& value) const;
    bool are_both() const;
    void both(int64_t begin, int64_t end, T* to) const;
    bool is_bare() const;
    void bare(int64_t begin, int64_t end, T* to) const;
    enum class Lines { NONE, ARRAYS, FIRST_ONCE, SECOND_ONCE };  // how one instruction runs line by line, if it does
    bool is_one_of_numbers() const;
    bool once_a_line(int slot) const;
    Lines bare_kind() const;
    void bare_lines(int64_t begin, int64_t end, T* to, Lines kind) const;
    int64_t block() const;
    void blocks(int64_t begin, int64_t end, T* to, Use use) const;
    const T* argument(const Operand& o, bool truth, T* buffer, Gathered<T>& held, int64_t at, int64_t n, int64_t whole) const;
};

}  // namespace fw
