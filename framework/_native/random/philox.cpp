// Large arrays of random numbers, drawn by several threads: the numbers that NumPy's Philox gives one after
// the other, and the state that it would be in after them.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/pool.h"
#include "random/draws.h"
#include "random/normal.h"
#include "random/philox.h"

namespace fw {
namespace {

constexpr int64_t GRAIN = 1024;  // blocks
constexpr int64_t BATCH = 16;    // blocks whose words are made together, so that the loops over them are vectors

// numpy.random.Philox: the counter of the last block, that block, how many of its words are used up, and the
// upper half of a word whose lower half was drawn.
struct PhiloxState {
    PhiloxKey key;
    PhiloxCounter counter;
    uint64_t buffer[BLOCK];
    uint64_t used, has_half, half;

    explicit PhiloxState(const uint64_t* w)
        : key{w[0], w[1]}, counter{{w[2], w[3], w[4], w[5]}}, used(w[10]), has_half(w[11]), half(w[12]) {
        std::copy(w + 6, w + 10, buffer);
    }
    void store(uint64_t* w) const {
        std::copy(counter.words, counter.words + 4, w + 2);
        std::copy(buffer, buffer + BLOCK, w + 6);
        w[10] = used, w[11] = has_half, w[12] = half;
    }

    uint64_t word() {
        if (used == BLOCK) {
            counter.advance(1);
            philox(counter, key, buffer);
            used = 0;
        }
        return buffer[used++];
    }
    template <class B> B next() {
        if constexpr (sizeof(B) == 8) return word();
        else return half_word();
    }
    template <class B> bool under_way() const { return used < BLOCK || (sizeof(B) < 8 && has_half); }
    uint32_t half_word() {
        if (has_half) {
            has_half = 0;
            return uint32_t(half);
        }
        uint64_t both = word();
        has_half = 1;
        half = both >> 32;
        return uint32_t(both);
    }

    // Calls body(first block, number of blocks, their words) for the next n blocks, which count as drawn.
    template <class F> void blocks(int64_t n, F&& body) {
        parallel(n, GRAIN, [&](int64_t begin, int64_t end) {
            PhiloxCounter at = counter;
            at.advance(uint64_t(begin));
            uint64_t words[BATCH * BLOCK];
            for (int64_t b = begin; b < end; b += BATCH) {
                int64_t count = std::min(BATCH, end - b);
                philox_blocks(at, key, count, words);
                body(b, count, words);
            }
        });
        counter.advance(uint64_t(n));
    }
};

template <class T> using Bits = typename std::make_unsigned<Int<T>>::type;  // what one number is made of

// Numbers that convert(bits, n, to) makes of random bits. The first and the last ones are drawn one by one: the
// first end the block under way, and the last leave in the buffer what NumPy would leave there.
template <class T, class F> void fill(PhiloxState& s, T* out, int64_t n, F convert) {
    constexpr int64_t PER = BLOCK * 8 / int64_t(sizeof(T));
    Bits<T> few[2 * PER];
    int64_t i = 0;
    for (; i < n && s.under_way<Bits<T>>(); ++i) few[i] = s.next<Bits<T>>();
    if (i) convert(few, i, out);
    int64_t whole = std::max<int64_t>(0, (n - i - 1) / PER);
    T* start = out + i;
    s.blocks(whole, [=](int64_t b, int64_t count, const uint64_t* words) {
        Bits<T> drawn[BATCH * PER];
        std::memcpy(drawn, words, size_t(count) * BLOCK * 8);
        convert(drawn, count * PER, start + b * PER);
    });
    out = start + whole * PER;
    const int64_t left = n - i - whole * PER;
    for (int64_t k = 0; k < left; ++k) few[k] = s.next<Bits<T>>();
    if (left) convert(few, left, out);
}

void uniform(const uint32_t* bits, int64_t n, float* to) {
    for (int64_t k = 0; k < n; ++k) to[k] = uniform_float(bits[k]);
}

void uniform(const uint64_t* bits, int64_t n, double* to) {
    for (int64_t k = 0; k < n; ++k) to[k] = uniform_double(bits[k]);
}

template <class T> void gaussian(const Bits<T>* drawn, int64_t n, T* to) {
    const Int<T>* from = reinterpret_cast<const Int<T>*>(drawn);
    int64_t k = 0;
    for (; k + lanes<T> <= n; k += lanes<T>) store(to + k, normal::of_bits<T>(load(from + k)));
    if (k < n) store_part(to + k, normal::of_bits<T>(load_part(from + k, n - k)), n - k);
}

// Integers in [low, low + range), range < 2**32, without bias: D. Lemire, "Fast random integer generation in
// an interval", 2019. A number takes half a word, and seldom more, if that one is rejected.
struct Bounded {
    uint64_t range;
    uint32_t threshold;
    int64_t low;
    explicit Bounded(int64_t low, uint64_t range)
        : range(range), threshold(uint32_t((0x100000000u - range) % range)), low(low) {}

