// NumPy arrays of recurrent sequences.
#pragma once

#include "bind/array.h"
#include "rnn/sequences.h"

namespace fw {
namespace rnn {

// The arrays that all kinds of sequences have, as rows; `fits` says whether a kernel can take them.
struct Operands {
    Steps steps;
    InRows x, h0, w_ih, w_hh;
    Given b_ih, b_hh;
    int64_t in, width, gates;
    bool rounded = false;  // products, to bfloat16

    static bool takes(const Array& x, std::initializer_list<const Array*> all) {
        if (!x.is_float()) return false;
        for (const Array* a : all)
            if (!a->usable() || a->type() != x.type() || a->ndim() != 2 || a->size() == 0) return false;
        return true;
    }

    static std::vector<int64_t> sizes_of(const nb::tuple& given) {
        std::vector<int64_t> sizes;
        for (nb::handle h : given) {
            sizes.push_back(nb::cast<int64_t>(h));
            if (sizes.back() < 1 || sizes.back() > INT32_MAX) throw nb::value_error("sizes: every step has some rows");
        }
        return sizes;
    }

    Operands(const Array& x, const Array& h0, const Array& w_ih, const Array& w_hh, nb::handle b_ih, nb::handle b_hh,
             const nb::tuple& sizes, bool reverse, int64_t gates)
        : steps(sizes_of(sizes), reverse), x(x), h0(h0), w_ih(w_ih), w_hh(w_hh), b_ih(b_ih), b_hh(b_hh), in(x.shape(1)),
          width(h0.shape(1)), gates(gates) {}

    // packed: what `Sequence::pack` wrote of these weights
    template <class T> Sequence<T> sequence(const T* packed = nullptr) const {
        Sequence<T> s{steps, x.data<T>(), h0.data<T>(), w_ih.data<T>(), w_hh.data<T>(), b_ih.data<T>(), b_hh.data<T>(), in, width,
                      packed};
        s.rounded = rounded;
        return s;
    }

    // Whether products may be rounded as is asked for.
    bool may_round(bool wanted) {
        rounded = wanted;
        return !wanted || (x.a.is<float>() && amx::available());
    }

    int64_t bytes() const { return steps.rows * gates * width * width; }  // as long as so many take

    bool fits() const {
        auto is = [](const Array& a, int64_t rows, int64_t cols) { return a.shape(0) == rows && a.shape(1) == cols; };
        int64_t low = steps.count() ? *std::min_element(steps.size.begin(), steps.size.end()) : 0;
        return low > 0 && is(x.a, steps.rows, in) && is(h0.a, steps.most, width) && is(w_ih.a, gates * width, in) &&
               is(w_hh.a, gates * width, width) && b_ih.fits(x.a, gates * width) && b_hh.fits(x.a, gates * width);
    }
};

inline NewArray matrix(int64_t rows, int64_t cols, int type) {
    npy_intp shape[] = {rows, cols};
    return new_array(2, shape, type);
}

}  // namespace rnn
}  // namespace fw
