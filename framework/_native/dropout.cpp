// Dropout without a stored mask: which elements are kept is a pure function of a key, made anew in backward.
// The same function as `coins` in framework/philox.py.
#include <algorithm>

#include "array.h"
#include "philox.h"
#include "pool.h"

namespace fw {
namespace {

constexpr uint64_t COINS = 0x636f696e73;  // the second word of the key
constexpr int64_t PER = 4 * BLOCK;        // elements of a block: 16 bits each
constexpr int64_t BATCH = 16;             // blocks that are made together
constexpr int64_t MOST = BATCH * PER;
constexpr int64_t GRAIN = 64;  // batches

// Element i is dropped where its 16 bits are below p * 2**16. Where they are its integral part, a number of
// its own is below the rest with the remaining probability, so the probability is p exactly.
struct Coins {
    PhiloxKey key;
    uint32_t whole;
    double rest;
    Coins(uint64_t key, double p) : key(key, COINS), whole(uint32_t(p * 65536)), rest(p * 65536 - whole) {}

    void batch(int64_t number, uint16_t* bits) const {
        PhiloxCounter at{{uint64_t(number * BATCH), 0, 0, 0}};
        uint64_t words[BATCH * BLOCK];
        philox_blocks(at, key, BATCH, words);
        std::memcpy(bits, words, sizeof words);
    }
    bool ties(const uint16_t* bits) const {
        bool any = false;
        for (int64_t k = 0; k < MOST; ++k) any |= bits[k] == whole;
        return any && rest > 0;
    }
    bool kept_at_tie(int64_t i) const {
        PhiloxCounter at{{uint64_t(i), 1, 0, 0}};
        uint64_t words[BLOCK];
        philox_blocks(at, key, 1, words);
        return uniform_double(words[0]) >= rest;
    }
};

template <class T> void drop(const T* x, T* out, int64_t n, const Coins& coins, T scale) {
    parallel((n + MOST - 1) / MOST, GRAIN, [&](int64_t begin, int64_t end) {
        alignas(64) uint16_t drawn[MOST];
        for (int64_t number = begin; number < end; ++number) {
            coins.batch(number, drawn);
            int64_t first = number * MOST, count = std::min(MOST, n - first);
            const T* from = x + first;
            T* to = out + first;
            const Int<T> whole = coins.whole;
            const Int<T> kept = bits<Int<T>>(scale);
            for (int64_t k = 0; k < count; ++k) to[k] = from[k] * bits<T>(-Int<T>(drawn[k] >= whole) & kept);
            if (!coins.ties(drawn)) continue;
            for (int64_t k = 0; k < count; ++k)
                if (drawn[k] == whole && !coins.kept_at_tie(first + k)) to[k] = from[k] * T(0);
        }
    });
}

nb::object dropout(Array x, double p, uint64_t key) {
    if (!x.is_float() || !(p >= 0 && p <= 1)) return not_implemented();
    nb::object rows = nb::steal(reinterpret_cast<PyObject*>(PyArray_GETCONTIGUOUS(x.p)));
    if (!rows.is_valid()) throw nb::python_error();
    Array from{reinterpret_cast<PyArrayObject*>(rows.ptr())};
    Array out = new_array(from.ndim(), from.shape(), from.type());
    Coins coins(key, p);
    double scale = p < 1 ? 1 / (1 - p) : 1;
    {
        Release release(from.size() * 4);
        if (from.is<float>()) drop(from.data<float>(), out.data<float>(), from.size(), coins, float(scale));
        else drop(from.data<double>(), out.data<double>(), from.size(), coins, scale);
    }
    return give(out);
}

}  // namespace

FW_BIND(m) { m.def("dropout", &dropout, nb::arg("x"), nb::kw_only(), nb::arg("p"), nb::arg("key")); }

}  // namespace fw
