// Images in other sizes: weighted sums along one dimension, reading at given places, windows that fill the image.
#include "pooling/grid_sample.h"
#include "pooling/resample.h"

#include <algorithm>
#include <cmath>

#include "base/pool.h"
#include "runtime/operations.h"

namespace fw::runtime {
namespace {

constexpr int64_t MOST_TERMS = 1 << 24;

// What an element of the result is made of, by the formulas of framework/ops/image/resample.py, in their order.
class Taps {
  public:
    Taps(const std::string& kind, int64_t size, int64_t out, int64_t offset, double step)
        : size(size), out(out), offset(offset), step(step), kind(kind) {}

    // False for a kind that there is not, or too many terms.
    template <class T> bool give(sampling::Lists<T>& lists) {
        lists.starts.push_back(0);
        for (int64_t i = 0; i < out; ++i) {
            at.clear();
            if (!element(i)) return false;
            for (const auto& [place, weight] : at) {
                if (weight == 0) continue;
                lists.index.push_back(place), lists.weight.push_back(T(weight));
            }
            if (int64_t(lists.index.size()) > MOST_TERMS) return false;
            lists.starts.push_back(int64_t(lists.index.size()));
        }
        return lists.settle(size);
    }

  private:
    const int64_t size, out, offset;
    const double step;
    const std::string& kind;
    std::vector<std::pair<int64_t, double>> at;

    void add(double place, double weight) {  // a place that is no number, or far away, is found out by `settle`
        at.push_back({place >= -1 && place <= double(size) ? int64_t(place) : -1, weight});
    }

    bool element(int64_t i) {
        const double n = double(size), x = double(i);
        if (kind == "nearest") {
            const bool whole = step == n / double(std::max<int64_t>(out, 1));
            add(std::min(whole ? double(i * size / std::max<int64_t>(out, 1)) : std::floor(x * step), n - 1), 1);
        } else if (kind == "nearest-exact") {
            add(std::min(std::floor((x + 0.5) * step), n - 1), 1);
        } else if (kind == "linear" || kind == "linear-corners") {
            const double place = kind == "linear" ? std::max((x + 0.5) * step - 0.5, 0.0) : x * step;
            const double low = std::min(std::floor(place), n - 1), share = place - low;
            add(low, 1 - share), add(std::min(low + 1, n - 1), share);
        } else if (kind == "cubic" || kind == "cubic-corners") {
            cubic(kind == "cubic" ? (x + 0.5) * step - 0.5 : x * step);
        } else if (kind == "area") {
            const int64_t low = i * size / out, high = ((i + 1) * size + out - 1) / out;
            if (high - low > MOST_TERMS) return false;
            for (int64_t k = low; k < high; ++k) add(double(k), 1 / double(high - low));
        } else if (kind == "linear-smooth" || kind == "cubic-smooth") {
            return smooth(x, kind == "linear-smooth" ? 1 : 2);
        } else {
            const int64_t from = i - offset;
            if (kind == "reflect") add(double((size - 1) - std::abs((size - 1) - std::abs(from))), 1);
            else if (kind == "replicate") add(double(std::clamp<int64_t>(from, 0, size - 1)), 1);
            else if (kind == "circular") add(double((from % size + size) % size), 1);
            else return false;
        }
        return true;
    }

    void cubic(double place) {
        const double a = -0.75, low = std::floor(place), t = place - low;
        auto near = [=](double s) { return ((a + 2) * s - (a + 3)) * s * s + 1; };
        auto far = [=](double s) { return ((a * s - 5 * a) * s + 8 * a) * s - 4 * a; };
        const double weights[] = {far(t + 1), near(t), near(1 - t), far(2 - t)};
        for (int k = 0; k < 4; ++k) add(std::min(std::max(low + k - 1, 0.0), double(size) - 1), weights[k]);
    }

