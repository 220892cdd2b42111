// Several elementwise programs as one pass over memory, with several results: what a compiled function makes of
// calls that follow each other. Each step rounds as in the program that it comes from, so the bits are the same. No Python.
#pragma once

#include "program/program.h"

namespace fw {

constexpr int MOST_RESULTS = 24;

template <class T> struct FusedRun {
    const Program& program;  // its slots: arguments, constants, registers, results
    const Compiled<T>& compiled;
    const Layout& layout;
    const OperandList& operands;
    T* const* results;
    int count;

    // The elements [begin, end) of all results, which lie row by row.
    void operator()(int64_t begin, int64_t end) const;

  private:
    // Operands that lie in memory in order and which step asks for their part in the next block: a pass that computes
    // much between what it reads and what it writes would wait for memory, and let it wait.
    struct Ahead { size_t step; const char* data; };
    std::vector<Ahead> ahead() const;
    int64_t block() const;
};

}  // namespace fw
