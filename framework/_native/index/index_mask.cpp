// Elements, or whole rows, where a mask holds: x[mask], and writing there.
#include <algorithm>

#include "index/index.h"

namespace fw::moving {
namespace {

constexpr int64_t CHUNK = 4096;  // mask elements that one thread counts, or moves, at once

// A mask over the leading dimensions of an array, and how many elements it chose before each chunk.
struct Chosen {
    const uint8_t* mask = nullptr;
    int64_t n = 0, inner = 1, chunks = 0;
    std::vector<int64_t> before;
    bool good = false;

    Chosen(const Array& mask_array, int ndim, const npy_intp* shape) {
        if (!mask_array.is<bool>() || !mask_array.contiguous() || mask_array.ndim() > ndim || !mask_array.size() ||
            !std::equal(shape, shape + mask_array.ndim(), mask_array.shape()))
            return;
        n = mask_array.size(), inner = product(shape, mask_array.ndim(), ndim);
        if (!inner) return;
        mask = mask_array.data<uint8_t>();
        good = true;
    }
    void count() {
        chunks = (n + CHUNK - 1) / CHUNK;
        before.assign(size_t(chunks) + 1, 0);
        parallel(chunks, 4, [&](int64_t begin, int64_t end) {
            for (int64_t c = begin; c < end; ++c) {
                int64_t stop = std::min(n, (c + 1) * CHUNK);
                uint32_t held = 0;
                for (int64_t i = c * CHUNK; i < stop; ++i) held += mask[i] != 0;
                before[size_t(c) + 1] = held;
            }
        });
        for (int64_t c = 0; c < chunks; ++c) before[size_t(c) + 1] += before[size_t(c)];
    }
    int64_t total() const { return before.back(); }
    // f(first mask element, the one behind, chosen before the first, chosen before the one behind), in parallel
    template <class F> void each_chunk(int bytes, F&& f) const {
        int64_t grain = std::max<int64_t>(1, grain_of(CHUNK * inner * bytes));
        parallel(chunks, grain, [&](int64_t begin, int64_t end) {
            for (int64_t c = begin; c < end; ++c)
                f(c * CHUNK, std::min(n, (c + 1) * CHUNK), before[size_t(c)], before[size_t(c) + 1]);
        });
    }
};

#if defined(FW_AVX512)
FW_INLINE __mmask16 held16(const uint8_t* mask) {
    __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(mask));
    return _mm_test_epi8_mask(bytes, bytes);
}
FW_INLINE __mmask16 first16(int n) { return __mmask16(_bzhi_u32(0xffff, unsigned(n))); }
#endif

// to[k], to[k + 1] ... < to[stop] = from[i] where mask[i]
template <class T>
void pick(const uint8_t* mask, const T* from, T* to, int64_t i, int64_t end, int64_t k, int64_t stop) {
#if defined(FW_AVX512)
    if constexpr (sizeof(T) == 4) {
        for (; i + 16 <= end; i += 16) {
            __mmask16 m = held16(mask + i);
            int held = __builtin_popcount(m);
            if (k + held > stop) break;  // somebody changed the mask
            __m512i v = _mm512_maskz_compress_epi32(m, _mm512_loadu_si512(from + i));
            _mm512_mask_storeu_epi32(to + k, first16(held), v);
            k += held;
        }
    }
#endif
    for (; i < end && k < stop; ++i) {
        to[k] = from[i];
        k += mask[i] != 0;
    }
}

// to[i] = from[k], from[k + 1] ... where mask[i], else other[i] (0 without one)
template <class T>
void place(const uint8_t* mask, const T* from, const T* other, T* to, int64_t i, int64_t end, int64_t k,
           int64_t stop) {
#if defined(FW_AVX512)
    if constexpr (sizeof(T) == 4) {
        for (; i + 16 <= end; i += 16) {
            __mmask16 m = held16(mask + i);
            int held = __builtin_popcount(m);
            if (k + held > stop) break;
            __m512i old = other ? _mm512_loadu_si512(other + i) : _mm512_setzero_si512();
            __m512i v = _mm512_maskz_loadu_epi32(first16(held), from + k);
            _mm512_storeu_si512(to + i, _mm512_mask_expand_epi32(old, m, v));
            k += held;
        }
    }
#endif
    for (; i < end && k < stop; ++i) {
        T value = from[k], old = other ? other[i] : T{};
        to[i] = mask[i] ? value : old;
        k += mask[i] != 0;
    }
    for (; i < end; ++i) to[i] = other ? other[i] : T{};
}

nb::object masked_select(Array x, Array mask, int64_t count) {
    int bytes = item_bytes(x);
    if (!bytes || !mask.usable()) return not_implemented();
    Chosen chosen(mask, x.ndim(), x.shape());
    if (!chosen.good) return not_implemented();
    chosen.count();
    if (chosen.total() != count) return not_implemented();
    InRows rows(x);
    npy_intp shape[NPY_MAXDIMS] = {npy_intp(count)};
    int rest = x.ndim() - mask.ndim();
    std::copy(x.shape() + mask.ndim(), x.shape() + x.ndim(), shape + 1);
    NewArray out = new_array(1 + rest, shape, x.type());
    nb::object result = give(out);
    Release release(x.size() * bytes);
    const char* from = rows.a.data<char>();
    char* to = out.data<char>();
    int64_t row = chosen.inner * bytes;
    chosen.each_chunk(bytes, [&](int64_t i, int64_t end, int64_t k, int64_t stop) {
        if (chosen.inner > 1) {
            for (; i < end && k < stop; ++i)
                if (chosen.mask[i]) memcpy(to + row * k++, from + row * i, size_t(row));
            return;
        }
        by_bytes(bytes, [&](auto t) {
            using T = decltype(t);
            pick(chosen.mask, reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to), i, end, k, stop);
        });
    });
    return result;
}

