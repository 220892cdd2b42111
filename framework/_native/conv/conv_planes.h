// Images as convolutions read them: each channel a stretch of memory in which every window is a constant
// set of offsets away from its first element, and neighbouring windows are neighbours.
//
// Without padding and steps that is the array itself. Else a copy with zeros around each image: the zeros
// behind a line are those before the next one, and with steps s the places that are equal modulo s lie
// together (a phase), so that windows s places apart are neighbours.
#pragma once

#include <algorithm>
#include <vector>

#include "conv/conv_kernel.h"
#include "base/pool.h"

namespace fw::windows {

constexpr int conv_dims = 3;  // spatial; images of fewer dimensions have leading sizes of 1

inline int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
inline int64_t ceil_div(int64_t a, int64_t b) { return -floor_div(-a, b); }

// One dimension. Place m of phase f is place step * m + f - before of the image.
struct PlaneAxis {
    int64_t in = 1, before = 0, step = 1;
    int64_t extent = 1;  // places of a phase that windows read
    int64_t pitch = 1;   // places from one line to the next
    std::vector<int64_t> phases = {0};

    std::vector<int64_t> low = {}, high = {};  // of each phase: the places of the image among them

    int64_t phase(int64_t f) const { return std::find(phases.begin(), phases.end(), f) - phases.begin(); }

    void settle() {
        std::sort(phases.begin(), phases.end());
        phases.erase(std::unique(phases.begin(), phases.end()), phases.end());
        pitch = 1;
        low.clear();
        high.clear();
        for (int64_t f : phases) {
            low.push_back(std::clamp<int64_t>(ceil_div(before - f, step), 0, extent));
            high.push_back(std::clamp<int64_t>(floor_div(in - 1 + before - f, step) + 1, low.back(), extent));
            pitch = std::max({pitch, high.back(), extent - low.back()});
        }
    }
    bool as_it_is() const { return before == 0 && step == 1 && extent <= in; }
};

struct Planes {
    PlaneAxis axis[conv_dims];
    int64_t images = 0, channels = 0;
    int64_t place[conv_dims];       // memory step of a place of each dimension
    int64_t image = 0, phase = 0, channel = 0, size = 0;
    bool copied = false;

    // For `n` images of `c` channels; `most` bounds how many of them a copy holds.
    template <class T> void settle(int64_t n, int64_t c, int64_t most_bytes) {
        channels = c;
        copied = !(axis[0].as_it_is() && axis[1].as_it_is() && axis[2].as_it_is());
        if (!copied) return settle_in_place(n);
        int64_t count = 1, beyond = 1;
        for (int d = conv_dims - 1; d >= 0; --d) {
            axis[d].settle();
            place[d] = d == conv_dims - 1 ? 1 : place[d + 1] * axis[d + 1].pitch;
            beyond += (axis[d].extent - 1) * place[d];
            count *= int64_t(axis[d].phases.size());
        }
        image = place[0] * axis[0].pitch;
        images = std::clamp<int64_t>(most_bytes / int64_t(sizeof(T)) / (image * count * c), 1, n);
        constexpr int64_t slack = FW_BYTES / int64_t(sizeof(T));  // whole vectors are read
        phase = (images - 1) * image + std::max(image, beyond) + slack;
        phase = (phase + slack - 1) / slack * slack;
        // phases 1 kB apart would share places in the caches
        if (phase * int64_t(sizeof(T)) % 1024 == 0) phase += slack;
        channel = phase * count;
        size = channel * c;
    }

    void settle_in_place(int64_t n) {
        for (int d = conv_dims - 1; d >= 0; --d)
            place[d] = d == conv_dims - 1 ? 1 : place[d + 1] * axis[d + 1].in;
        phase = channel = place[0] * axis[0].in;
        image = channel * channels;
        images = n;
    }

