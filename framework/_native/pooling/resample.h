// Sums of few elements along one dimension, by a list for each element of the result: interpolation of images and
// padding by reflection, and their gradients, which are the lists turned around. See framework/ops/image/resample.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fw::sampling {

// Result i is the sum of weight[k] * x[index[k]] for k from starts[i] to starts[i + 1]; without weights of x[index[k]].
template <class T> struct Lists {
    std::vector<int64_t> starts, index;
    std::vector<T> weight;
    int64_t each = -1;  // how long all lists are, if they are alike
    int64_t copied = 0, count = 0;  // of results that are one element each the most neighbours that are so, too

    int64_t out() const { return int64_t(starts.size()) - 1; }

    // After starts, index and weight were given: false where they are no lists of elements of `size` ones.
    bool settle(int64_t size) {
        if (starts.empty() || starts[0] != 0 || starts.back() != int64_t(index.size()) || weight.size() != index.size())
            return false;
        each = out() ? starts[1] - starts[0] : 0;
        for (int64_t k = 0; k < out(); ++k) {
            const int64_t n = starts[std::size_t(k) + 1] - starts[std::size_t(k)];
            if (n < 0) return false;
            if (n != each) each = -1;
        }
        for (int64_t at : index)
            if (at < 0 || at >= size) return false;
        if (each == 1) find_copied();
        return true;
    }

  private:
    void find_copied() {
        for (int64_t i = 0, run = 0; i < out(); ++i) {
            const std::size_t k = std::size_t(i);
            run = weight[k] != T(1) ? 0 : run > 0 && index[k] == index[k - 1] + 1 ? run + 1 : 1;
            if (run > count) count = run, copied = i + 1 - run;
        }
    }
};

// x: outer x size x inner, y: outer x lists.out() x inner. Runs on the pool; called without Python's lock.
template <class T> void resample(const Lists<T>& lists, const T* x, T* y, int64_t outer, int64_t size, int64_t inner);

}  // namespace fw::sampling
