// Integers of a range, and permutations, by words that are found by their places.
#include <algorithm>
#include <utility>

#include "base/pool.h"
#include "base/scratch.h"
#include "random/sequence.h"
#include "random/variates.h"

namespace fw::random {
namespace {

constexpr int64_t GRAIN = 2048;  // blocks

// D. Lemire, "Fast random integer generation in an interval", 2019: the upper half of a word (half a word where the range has
// no more bits) times range, but for the few words that would give some numbers once more than others. For those an element has
// further blocks of its own.
struct Range {
    const PhiloxKey& key;
    int64_t low;
    uint64_t range, surplus;
    uint32_t short_surplus;
    Range(const PhiloxKey& key, int64_t low, uint64_t range)
        : key(key), low(low), range(range), surplus(range ? (0 - range) % range : 0),
          short_surplus(narrow() ? uint32_t((0x100000000u - range) % range) : 0) {}
    bool narrow() const { return range && range <= 0xffffffffu; }

    int64_t number(uint64_t above) const { return int64_t(uint64_t(low) + above); }
    int64_t again(int64_t i) const {
        Sequence others(key, i, 1);
        for (;;) {
            others.next();
            uint64_t high, rest = multiply(others.word(0), range, high);
            if (rest >= surplus) return number(high);
        }
    }
};

// Calls put(first element, words, elements) for batches of blocks, each of which has the words of PER elements.
constexpr int64_t BATCH = 16;  // blocks, so that the loops over their words are vectors
template <int64_t PER, class F> void in_batches(const PhiloxKey& key, int64_t n, F&& put) {
    const int64_t blocks = (n + PER - 1) / PER;
    parallel(blocks, GRAIN, [&](int64_t begin, int64_t end) {
        uint64_t words[BATCH * BLOCK] = {};
        for (int64_t b = begin; b < end; b += BATCH) {
            const int64_t count = std::min(BATCH, end - b);
            for (int64_t i = 0; i < count; ++i) philox(PhiloxCounter{{uint64_t(b + i), 0, 0, 0}}, key, words + i * BLOCK);
            put(PER * b, words, std::min(PER * count, n - PER * b));
        }
    });
}

}  // namespace

void keyed_integers(uint64_t key, int64_t* out, int64_t n, int64_t low, uint64_t range) {
    const PhiloxKey keys(key, VARIATES);
    const Range r(keys, low, range);
    if (r.narrow()) {
        return in_batches<2 * BLOCK>(keys, n, [&](int64_t first, const uint64_t* words, int64_t count) {
            int64_t made[2 * BATCH * BLOCK];
            const uint64_t size = r.range, start = uint64_t(low), surplus = r.short_surplus;
            uint64_t wrong = 0;
            for (int64_t k = 0; k < BATCH * BLOCK; ++k) {
                const uint64_t lower = uint32_t(words[k]) * size, upper = (words[k] >> 32) * size;
                made[2 * k] = int64_t(start + (lower >> 32)), made[2 * k + 1] = int64_t(start + (upper >> 32));
                wrong |= (uint64_t(uint32_t(lower)) - surplus) | (uint64_t(uint32_t(upper)) - surplus);
            }
            std::copy_n(made, count, out + first);
            if (wrong >> 63)
                for (int64_t k = 0; k < count; ++k)
                    if (uint32_t(uint32_t(words[k / 2] >> 32 * (k % 2)) * size) < surplus) out[first + k] = r.again(first + k);
        });
    }
    in_batches<BLOCK>(keys, n, [&](int64_t first, const uint64_t* words, int64_t count) {
        for (int64_t k = 0; k < count; ++k) {
            uint64_t high = words[k], rest = range ? multiply(words[k], range, high) : 0;
            out[first + k] = rest >= r.surplus ? r.number(high) : r.again(first + k);
        }
    });
}

namespace {

// Words are sorted by their upper bits, with the places in the lower ones; where two have the upper bits in common, the whole
// words are made again.
struct Order {
    const PhiloxKey& keys;
    uint64_t places;

    __attribute__((noinline)) bool whole_before(uint64_t a, uint64_t b) const {
        const uint64_t x = whole(a & places), y = whole(b & places);
        return x != y ? x < y : a < b;
    }
    uint64_t whole(uint64_t i) const {
        uint64_t words[BLOCK];
        philox(PhiloxCounter{{i / BLOCK, 0, 0, 0}}, keys, words);
        return words[i % BLOCK];
    }
    FW_INLINE bool operator()(uint64_t a, uint64_t b) const { return (a ^ b) > places ? a < b : whole_before(a, b); }
};

void insert(uint64_t* first, uint64_t* last, const Order& before) {
    for (uint64_t* at = first; at < last; ++at) {
        const uint64_t a = *at;
        uint64_t* to = at;
        for (; to > first && before(a, to[-1]); --to) *to = to[-1];
        *to = a;
    }
}

}  // namespace

void keyed_permutation(uint64_t key, int64_t* out, int64_t n) {
    constexpr int MOST = 20;  // bits of parts, which have one number each or so if there are no more
    const PhiloxKey keys(key, VARIATES);
    int place_bits = 1;
    while ((int64_t(1) << place_bits) < n) ++place_bits;
    const Order before{keys, (uint64_t(1) << place_bits) - 1};
    const int shift = 64 - std::min(place_bits, MOST);
    const int64_t parts = int64_t(1) << (64 - shift);
    uint64_t *drawn = scratch<uint64_t>(0, n), *sorted = reinterpret_cast<uint64_t*>(out);
    uint32_t* ends = scratch<uint32_t>(0, parts);
    in_batches<BLOCK>(keys, n, [&](int64_t first, const uint64_t* words, int64_t count) {
        for (int64_t k = 0; k < count; ++k) drawn[first + k] = (words[k] & ~before.places) | uint64_t(first + k);
    });
    std::fill_n(ends, parts, 0u);
    for (int64_t i = 0; i < n; ++i) ++ends[drawn[i] >> shift];
    uint32_t begin = 0;
    for (int64_t p = 0; p < parts; ++p) begin += std::exchange(ends[p], begin);
    for (int64_t i = 0; i < n; ++i) sorted[ends[drawn[i] >> shift]++] = drawn[i];  // from a part's begin to its end
    parallel(parts, 4096, [&](int64_t from, int64_t to) {
        uint64_t *first = sorted + (from ? ends[from - 1] : 0), *last = sorted + ends[to - 1];
        if (place_bits <= MOST) insert(first, last, before);
        else for (int64_t p = from; p < to; ++p) std::sort(sorted + (p ? ends[p - 1] : 0), sorted + ends[p], before);
        for (; first < last; ++first) *first &= before.places;
    });
}

}  // namespace fw::random
