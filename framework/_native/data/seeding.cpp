#include "data/seeding.h"

#include "move/block.h"

// M. Matsumoto, T. Nishimura: Mersenne Twister, ACM TOMACS 8, 1998; the seedings are those of mt19937ar.c (2002).
// A seeding is one long chain of multiplications, so it takes several microseconds; the seeds of a row are known
// beforehand, and their chains run side by side in the lanes of a vector.
namespace fw::seeding {
namespace {

constexpr int N = Twister::N;
// The lanes' words at one place of their states: several vectors' worth, since each waits for its own last multiplication.
typedef uint32_t Words __attribute__((vector_size(4 * LANES)));

uint64_t mix(uint64_t x) {  // splitmix64, as data/randomness.py has it
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

// x[i] from x[i - 1], before the two differ
template <class V> FW_INLINE V turned(V x) { return x ^ (x >> 30); }

// mt19937ar's init_genrand for the lanes' seeds, and the first loop of its init_by_array for their seeds of two words: neither
// waits for the other.
void seed_first(const Words& low, const Words& high, Words* by_words, Words* by_number) {
    static const Twister first = [] {
        Twister t;
        t.words[0] = 19650218u;
        for (uint32_t i = 1; i < N; ++i) t.words[i] = turned(t.words[i - 1]) * 1812433253u + i;
        return t;
    }();
    Words last = Words{} + first.words[0], number = low;
    by_number[0] = low;
    for (int k = 0; k < N; ++k) {  // places 1 to 623, and 1 once more
        const int i = k < N - 1 ? k + 1 : 1;
        const Words old = k < N - 1 ? Words{} + first.words[i] : by_words[1];
        last = (old ^ (turned(last) * 1664525u)) + (k % 2 ? high + 1u : low);
        by_words[i] = last;
        if (i == N - 1) by_words[0] = last;
        if (k == N - 1) break;
        number = turned(number) * 1812433253u + uint32_t(i);
        by_number[i] = number;
    }
}

// The second loop of init_by_array.
void seed_second(Words* mt) {
    Words last = mt[1];
    for (uint32_t k = 0; k < N - 1; ++k) {
        const uint32_t i = k < N - 2 ? k + 2 : 1;
        last = (mt[i] ^ (turned(last) * 1566083941u)) - i;
        mt[i] = last;
    }
    mt[0] = Words{} + 0x80000000u;
}

void spread(const Words* mt, Twister* states) {
    constexpr int SOME = 4;  // states at a time: no work that would wake other threads
    for (int lane = 0; lane < LANES; lane += SOME) {
        moving::Block b;
        b.add(SOME, 4, sizeof(Twister));
        b.add(N, sizeof(Words), 4);
        copy_block(b, 4, reinterpret_cast<const char*>(mt) + 4 * lane, reinterpret_cast<char*>(states + lane));
    }
}

}  // namespace

void Seeds::find(uint64_t row, uint64_t first) {
    alignas(64) Words by_words[N], by_number[N];
    Words low, high;
    for (int i = 0; i < LANES; ++i) {
        keys[i] = mix(row + first + uint64_t(i));
        low[i] = uint32_t(keys[i]), high[i] = uint32_t(keys[i] >> 32);
    }
    seed_first(low, high, by_words, by_number);
    seed_second(by_words);
    spread(by_words, python);
    spread(by_number, numpy);
}

}  // namespace fw::seeding
