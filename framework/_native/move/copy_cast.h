// Conversion between the types of numbers, in one pass. No Python.
#pragma once

#include "move/block.h"

namespace fw::moving {

enum class NumberKind { boolean, uint8, int8, int16, int32, int64, float16, float32, float64, bfloat16 };

// Converts the rows [begin, end) of a block.
using Converter = void (*)(const Block& b, const char* from, char* to, int64_t begin, int64_t end);

Converter converter(NumberKind from, NumberKind to);  // nullptr for pairs that NumPy's own loops convert
// All elements of a block that is not empty, which is simplified; `bytes`: of an element, both.
void convert_block(Converter convert, Block& block, int64_t bytes, const char* from, char* to);

}  // namespace fw::moving
