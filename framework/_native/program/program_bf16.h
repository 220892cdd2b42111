// Elementwise programs on float16 and bfloat16: widened piece by piece, computed as float32, rounded once. No Python.
#pragma once

#include <array>

#include "program/program.h"

namespace fw {

constexpr int MOST_HALF_ARGUMENTS = 8;

// What stands for an argument that is one number throughout.
struct HalfNumbers {
    std::array<float, MOST_HALF_ARGUMENTS> numbers{};
    std::array<char, MOST_HALF_ARGUMENTS> truths{};
};

// All elements of the layout, into `result` (of Half, Bf16 or truth values) in the order of their numbers, or to where `target`
// lies. Operands: arrays of H or of truth values, and numbers, which stand in `numbers`; those of arrays of a single element are
// added there.
template <class H>
void run_narrow(const Program& program, const Layout& layout, const OperandList& operands, HalfNumbers& numbers,
                char* result, const Operand* target);

}  // namespace fw
