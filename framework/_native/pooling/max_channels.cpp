// The largest elements of windows of images whose channels lie side by side: a vector holds channels, not windows, so
// that nothing is copied into another order. What leaves the image is passed over.
#include <algorithm>
#include <vector>

#include "pooling/channels.h"
#include "pooling/largest.h"

namespace fw::windows {
namespace {

// An element of a window: its number there, and its pixel in the image.
struct Position {
    int64_t number, pixel;
};

// The elements of window (i, j, l) that are in the image, in order.
void positions_of(const PoolShape& s, int64_t i, int64_t j, int64_t l, std::vector<Position>& to) {
    const PoolAxis &x = s.axis[0], &y = s.axis[1], &z = s.axis[2];
    to.clear();
    int64_t number = 0;
    for (int64_t a = 0; a < x.kernel; ++a)
        for (int64_t b = 0; b < y.kernel; ++b)
            for (int64_t c = 0; c < z.kernel; ++c, ++number) {
                const int64_t in_x = x.start(i) + a * x.dilation, in_y = y.start(j) + b * y.dilation,
                              in_z = z.start(l) + c * z.dilation;
                if (uint64_t(in_x) < uint64_t(x.in) && uint64_t(in_y) < uint64_t(y.in) && uint64_t(in_z) < uint64_t(z.in))
                    to.push_back({number, (in_x * y.in + in_y) * z.in + in_z});
            }
}

bool is_inside(const PoolAxis& a, int64_t window) {
    return a.start(window) >= 0 && a.start(window) + a.dilation * (a.kernel - 1) < a.in;
}

// f(window's number in the image, a pixel, the window's positions from there) for every window of lines [begin, end) of an
// image's. Windows that are whole lie all alike.
template <class F> void each_window(const PoolShape& s, int64_t begin, int64_t end, F&& f) {
    const PoolAxis &x = s.axis[0], &y = s.axis[1], &z = s.axis[2];
    std::vector<Position> at, whole;
    for (int64_t line = begin; line < end; ++line) {
        const int64_t i = line / y.out, j = line % y.out;
        const bool inside = is_inside(x, i) && is_inside(y, j);
        for (int64_t l = 0; l < z.out; ++l) {
            if (inside && is_inside(z, l)) {
                const int64_t first = (x.start(i) * y.in + y.start(j)) * z.in + z.start(l);
                if (whole.empty()) {
                    positions_of(s, i, j, l, whole);
                    for (Position& p : whole) p.pixel -= first;
                }
                f(line * z.out + l, first, whole);
            } else {
                positions_of(s, i, j, l, at);
                f(line * z.out + l, 0, at);
            }
        }
    }
}

template <class T> FW_INLINE Mask<T> places_at(const uint8_t* p, int64_t n) {
    typedef uint8_t Places __attribute__((vector_size(lanes<T>)));
    Places places{};
    if (n == lanes<T>) std::memcpy(&places, p, sizeof places);
    else std::memcpy(&places, p, size_t(n));
    return __builtin_convertvector(places, Mask<T>);
}

// The first n numbers at y whose places are this one, 0 for the others.
template <class T> FW_INLINE Vec<T> chosen(const T* y, const uint8_t* where, int64_t n, uint8_t number) {
#if defined(FW_AVX512)
    const __mmask16 first = __mmask16(_bzhi_u32(0xffff, unsigned(n)));
    const __mmask16 mine = _mm_mask_cmpeq_epi8_mask(first, _mm_maskz_loadu_epi8(first, where), _mm_set1_epi8(char(number)));
    if constexpr (sizeof(T) == 4) return (Vec<T>)_mm512_maskz_loadu_ps(mine, y);
    else return (Vec<T>)_mm512_maskz_loadu_pd(__mmask8(mine), y);
#else
    return select<T>(places_at<T>(where, n) == Int<T>(number), some(y, n), Vec<T>{});
#endif
}

// `many` vectors of channels beside each other, whole ones or the first n of one: what is found waits for what was before.
template <class T, bool Values, bool Places, int many>
FW_INLINE void max_vectors(const std::vector<Position>& at, int64_t first, const T* image, int64_t channels, int64_t n, T* largest,
                           uint8_t* where) {
    Best<T, Places> best[many];
#pragma GCC unroll 4
    for (int k = 0; k < many; ++k) best[k] = {splat(lowest<T>), Mask<T>{} + Int<T>(first)};
    for (const Position& p : at) {
        const T* from = image + p.pixel * channels;
#pragma GCC unroll 4
        for (int k = 0; k < many; ++k) best[k].look(some(from + k * lanes<T>, n), Int<T>(p.number));
    }
#pragma GCC unroll 4
    for (int k = 0; k < many; ++k) {
        if (Values) keep(largest + k * lanes<T>, best[k].value, n);
        if (Places) store_places<T>(where + k * lanes<T>, best[k].place, n);
    }
}

template <class T, bool Values, bool Places>
void max_pixel(const std::vector<Position>& at, int64_t first, const T* image, int64_t channels, T* largest, uint8_t* where) {
    constexpr int64_t L = lanes<T>;
    int64_t c = 0;
    for (; c + 4 * L <= channels; c += 4 * L)
        max_vectors<T, Values, Places, 4>(at, first, image + c, channels, L, largest + c, where + c);
    for (; c < channels; c += L)
        max_vectors<T, Values, Places, 1>(at, first, image + c, channels, std::min(L, channels - c), largest + c, where + c);
}

}  // namespace

template <class T> void max_channels(const PoolShape& s, int64_t channels, const T* x, T* largest, uint8_t* where) {
    const int64_t images = s.planes / channels, lines = s.axis[0].out * s.axis[1].out, width = s.axis[2].out;
    const int64_t grain = 1 + (1 << 14) / (1 + s.in_size() / lines * channels);
    parallel(images * lines, grain, [&](int64_t begin, int64_t end) {
        while (begin < end) {
            const int64_t image = begin / lines, stop = std::min(end, (image + 1) * lines);
            const T* from = x + image * s.in_size() * channels;
            const int64_t to = image * lines * width * channels;
            each_window(s, begin - image * lines, stop - image * lines,
                        [&](int64_t out, int64_t pixel, const std::vector<Position>& at) {
                            const int64_t p = to + out * channels, line = out / width;
                            const int64_t first = s.first(line / s.axis[1].out, line % s.axis[1].out, out % width);
                            const T* start = from + pixel * channels;
                            if (largest && where) max_pixel<T, true, true>(at, first, start, channels, largest + p, where + p);
                            else if (largest) max_pixel<T, true, false>(at, first, start, channels, largest + p, nullptr);
                            else max_pixel<T, false, true>(at, first, start, channels, nullptr, where + p);
                        });
            begin = stop;
        }
    });
}

// Every window gives what it has, number by number: for large windows, of which each pixel would look through many.
template <class T> void scatter_channels(const PoolShape& s, int64_t channels, const T* y, const uint8_t* where, T* x) {
    each_share(s, channels, [&](int64_t image, int64_t first, int64_t count) {
        T* to = x + image * s.in_size() * channels + first;
        const int64_t from = image * s.out_size() * channels + first;
        for (int64_t p = 0; p < s.in_size(); ++p) std::fill_n(to + p * channels, count, T(0));
        int64_t places[256];  // of each number of an element, or -1: numbers may be any
        bool whole = false;   // whether they are those of a whole window
        each_window(s, 0, s.axis[0].out * s.axis[1].out, [&](int64_t out, int64_t pixel, const std::vector<Position>& at) {
            if (!whole || int64_t(at.size()) < s.window()) {
                std::fill_n(places, 256, -1);
                for (const Position& p : at) places[p.number] = p.pixel * channels;
                whole = int64_t(at.size()) == s.window();
            }
            T* start = to + pixel * channels;
            const T* given = y + from + out * channels;
            const uint8_t* number = where + from + out * channels;
            for (int64_t c = 0; c < count; ++c)
                if (const int64_t place = places[number[c]]; place >= 0) start[place + c] += given[c];
        });
    });
}

constexpr int64_t LARGE_WINDOW = 16;  // where windows are fewer than half the pixels

// Every pixel takes from the windows that reach it what they have for it.
template <class T> void spread_channels(const PoolShape& s, int64_t channels, const T* y, const uint8_t* where, T* x) {
    if (are_apart(s))
        return each_pixel_apart(s, channels, [=](int64_t image, int64_t pixel, int64_t window, int64_t element) {
            T* to = x + (image * s.in_size() + pixel) * channels;
            if (window < 0) return void(std::fill_n(to, channels, T(0)));
            const int64_t from = (image * s.out_size() + window) * channels;
            for (int64_t c = 0; c < channels; c += lanes<T>) {
                const int64_t n = std::min<int64_t>(lanes<T>, channels - c);
                keep(to + c, chosen(y + from + c, where + from + c, n, uint8_t(element)), n);
            }
        });
    if (s.window() >= LARGE_WINDOW && 2 * s.out_size() <= s.in_size()) return scatter_channels(s, channels, y, where, x);
    struct Read {
        int64_t at;
        uint8_t number;
    };
    const Reached xs(s.axis[0]), ys(s.axis[1]), zs(s.axis[2]);
    const PoolAxis &v = s.axis[1], &w = s.axis[2];
    each_pixel(s, channels, channels, [&](int64_t image, int64_t pixel, int64_t i, int64_t j, int64_t l) {
        const int64_t from = image * s.out_size();
        T* to = x + (image * s.in_size() + pixel) * channels;
        Read reads[256];  // at most as many as a window has elements
        Read* end = reads;
        for (const Reach& p : xs.at(i))
            for (const Reach& q : ys.at(j))
                for (const Reach& r : zs.at(l))
                    *end++ = {(from + (p.window * v.out + q.window) * w.out + r.window) * channels,
                              uint8_t((p.element * v.kernel + q.element) * w.kernel + r.element)};
        for (int64_t c = 0; c < channels; c += lanes<T>) {
            const int64_t n = std::min<int64_t>(lanes<T>, channels - c);
            Vec<T> sum{};
            for (const Read* r = reads; r != end; ++r) sum += chosen(y + r->at + c, where + r->at + c, n, r->number);
            keep(to + c, sum, n);
        }
    });
}

template <class T> void collect_channels(const PoolShape& s, int64_t channels, const T* x, const uint8_t* where, T* y) {
    each_share(s, channels, [&](int64_t image, int64_t first, int64_t count) {
        const T* from = x + image * s.in_size() * channels + first;
        const int64_t to = image * s.out_size() * channels + first;
        each_window(s, 0, s.axis[0].out * s.axis[1].out, [&](int64_t out, int64_t pixel, const std::vector<Position>& at) {
            const int64_t here = to + out * channels;
            const T* start = from + pixel * channels;
            for (int64_t c = 0; c < count; c += lanes<T>) {
                const int64_t n = std::min<int64_t>(lanes<T>, count - c);
                const Mask<T> place = places_at<T>(where + here + c, n);
                Vec<T> found{};
                for (const Position& p : at)
                    found = select<T>(place == Int<T>(p.number), some(start + p.pixel * channels + c, n), found);
                keep(y + here + c, found, n);
            }
        });
    });
}

template void max_channels(const PoolShape&, int64_t, const float*, float*, uint8_t*);
template void max_channels(const PoolShape&, int64_t, const double*, double*, uint8_t*);
template void spread_channels(const PoolShape&, int64_t, const float*, const uint8_t*, float*);
template void spread_channels(const PoolShape&, int64_t, const double*, const uint8_t*, double*);
template void collect_channels(const PoolShape&, int64_t, const float*, const uint8_t*, float*);
template void collect_channels(const PoolShape&, int64_t, const double*, const uint8_t*, double*);

}  // namespace fw::windows
