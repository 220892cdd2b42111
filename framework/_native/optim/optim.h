// What the optimizers of optim.cpp are made of: the parameters of a step, its numbers, common formulas.
#pragma once

#include <algorithm>

#include "bind/array.h"
#include "base/pool.h"
#include "base/simd.h"

namespace fw::optim {

constexpr int MOST_STATES = 3;
constexpr int64_t GRAIN = 16384;  // elements

struct Parameter {
    int64_t size = 0;
    bool wide = false;                 // float64, else float32
    char* arrays[2 + MOST_STATES] = {};  // parameter, gradient, states
};

// The parameters of one call. `skipped` are the numbers of those that the plain form must take: not arrays
// of float32 or float64, or not laid out alike. Where memory that one update writes is used by another, the
// order of the updates matters, and all are skipped.
struct Work {
    std::vector<Parameter> all;
    std::vector<int64_t> ends;  // elements up to the end of each
    std::vector<int64_t> skipped;
    int64_t bytes = 0;
    nb::object keep;  // the arrays, whatever happens to the list meanwhile
};

// Throws unless `arrays` are `count` arrays of each parameter, one parameter after the other: what is updated, its gradient, its
// states. Only the gradient is not written.
Work gather(nb::list arrays, int count);

// The arrays of one parameter of which some rows are changed.
struct RowsWork {
    Parameter one;
    int64_t width = 0;          // numbers of a row
    std::vector<int64_t> rows;  // copies, each a row that there is, in ascending order
    nb::object keep;
};

// False where the kernels cannot take it: other dtypes, layouts or shapes, rows that are not ascending, memory that two
// of the arrays share.
bool gather_rows(nb::list arrays, int count, Array rows, RowsWork& work);

// Raised where NumPy would not take a number as Python's, which takes the dtype of the array it meets.
struct NotPythons {};

// The numbers of a step by name. A method asks for the same ones in the same order for either dtype: the first
// reading looks them up, the second repeats it.
class Numbers {
    PyObject* given_;  // a dict; null at the second reading
    std::vector<double>& read_;
    size_t next_ = 0;

