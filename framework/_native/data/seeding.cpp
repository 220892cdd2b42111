#include "data/seeding.h"

#include "move/block.h"

// M. Matsumoto, T. Nishimura: Mersenne Twister, ACM TOMACS 8, 1998; the seedings are those of mt19937ar.c (2002).
// A seeding is one long chain of multiplications, so it takes several microseconds; the seeds of a row are known
// beforehand, and their chains run side by side in the lanes of a vector.
namespace fw::seeding {
namespace {

constexpr int N = Twister::N;
using Words = Vec<uint32_t>;

uint64_t mix(uint64_t x) {  // splitmix64, as data/randomness.py has it
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

// x[i] from x[i - 1], before the two differ
template <class V> FW_INLINE V turned(V x) { return x ^ (x >> 30); }

// mt19937ar's init_genrand for the lanes' seeds
void seed_by_number(Words seed, Words* mt) {
    mt[0] = seed;
    for (uint32_t i = 1; i < N; ++i) mt[i] = turned(mt[i - 1]) * 1812433253u + i;
}

// mt19937ar's init_by_array for the lanes' seeds of two words
void seed_by_words(Words low, Words high, Words* mt) {
    static const Twister first = [] {
        Twister t;
        t.words[0] = 19650218u;
        for (uint32_t i = 1; i < N; ++i) t.words[i] = turned(t.words[i - 1]) * 1812433253u + i;
        return t;
    }();
    Words last = splat(first.words[0]);
    for (int k = 0; k < N; ++k) {  // places 1 to 623, and 1 once more
        int i = k < N - 1 ? k + 1 : 1;
        Words old = k < N - 1 ? splat(first.words[i]) : mt[1];
        last = (old ^ (turned(last) * 1664525u)) + (k % 2 ? high + 1u : low);
        mt[i] = last;
        if (i == N - 1) mt[0] = last;
    }
    for (uint32_t k = 0; k < N - 1; ++k) {
        uint32_t i = k < N - 2 ? k + 2 : 1;
        last = (mt[i] ^ (turned(last) * 1566083941u)) - i;
        mt[i] = last;
    }
    mt[0] = splat(0x80000000u);
}

void spread(const Words* mt, Twister* states) {
    moving::Block b;
    b.add(LANES, 4, sizeof(Twister));
    b.add(N, sizeof(Words), 4);
    copy_block(b, 4, reinterpret_cast<const char*>(mt), reinterpret_cast<char*>(states));
}

}  // namespace

void Seeds::find(uint64_t row, uint64_t first) {
    alignas(64) Words mt[N];
    Words low, high;
    for (int i = 0; i < LANES; ++i) {
        keys[i] = mix(row + first + uint64_t(i));
        low[i] = uint32_t(keys[i]), high[i] = uint32_t(keys[i] >> 32);
    }
    seed_by_words(low, high, mt);
    spread(mt, python);
    seed_by_number(low, mt);
    spread(mt, numpy);
}

}  // namespace fw::seeding