    // Where a window that reads `at` (in places before the division into phases) finds it.
    int64_t offset(const int64_t (&at)[conv_dims]) const {
        int64_t index = 0, sum = 0;
        for (int d = 0; d < conv_dims; ++d) {
            index = index * int64_t(axis[d].phases.size()) + axis[d].phase(at[d] % axis[d].step);
            sum += at[d] / axis[d].step * place[d];
        }
        return index * phase + sum;
    }

    // Copies `count` images (of all channels, row-major) to `to`.
    template <class T> void copy(T* to, const T* from, int64_t count) const {
        const int64_t from_channel = axis[0].in * axis[1].in * axis[2].in;
        const int64_t blocks = channel / phase;
        parallel(channels * blocks, 1 + (1 << 13) / phase, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const int64_t c = i / blocks, b = i % blocks;
                T* block = to + i * phase;
                for (int64_t n = 0; n < count; ++n)
                    copy_phase(block + n * image, from + (n * channels + c) * from_channel, size_t(b));
                std::fill(block + count * image, block + phase, T(0));
            }
        });
    }

  private:
    template <class T> void copy_phase(T* to, const T* from, size_t block) const {
        const PlaneAxis &x = axis[0], &y = axis[1], &z = axis[2];
        const size_t iz = block % z.phases.size(), iy = block / z.phases.size() % y.phases.size();
        const size_t ix = block / z.phases.size() / y.phases.size();
        const int64_t low = z.low[iz], first = z.step * low + z.phases[iz] - z.before;
        const int64_t y_low = y.low[iy], y_high = y.high[iy], y_first = y.step * y_low + y.phases[iy] - y.before;
        for (int64_t i = 0; i < x.pitch; ++i) {
            T* const end = to + y.pitch * z.pitch;
            if (i >= x.low[ix] && i < x.high[ix]) {
                const int64_t in_x = x.step * i + x.phases[ix] - x.before;
                std::fill(to, to + y_low * z.pitch, T(0));
                to = copy_lines(to + y_low * z.pitch, z.pitch, low, from + (in_x * y.in + y_first) * z.in + first,
                                y.step * z.in, z.high[iz] - low, z.step, y_high - y_low);
            }
            std::fill(to, end, T(0));
            to = end;
        }
    }

    // Lines of n numbers, `step` apart, with zeros around them, `low` of which come before; returns where they end. (All as
    // numbers of its own: what is written could be a member.)
    template <class T>
    static T* copy_lines(T* to, int64_t pitch, int64_t low, const T* from, int64_t from_line, int64_t n, int64_t step,
                         int64_t lines) {
        const bool narrow = pitch >= lanes<T> && low <= lanes<T> && pitch - low - n <= lanes<T>;
        for (; lines > 0; --lines, to += pitch, from += from_line) {
            if (narrow) {  // in whole vectors, over which the line goes
                store(to, Vec<T>{});
                store(to + pitch - lanes<T>, Vec<T>{});
            } else {
                for (int64_t k = 0; k < low; ++k) to[k] = T(0);
                for (int64_t k = low + n; k < pitch; ++k) to[k] = T(0);
            }
            copy_line(to + low, from, n, step);
        }
        return to;
    }

    template <class T> static void copy_line(T* to, const T* from, int64_t n, int64_t step) {
        constexpr int64_t wide = lanes<T>;
        int64_t i = 0;
        if (step == 1) {
            for (; i + wide <= n; i += wide) store(to + i, load(from + i));
            if (i < n && n > wide) store(to + n - wide, load(from + n - wide));
            else if (i < n) store_first(to + i, load_first(from + i, n - i), n - i);
            return;
        }
        if (step != 2) {
            for (; i < n; ++i) to[i] = from[i * step];
            return;
        }
        for (; i + wide <= n; i += wide) store(to + i, every_second<T>(from + 2 * i));
        if (i < n) store_first(to + i, every_second_of<T>(from + 2 * i, n - i), n - i);
    }
};

}  // namespace fw::windows
