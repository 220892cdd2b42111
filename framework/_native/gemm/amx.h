// The matrix unit of x86 (AMX) for bfloat16: eight tiles of 16 rows of 64 bytes, and the few instructions used here;
// beside them the same in plain C++, which runs anywhere and is what the instructions are defined to compute.
//
// `dot<C, A, B>`: C[i, j] += the sum over p < 32 of A[i, p] * B[p, j], with C of 16 x 16 float32, A of 16 rows of 32
// bfloat16, and B of 16 rows of 16 pairs: row q holds the numbers of steps 2q and 2q + 1, side by side for each column.
// Even and odd steps are summed apart, one after the other, then together, then into C; denormal numbers are 0, and a
// product is rounded only as part of its sum.
//
// `dot_bytes<C, A, B>`: the same of 64 steps and whole numbers: C of int32, A of int8, and B of uint8 in fours.
#pragma once

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/bf16.h"
#include "gemm/gemm.h"

#if defined(FW_AVX512) && defined(__linux__) && (defined(__clang__) || __GNUC__ >= 10)
#define FW_AMX 1
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#define FW_AMX 0
#endif

namespace fw::amx {

constexpr int ROWS = 16, ROW_BYTES = 64, STEPS = 32;  // of a tile; steps of a dot

// -- in plain C++ -----------------------------------------------------------------------------------

class Twin {
  public:
    Twin() = default;

    template <int T> void zero() { std::memset(tile[T], 0, sizeof tile[T]); }
    template <int T> void load(const void* p, int64_t stride) {
        for (int i = 0; i < ROWS; ++i) std::memcpy(tile[T][i], static_cast<const char*>(p) + i * stride, ROW_BYTES);
    }
    template <int T> void load_passing(const void* p, int64_t stride) { load<T>(p, stride); }
    template <int T> void store(void* p, int64_t stride) const {
        for (int i = 0; i < ROWS; ++i) std::memcpy(static_cast<char*>(p) + i * stride, tile[T][i], ROW_BYTES);
    }
    template <int C, int A, int B> void dot() {
        for (int i = 0; i < ROWS; ++i)
            for (int j = 0; j < ROWS; ++j) {
                float even = 0, odd = 0;
                for (int q = 0; q < ROWS; ++q) {
                    const uint32_t a = tile[A][i][q], b = tile[B][q][j];
                    even = flushed(std::fma(flushed(low(a)), flushed(low(b)), even));
                    odd = flushed(std::fma(flushed(high(a)), flushed(high(b)), odd));
                }
                const float sum = flushed(flushed(bits<float>(tile[C][i][j])) + flushed(even + odd));
                tile[C][i][j] = bits<uint32_t>(sum);
            }
    }

    template <int C, int A, int B> void dot_bytes() {
        for (int i = 0; i < ROWS; ++i)
            for (int j = 0; j < ROWS; ++j)
                for (int q = 0; q < ROWS; ++q)
                    for (int byte = 0; byte < 32; byte += 8) {
                        const int32_t a = int8_t(tile[A][i][q] >> byte), b = uint8_t(tile[B][q][j] >> byte);
                        tile[C][i][j] += uint32_t(a * b);
                    }
    }

    static float flushed(float x) {
        const uint32_t u = bits<uint32_t>(x);
        return u & 0x7f800000 ? x : bits<float>(u & 0x80000000);
    }

  private:
    static float low(uint32_t pair) { return bits<float>(pair << 16); }
    static float high(uint32_t pair) { return bits<float>(pair & 0xffff0000); }

    uint32_t tile[8][ROWS][ROW_BYTES / 4];
};

// -- in the processor -------------------------------------------------------------------------------

#if FW_AMX

// Whether there is one, the system keeps its registers, and lets this process use it (which has to be asked for).
// What is granted holds for all threads, and for processes forked from this one. FRAMEWORK_AMX=off does without.
inline bool available() {
    static const bool has = [] {
        const char* wanted = std::getenv("FRAMEWORK_AMX");
        if (wanted && (std::strcmp(wanted, "off") == 0 || std::strcmp(wanted, "0") == 0)) return false;
        unsigned a = 0, b = 0, c = 0, d = 0;
        if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return false;  // xgetbv
        unsigned kept, rest;
        __asm__("xgetbv" : "=a"(kept), "=d"(rest) : "c"(0));
        constexpr unsigned CONFIG = 1u << 17, DATA = 1u << 18, BF16 = 1u << 22, TILE = 1u << 24;
        if ((kept & (CONFIG | DATA)) != (CONFIG | DATA)) return false;
        if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & (BF16 | TILE)) != (BF16 | TILE)) return false;
        if (!__get_cpuid_count(7, 1, &a, &b, &c, &d) || !(a >> 5 & 1)) return false;  // conversions to bfloat16
        constexpr long REQUEST = 0x1023, TILE_DATA = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
        return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
    }();
    return has;
}

// Whether it multiplies bytes as well.
inline bool has_bytes() {
    static const bool has = [] {
        unsigned a = 0, b = 0, c = 0, d = 0;
        return available() && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 25 & 1);
    }();
    return has;
}

// The tiles of this thread, all of full size while it lives. To set them up and release them takes as long as a small product:
// what makes many keeps one around them.
class Unit {
  public:
    Unit() {
        if (alive()++) return;
        alignas(64) uint8_t settings[64] = {1};  // the only palette with tiles
        for (int t = 0; t < 8; ++t) settings[16 + 2 * t] = ROW_BYTES, settings[48 + t] = ROWS;
        __asm__ volatile("ldtilecfg %0" ::"m"(settings));
    }
    ~Unit() {
        if (--alive() == 0) __asm__ volatile("tilerelease" ::);
    }
    Unit(const Unit&) = delete;

    template <int T> void zero() { __asm__ volatile("tilezero %%tmm%c0" ::"i"(T)); }
    template <int T> void load(const void* p, int64_t stride) {
        __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(p), "r"(stride), "i"(T) : "memory");
    }
    // What the first cache need not keep: the numbers come from the second one, and drive nothing else out.
    template <int T> void load_passing(const void* p, int64_t stride) {
        __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" ::"r"(p), "r"(stride), "i"(T) : "memory");
    }
    template <int T> void store(void* p, int64_t stride) const {
        __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(p), "r"(stride), "i"(T) : "memory");
    }
    template <int C, int A, int B> void dot() {
        __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
    }
    template <int C, int A, int B> void dot_bytes() {
        __asm__ volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
    }

  private:
    static int& alive() {  // of this thread
        static thread_local int count = 0;
        return count;
    }
};

#else
inline bool available() { return false; }
inline bool has_bytes() { return false; }
using Unit = Twin;
#endif

}  // namespace fw::amx

namespace fw {

// Products by the matrix unit, which must be available, or by its twin if `plain`.
void gemm_by_tiles(const Gemm<Bf16>& g, const Batch& batch, bool plain);

// Products of float32 by the matrix unit, which must be available: operands are rounded to bfloat16, sums are not.
void gemm_rounded(const Gemm<float>& g, const Batch& batch = {});

}  // namespace fw
