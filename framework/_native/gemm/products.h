// matmul and linear of views: what they make of shapes and strides, in two steps, so that whoever calls makes the result.
// No Python, no exceptions but bad_alloc.
#pragma once

#include <atomic>
#include <vector>

#include "gemm/gemm.h"
#include "base/view.h"

namespace fw {

// Whether operands of float32 may be rounded to bfloat16 where the matrix unit multiplies those.
extern std::atomic<bool> rounded_products;

class Product {
  public:
    static constexpr int MOST_DIMS = 64;

    // False for operands that do not fit each other, or that the kernels do not take.
    bool matmul(const View& x, const View& y);
    bool linear(const View& x, const View& w, const View* bias, bool relu);  // x w^T + bias

    int ndim = 0;                 // of the result
    int64_t shape[MOST_DIMS + 2];
    Type type = Type::other;
    int64_t size() const;
    double multiplications() const { return double(m) * double(n) * double(k) * double(batch.size()); }
    void run(void* out) const;    // row by row without gaps

    // The right operand in the order in which it is read, where it is one matrix for all of the batch that many products
    // share: how many bytes that takes (0: it is read as it lies), writing it, and where it is from then on.
    int64_t packed_bytes() const;
    std::vector<int64_t> packed_form() const { return {int64_t(type), n, k, b_row, b_col}; }  // what it depends on
    void pack(void* to) const;
    const void* packed = nullptr;

    // Numbers in the order of the result: where they are not above 0 (nor nan) the result is 0. For a product without bias,
    // not of bfloat16.
    const void* gate = nullptr;

  private:
    int64_t m = 0, n = 0, k = 0;  // of each of the batch
    const void *a, *b;
    int64_t a_row, a_col, b_row, b_col;
    const View* bias = nullptr;
    bool relu = false;
    Batch batch;

    bool set(const View& x, const View& y, bool turned, bool drop_row, bool drop_col);
    template <class T> Gemm<T> gemm_of(T* out) const;
    template <class T> void run_as(T* out) const;
};

}  // namespace fw
