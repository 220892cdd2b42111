// Philox 4x64-10: four words as a pure function of a key and a counter.
// J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <cstdint>

#include "base/simd.h"

namespace fw {

constexpr int BLOCK = 4;  // words that one counter gives

// The keys of the rounds.
struct PhiloxKey {
    static constexpr int ROUNDS = 10;
    uint64_t low[ROUNDS], high[ROUNDS];

    PhiloxKey(uint64_t first, uint64_t second) {
        for (int i = 0; i < ROUNDS; ++i) {
            low[i] = first + uint64_t(i) * 0x9E3779B97F4A7C15u;
            high[i] = second + uint64_t(i) * 0xBB67AE8584CAA73Bu;
        }
    }
};

struct PhiloxCounter {
    uint64_t words[4];

    void advance(uint64_t n) {
        for (uint64_t& w : words) {
            w += n;
            if (w >= n) return;
            n = 1;
        }
    }
};

FW_INLINE uint64_t multiply(uint64_t a, uint64_t b, uint64_t& high) {
    unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
    high = uint64_t(product >> 64);
    return uint64_t(product);
}

FW_INLINE void philox(const PhiloxCounter& counter, const PhiloxKey& key, uint64_t* out) {
    uint64_t a = counter.words[0], b = counter.words[1], c = counter.words[2], d = counter.words[3];
    for (int i = 0; i < PhiloxKey::ROUNDS; ++i) {
        uint64_t high_a, high_c;
        uint64_t low_a = multiply(0xD2E7470EE14C6C93u, a, high_a);
        uint64_t low_c = multiply(0xCA5A826395121157u, c, high_c);
        a = high_c ^ b ^ key.low[i];
        b = low_c;
        c = high_a ^ d ^ key.high[i];
        d = low_a;
    }
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}

// The words of the n blocks that follow `counter`, which ends at the last of them.
FW_INLINE void philox_blocks(PhiloxCounter& counter, const PhiloxKey& key, int64_t n, uint64_t* out) {
    for (int64_t i = 0; i < n; ++i) {
        counter.advance(1);
        philox(counter, key, out + i * BLOCK);
    }
}

// Numbers in [0, 1) as NumPy makes them of random bits.
FW_INLINE float uniform_float(uint32_t bits) { return float(bits >> 8) * (1.0f / 16777216.0f); }
FW_INLINE double uniform_double(uint64_t bits) { return double(bits >> 11) * (1.0 / 9007199254740992.0); }

}  // namespace fw