    bool take(uint32_t bits, int64_t& out) const {
        uint64_t product = bits * range;
        out = low + int64_t(product >> 32);
        return uint32_t(product) >= threshold;
    }
    int64_t draw(PhiloxState& s) const {
        int64_t out;
        while (!take(s.half_word(), out)) {}
        return out;
    }
};

// Whole blocks as if nothing were rejected; the first number that was, if one, is where it goes on.
void fill_integers(PhiloxState& s, const Bounded& bounded, int64_t* out, int64_t n) {
    constexpr int64_t PER = 2 * BLOCK;
    int64_t i = 0;
    while (i < n) {
        for (; i < n && s.under_way<uint32_t>(); ++i) out[i] = bounded.draw(s);
        int64_t whole = std::max<int64_t>(0, (n - i - 1) / PER);
        std::atomic<int64_t> rejected{whole};  // the first batch with a rejected number begins here
        int64_t* start = out + i;
        PhiloxCounter before = s.counter;
        s.blocks(whole, [&](int64_t b, int64_t count, const uint64_t* words) {
            bool good = true;
            int64_t* to = start + b * PER;
            for (int64_t k = 0; k < count * BLOCK; ++k) {
                good &= bounded.take(uint32_t(words[k]), to[2 * k]);
                good &= bounded.take(uint32_t(words[k] >> 32), to[2 * k + 1]);
            }
            int64_t first = rejected.load();
            while (!good && b < first && !rejected.compare_exchange_weak(first, b)) {}
        });
        s.counter = before;
        s.counter.advance(uint64_t(rejected.load()));
        i += rejected.load() * PER;
        for (int64_t end = std::min(n, i + BATCH * PER); i < end; ++i) out[i] = bounded.draw(s);
    }
}

// Draws with the state that the words are, and leaves there the one after it.
template <class F> void draw(uint64_t* words, F&& fill_it) {
    PhiloxState s(words);
    fill_it(s);
    s.store(words);
}

}  // namespace

namespace random {

bool is_state(const uint64_t* words) { return words[10] <= BLOCK; }

uint64_t draw_word(uint64_t* words) {
    PhiloxState s(words);
    const uint64_t word = s.word();
    s.store(words);
    return word;
}

template <class T> void draw_uniform(uint64_t* words, T* out, int64_t n) {
    draw(words, [=](PhiloxState& s) {
        fill(s, out, n, [](auto* bits, int64_t count, auto* to) { uniform(bits, count, to); });
    });
}

template <class T> void draw_normal(uint64_t* words, T* out, int64_t n) {
    draw(words, [=](PhiloxState& s) { fill(s, out, n, gaussian<T>); });
}

bool takes_range(int64_t low, uint64_t range, double n) {
    constexpr double MOST_REJECTED = 8;
    if (range < 2 || range >= 0x100000000u || low > INT64_MAX - int64_t(range)) return false;
    return n * Bounded(low, range).threshold / 4294967296.0 <= MOST_REJECTED;
}

void draw_integers(uint64_t* words, int64_t* out, int64_t n, int64_t low, uint64_t range) {
    const Bounded bounded(low, range);
    draw(words, [&](PhiloxState& s) { fill_integers(s, bounded, out, n); });
}

template <class T> void draw_between(uint64_t* words, T* out, int64_t n, double low, double high) {
    draw_uniform(words, out, n);
    if (low == 0 && high == 1) return;
    const T span = T(high - low), from = T(low), last = std::nextafter(T(high), T(low));  // which rounding may pass
    for (int64_t i = 0; i < n; ++i) out[i] = std::min(out[i] * span + from, last);
}

template <class T> void draw_spread(uint64_t* words, T* out, int64_t n, double mean, double deviation) {
    draw_normal(words, out, n);
    if (mean == 0 && deviation == 1) return;
    for (int64_t i = 0; i < n; ++i) out[i] = out[i] * T(deviation) + T(mean);
}

template <class T> void draw_coins(uint64_t* words, const T* chances, T* out, int64_t n) {
    draw_uniform(words, out, n);
    for (int64_t i = 0; i < n; ++i) out[i] = out[i] < chances[i] ? T(1) : T(0);
}

template <class T> void draw_coins(uint64_t* words, T chance, T* out, int64_t n) {
    draw_uniform(words, out, n);
    for (int64_t i = 0; i < n; ++i) out[i] = out[i] < chance ? T(1) : T(0);
}

#define FW_DRAWS(T)                                                     \
    template void draw_uniform(uint64_t*, T*, int64_t);                 \
    template void draw_normal(uint64_t*, T*, int64_t);                  \
    template void draw_between(uint64_t*, T*, int64_t, double, double); \
    template void draw_spread(uint64_t*, T*, int64_t, double, double);  \
    template void draw_coins(uint64_t*, const T*, T*, int64_t);         \
    template void draw_coins(uint64_t*, T, T*, int64_t);
FW_DRAWS(float)
FW_DRAWS(double)

}  // namespace random
}  // namespace fw