  public:
    Numbers(PyObject* given, std::vector<double>& read) : given_(given), read_(read) {}
    double wide(const char* name);
    bool flag(const char* name) { return wide(name) != 0; }
    template <class T> T number(const char* name) { return T(wide(name)); }
};

// The elements [i, i + n) of the arrays of one parameter, n <= lanes.
template <class T> class Place {
    char* const* arrays_;
    int64_t i_, n_;

  public:
    FW_INLINE Place(char* const* arrays, int64_t i, int64_t n) : arrays_(arrays), i_(i), n_(n) {}
    FW_INLINE Vec<T> get(int k) const {
        const T* from = reinterpret_cast<const T*>(arrays_[k]) + i_;
        return n_ == lanes<T> ? load(from) : load_part(from, n_);
    }
    FW_INLINE void put(int k, Vec<T> v) const {
        T* to = reinterpret_cast<T*>(arrays_[k]) + i_;
        if (n_ == lanes<T>) store(to, v);
        else store_part(to, v, n_);
    }
    FW_INLINE Vec<T> parameter() const { return get(0); }
    FW_INLINE void parameter(Vec<T> v) const { put(0, v); }
    FW_INLINE Vec<T> gradient() const { return get(1); }
    FW_INLINE Vec<T> state(int k) const { return get(2 + k); }
    FW_INLINE void state(int k, Vec<T> v) const { put(2 + k, v); }
};

// The gradient as the method sees it: its sign turned where the objective is maximized, plus decay * p.
template <class T> struct Gradient {
    bool maximize, decays;
    T decay;
    explicit Gradient(Numbers& n) : maximize(n.flag("maximize")) {
        double given = n.wide("weight_decay");
        decays = given != 0;
        decay = T(given);
    }
    FW_INLINE Vec<T> operator()(Vec<T> g, Vec<T> p) const {
        if (maximize) g = -g;
        return decays ? g + splat(decay) * p : g;
    }
};

// sqrt(v / correction) + eps, or with `inside` sqrt(v / correction + eps)
template <class T> struct Denominator {
    T eps, correction, root;
    bool inside, corrected;
    explicit Denominator(Numbers& n)
        : eps(n.number<T>("eps")), correction(n.number<T>("correction")), root(n.number<T>("root_correction")),
          inside(n.flag("eps_inside")), corrected(n.flag("corrected")) {}
    FW_INLINE Vec<T> operator()(Vec<T> v) const {
        if (inside) return sqrt(v / splat(correction) + splat(eps));
        Vec<T> d = sqrt(v);
        if (corrected) d = d / splat(root);
        return d + splat(eps);
    }
};

template <class T, class Method> void update(Method method, char* const* arrays, int64_t begin, int64_t end) {
    int64_t i = begin;
    for (; i + lanes<T> <= end; i += lanes<T>) method.at(Place<T>(arrays, i, lanes<T>));
    if (i < end) method.at(Place<T>(arrays, i, end - i));
}

// Calls body(parameter, begin, end) for pieces of all parameters, several small ones or parts of a large one
// per thread.
template <class F> void over(const Work& work, F&& body) {
    if (work.all.empty()) return;
    Release release(work.bytes, Writes::memory);
    parallel(work.ends.back(), GRAIN, [&](int64_t begin, int64_t end) {
        size_t k = size_t(std::upper_bound(work.ends.begin(), work.ends.end(), begin) - work.ends.begin());
        for (; begin < end; ++k) {
            const Parameter& one = work.all[k];
            int64_t start = work.ends[k] - one.size, stop = std::min(end, work.ends[k]);
            body(one, begin - start, stop - start);
            begin = stop;
        }
    });
}

// A method for parameters of either dtype. The numbers are float64 first: the float32 ones are rounded from them.
template <template <class> class Method> class Both {
    std::vector<double> read_;
    Numbers first_, again_;
    Method<double> wide_;
    Method<float> narrow_;

  public:
    explicit Both(nb::dict given)
        : first_(given.ptr(), read_), again_(nullptr, read_), wide_(first_), narrow_(again_) {
        if (size_t(PyDict_Size(given.ptr())) != read_.size())
            throw nb::value_error("numbers were given that the step does not ask for");
    }
    const Method<double>& method() const { return wide_; }

    void run(const Work& work) const {
        over(work, [this](const Parameter& one, int64_t begin, int64_t end) {
            if (one.wide) update<double>(wide_, one.arrays, begin, end);
            else update<float>(narrow_, one.arrays, begin, end);
        });
    }

    bool run_rows(nb::list arrays, Array rows) const {
        const int count = 2 + wide_.states();
        RowsWork work;
        if (!gather_rows(arrays, count, rows, work)) return false;
        const int64_t bytes = work.width * (work.one.wide ? 8 : 4), n = int64_t(work.rows.size());
        Release release(bytes * n * count, Writes::memory);
        parallel(n, 1 + GRAIN / (work.width + 1), [&](int64_t begin, int64_t end) {
            constexpr int64_t AHEAD = 8, LINE = 64;  // rows lie anywhere in memory: several are on their way at a time
            for (int64_t i = begin; i < end; ++i) {
                char* at[2 + MOST_STATES];
                for (int k = 0; k < count; ++k) {
                    at[k] = work.one.arrays[k] + (k == 1 ? i : work.rows[size_t(i)]) * bytes;
                    if (k == 1 || i + AHEAD >= end) continue;
                    const char* next = work.one.arrays[k] + work.rows[size_t(i + AHEAD)] * bytes;
                    for (int64_t b = 0; b < std::min<int64_t>(bytes, 16 * LINE); b += LINE) __builtin_prefetch(next + b, 1);
                }
                if (work.one.wide) update<double>(wide_, at, 0, work.width);
                else update<float>(narrow_, at, 0, work.width);
            }
        });
        return true;
    }
};

}  // namespace fw::optim