// (shape of the mask and the rest) = the rows of x where the mask holds, else those of `other`, or 0
nb::object placed(const Array& x, const Array& mask, int ndim, const npy_intp* shape, const Array* other) {
    int bytes = item_bytes(x);
    if (!bytes || !mask.usable() || mask.ndim() > ndim || x.ndim() != 1 + ndim - mask.ndim() ||
        !std::equal(shape + mask.ndim(), shape + ndim, x.shape() + 1))
        return not_implemented();
    Chosen chosen(mask, ndim, shape);
    if (!chosen.good) return not_implemented();
    chosen.count();
    if (chosen.total() != x.shape(0)) return not_implemented();
    InRows rows(x), old(other ? *other : x);
    NewArray out = new_array(ndim, shape, x.type());
    nb::object result = give(out);
    Release release(out.size() * bytes);
    const char *from = rows.a.data<char>(), *kept = other ? old.a.data<char>() : nullptr;
    char* to = out.data<char>();
    int64_t row = chosen.inner * bytes;
    chosen.each_chunk(bytes, [&](int64_t i, int64_t end, int64_t k, int64_t stop) {
        if (chosen.inner > 1) {
            for (; i < end; ++i) {
                if (chosen.mask[i] && k < stop)
                    memcpy(to + row * i, from + row * k++, size_t(row));
                else if (kept)
                    memcpy(to + row * i, kept + row * i, size_t(row));
                else
                    memset(to + row * i, 0, size_t(row));
            }
            return;
        }
        by_bytes(bytes, [&](auto t) {
            using T = decltype(t);
            place(chosen.mask, reinterpret_cast<const T*>(from), reinterpret_cast<const T*>(kept),
                  reinterpret_cast<T*>(to), i, end, k, stop);
        });
    });
    return result;
}

nb::object unmask(Array x, Array mask, nb::handle shape) {
    Ints sizes(shape);
    if (!x.usable() || !sizes.is_shape()) return not_implemented();
    npy_intp whole[NPY_MAXDIMS];
    std::copy(sizes.at, sizes.at + sizes.n, whole);
    return placed(x, mask, sizes.n, whole, nullptr);
}

// x with one number where the mask holds
nb::object filled(const Array& x, const Pair& bits, const Array& mask) {
    int bytes = item_bytes(x);
    Chosen chosen(mask, x.ndim(), x.shape());
    if (!chosen.good) return not_implemented();
    InRows rows(x);
    NewArray out = like(x);
    nb::object result = give(out);
    Release release(x.size() * bytes);
    by_bytes(bytes, [&](auto number) {
        using T = decltype(number);
        memcpy(&number, &bits, sizeof number);
        const T* from = rows.a.template data<T>();
        T* to = out.data<T>();
        parallel(chosen.n, grain_of(chosen.inner * bytes), [&](int64_t begin, int64_t end) {
            if (chosen.inner == 1) {
                for (int64_t i = begin; i < end; ++i) {
                    T old = from[i];
                    to[i] = chosen.mask[i] ? number : old;
                }
                return;
            }
            for (int64_t i = begin; i < end; ++i) {
                T* row = to + i * chosen.inner;
                if (chosen.mask[i])
                    std::fill_n(row, chosen.inner, number);
                else
                    memcpy(static_cast<void*>(row), from + i * chosen.inner, size_t(chosen.inner * bytes));
            }
        });
    });
    return result;
}

nb::object mask_put(Array x, nb::handle value, Array mask, int64_t) {
    if (!item_bytes(x) || !mask.usable()) return not_implemented();
    PyObject* o = value.ptr();
    Pair bits{};
    if (!PyArray_CheckExact(o)) return element(value, x, bits) ? filled(x, bits, mask) : not_implemented();
    Array a;
    a.p = reinterpret_cast<PyArrayObject*>(o);
    if (!PyArray_ISBEHAVED_RO(a.p) || a.type() != x.type() || !a.ndim()) return not_implemented();
    return placed(a, mask, x.ndim(), x.shape(), &x);
}

}  // namespace

FW_BIND(m) {
    m.def("masked_select", &masked_select, nb::arg("x"), nb::arg("mask"), nb::arg("count"));
    m.def("unmask", &unmask, nb::arg("x"), nb::arg("mask"), nb::arg("shape"));
    m.def("mask_put", &mask_put, nb::arg("x"), nb::arg("value").none(), nb::arg("mask"), nb::arg("count"));
}

}  // namespace fw::moving