    // A filter as wide as the element where the image shrinks.
    bool smooth(double x, int reach) {
        const double wide = std::max(step, 1.0), centre = (x + 0.5) * step;
        if (!(std::abs(centre) < 1e15 && wide < 1e15)) return false;
        const int64_t low = std::max<int64_t>(int64_t(centre - reach * wide + 0.5), 0);
        const int64_t high = std::min<int64_t>(int64_t(centre + reach * wide + 0.5), size);
        if (high - low > MOST_TERMS) return false;
        double sum = 0;
        for (int64_t k = low; k < high; ++k) {
            const double t = std::abs(double(k) - centre + 0.5) / wide;
            const double w = reach == 1 ? std::max(1 - t, 0.0)
                             : t < 1    ? (1.5 * t - 2.5) * t * t + 1
                                        : (t < 2 ? ((-0.5 * t + 2.5) * t - 4) * t + 2 : 0.0);
            add(double(k), w);
            sum += w;
        }
        for (auto& one : at) one.second /= sum;
        return true;
    }
};

template <class T> Run resampled(const Tensor& x, const Tensor& y, int64_t dim, std::shared_ptr<sampling::Lists<T>> lists) {
    int64_t outer = 1, inner = 1;
    for (int d = 0; d < x.ndim; ++d) (d < dim ? outer : inner) *= d == dim ? 1 : x.shape[d];
    return [=, &x, &y, size = x.shape[dim]] { sampling::resample(*lists, x.at<T>(), y.at<T>(), outer, size, inner); };
}

}  // namespace

// numbers: the dimension, its size afterwards (-1: its size times reals[1]), how many elements padding puts in front, and what
// the step is: reals[0] (0), sizes divided by each other (1), or those less one (2). words: the kind
void resample(Call& c) {
    c.expect(1, 4, 2, 1);
    const Tensor& x = c.rows(0);
    const int64_t dim = c.number(0), offset = c.number(2), how = c.number(3);
    int64_t out = c.number(1);
    c.must(c.step.words.size() == 1 && dim >= 0 && dim < x.ndim && (x.type == Type::float32 || x.type == Type::float64),
           "another type or dimension");
    const int64_t size = x.shape[dim];
    if (out == -1) {
        const double wanted = std::floor(double(size) * c.step.reals[1]);
        out = wanted >= 1 && wanted <= double(MOST_TERMS) ? int64_t(wanted) : 0;
    }
    c.must(out > 0 && out <= MOST_TERMS && size <= MOST_TERMS && offset >= 0 && offset <= MOST_TERMS, "too many elements");
    const double step = how == 1 ? double(size) / double(out) : how != 2 ? c.step.reals[0]
                        : out > 1 ? double(size - 1) / double(out - 1) : 0;
    int64_t shape[MOST_AXES];
    std::copy(x.shape, x.shape + x.ndim, shape);
    shape[dim] = out;
    const Tensor& y = c.make(0, x.type, x.ndim, shape);
    Taps taps(c.step.words[0], size, out, offset, step);
    auto ready = [&](auto number) {
        using T = decltype(number);
        auto lists = std::make_shared<sampling::Lists<T>>();
        c.must(taps.give(*lists), "elements that are made of none, or of too many");
        c.then([=, &x, &y]() -> Run { return resampled<T>(x, y, dim, lists); });
    };
    if (x.type == Type::float32) ready(float{});
    else ready(double{});
}

// operands: images, places. numbers: whether corners are centres. words: mode, padding
void grid_sample(Call& c) {
    c.expect(2, 1, 0, 1);
    const Tensor &x = c.rows(0), &grid = c.rows(1);
    sampling::Shape s;
    c.must(c.step.words.size() == 2 && (x.type == Type::float32 || x.type == Type::float64) && grid.type == x.type &&
               grid.ndim == x.ndim && s.read(x.ndim, x.shape, grid.shape, c.step.words[0], c.step.words[1], c.number(0) != 0),
           "images and places that do not fit");
    int64_t shape[MOST_AXES] = {x.shape[0], x.shape[1]};
    std::copy(grid.shape + 1, grid.shape + grid.ndim - 1, shape + 2);
    const Tensor& y = c.make(0, x.type, x.ndim, shape);
    c.then([=, &x, &grid, &y]() -> Run {
        if (x.type == Type::float32)
            return [=, &x, &grid, &y] { sampling::Sampling<float>::read(s, x.at<float>(), grid.at<float>(), y.at<float>()); };
        return [=, &x, &grid, &y] { sampling::Sampling<double>::read(s, x.at<double>(), grid.at<double>(), y.at<double>()); };
    });
}

namespace {

// Window i of n runs from floor(i * size / n) to ceil((i + 1) * size / n).
template <class T> void largest_of(const Tensor& x, const Tensor& y, int dims) {
    int64_t size[3] = {1, 1, 1}, out[3] = {1, 1, 1};
    for (int d = 0; d < dims; ++d)
        size[3 - dims + d] = x.shape[x.ndim - dims + d], out[3 - dims + d] = y.shape[y.ndim - dims + d];
    const int64_t plane = size[0] * size[1] * size[2], each = out[0] * out[1] * out[2];
    parallel(y.size() / each, 1 + (1 << 14) / (plane + each), [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p)
            for (int64_t o = 0; o < each; ++o) {
                int64_t low[3], high[3];
                int64_t rest = 1;
                for (int d = 2; d >= 0; --d) {
                    const int64_t i = o / rest % out[d];
                    low[d] = i * size[d] / out[d], high[d] = ((i + 1) * size[d] + out[d] - 1) / out[d];
                    rest *= out[d];
                }
                const T* from = x.at<T>() + p * plane;
                T best = from[(low[0] * size[1] + low[1]) * size[2] + low[2]];
                for (int64_t a = low[0]; a < high[0]; ++a)
                    for (int64_t b = low[1]; b < high[1]; ++b)
                        for (int64_t e = low[2]; e < high[2] && best == best; ++e) {
                            const T v = from[(a * size[1] + b) * size[2] + e];
                            if (!(v <= best)) best = v;
                        }
                y.at<T>()[p * each + o] = best;
            }
    });
}

}  // namespace

// numbers: how many windows there are in each of the last dimensions
void adaptive_max(Call& c) {
    const size_t dims = c.step.numbers.size();
    c.expect(1, dims, 0, 1);
    const Tensor& x = c.rows(0);
    c.must(dims > 0 && dims <= 3 && int(dims) <= x.ndim && (x.type == Type::float32 || x.type == Type::float64),
           "another type, or too many dimensions");
    int64_t shape[MOST_AXES];
    std::copy(x.shape, x.shape + x.ndim, shape);
    for (size_t d = 0; d < dims; ++d) {
        int64_t& size = shape[x.ndim - int(dims - d)];
        c.must(size < (1 << 30) && c.number(d) < (1 << 20), "too many windows");
        size = c.number(d);
    }
    const Tensor& y = c.make(0, x.type, x.ndim, shape);
    c.then([=, &x, &y]() -> Run {
        if (x.type == Type::float32) return [=, &x, &y] { largest_of<float>(x, y, int(dims)); };
        return [=, &x, &y] { largest_of<double>(x, y, int(dims)); };
    });
}

}  // namespace fw::runtime
