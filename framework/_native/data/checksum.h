// CRC-32 (ISO 3309, as zlib's) by carry-less multiplication, where the processor has it. No Python.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fw {

bool has_crc32();
uint32_t crc32(const unsigned char* data, size_t n, uint32_t value);  // of what came before, 0 at first

}  // namespace fw
