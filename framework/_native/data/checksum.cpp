#include "data/checksum.h"

#include "base/intrinsics.h"

namespace fw {

// V. Gopal et al.: Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction, Intel 2009.
// Without the instruction zlib's is used.
#if defined(__x86_64__)
#define FW_FOLD __attribute__((target("pclmul,sse4.1")))

namespace {

// 64 bytes at a time are folded onto the next 64; n >= 64 and a multiple of 16. The bits are reversed.
FW_FOLD uint32_t fold(const unsigned char* p, size_t n, uint32_t crc) {
    auto at = [](const unsigned char* q) FW_FOLD { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(q)); };
    auto onto = [](__m128i x, __m128i k, __m128i next) FW_FOLD {
        __m128i low = _mm_clmulepi64_si128(x, k, 0x00), high = _mm_clmulepi64_si128(x, k, 0x11);
        return _mm_xor_si128(_mm_xor_si128(low, high), next);
    };
    const __m128i by4 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);  // x^(512-32), x^(512+32) mod P
    const __m128i by1 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);  // x^(128-32), x^(128+32) mod P
    __m128i a = _mm_xor_si128(at(p), _mm_cvtsi32_si128(int(crc))), b = at(p + 16), c = at(p + 32), d = at(p + 48);
    for (p += 64, n -= 64; n >= 64; p += 64, n -= 64) {
        a = onto(a, by4, at(p));
        b = onto(b, by4, at(p + 16));
        c = onto(c, by4, at(p + 32));
        d = onto(d, by4, at(p + 48));
    }
    a = onto(a, by1, b);
    a = onto(a, by1, c);
    a = onto(a, by1, d);
    for (; n >= 16; p += 16, n -= 16) a = onto(a, by1, at(p));
    // 128 bits to 64, to 32
    const __m128i word = _mm_setr_epi32(-1, 0, -1, 0);
    __m128i t = _mm_clmulepi64_si128(a, by1, 0x10);
    a = _mm_xor_si128(_mm_srli_si128(a, 8), t);
    t = _mm_srli_si128(a, 4);
    a = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(a, word), _mm_set_epi64x(0, 0x0163cd6124), 0x00), t);
    const __m128i barrett = _mm_set_epi64x(0x01f7011641, 0x01db710641);
    t = _mm_clmulepi64_si128(_mm_and_si128(a, word), barrett, 0x10);
    t = _mm_clmulepi64_si128(_mm_and_si128(t, word), barrett, 0x00);
    return uint32_t(_mm_extract_epi32(_mm_xor_si128(a, t), 1));
}

uint32_t step(uint32_t crc, unsigned char byte) {
    crc ^= byte;
    for (int k = 0; k < 8; ++k) crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320u : 0);
    return crc;
}

}  // namespace

bool has_crc32() { return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1"); }

uint32_t crc32(const unsigned char* p, size_t n, uint32_t value) {
    const size_t whole = n >= 64 ? n / 16 * 16 : 0;
    uint32_t crc = ~value;
    if (whole) crc = fold(p, whole, crc);
    for (size_t i = whole; i < n; ++i) crc = step(crc, p[i]);
    return ~crc;
}

#else
bool has_crc32() { return false; }
uint32_t crc32(const unsigned char*, size_t, uint32_t) { return 0; }
#endif

}  // namespace fw
