// Images as windows with their channels side by side read them: with zeros around, some lines at a time, or in place.
#pragma once

#include "conv/conv_shape.h"

namespace fw::windows {

// Place (i, j) of the framed image is pixel (i - before_high, j - before_wide), or 0 where there is none.
struct Frame {
    int64_t high, wide, channels;
    int64_t before_high = 0, before_wide = 0;
    int64_t extent_high = 1, extent_wide = 1;  // places that windows read
    bool planes = false;                       // each channel is a plane of its own in memory

    bool copied() const { return planes || before_high > 0 || before_wide > 0 || extent_high > high || extent_wide > wide; }
    int64_t image() const { return high * wide * channels; }
    int64_t pitch() const { return (copied() ? extent_wide : wide) * channels; }  // numbers from line to line

    // Lines [first, first + count) of the framed image.
    void copy(float* to, const float* from, int64_t first, int64_t count) const {
        const int64_t all = pitch(), left = std::min(before_wide, extent_wide) * channels;
        const int64_t inside = std::clamp<int64_t>(extent_wide - before_wide, 0, wide) * channels;
        for (int64_t line = first - before_high; line < first - before_high + count; ++line, to += all) {
            if (line < 0 || line >= high) {
                std::fill_n(to, all, 0.0f);
                continue;
            }
            std::fill_n(to, left, 0.0f);
            if (planes) turn(to + left, from + line * wide, inside / channels);
            else std::copy_n(from + line * wide * channels, inside, to + left);
            std::fill(to + left + inside, to + all, 0.0f);
        }
    }

  private:
    // Channel by channel the first `count` pixels of a line.
    void turn(float* to, const float* from, int64_t count) const {
        constexpr int64_t n = lanes<float>;
        const int64_t plane = high * wide;
        for (int64_t c = 0; c < channels; c += n) {
            const int64_t some = std::min(n, channels - c);
            for (int64_t p = 0; p < count; p += n) {
                const int64_t now = std::min(n, count - p);
                Vec<float> v[lanes<float>];
#pragma GCC unroll 16
                for (int i = 0; i < n; ++i) v[i] = i < some ? load_first(from + (c + i) * plane + p, now) : Vec<float>{};
                transpose<float>(v);
                float* target = to + p * channels + c;
                for (int64_t i = 0; i < now; ++i, target += channels) store_first(target, v[i], some);
            }
        }
    }
};

// Taps of a window as stretches of numbers that follow each other: `offset` of each, `run` numbers long.
struct Taps {
    struct Tap {
        int64_t line, column, number;  // where in the frame, from a window's corner, and which of the kernel's
    };
    std::vector<Tap> all;  // in the order of the frame
    std::vector<int64_t> offset;
    int64_t run = 0, low = 0, high = 0;  // numbers of a stretch; lines of the frame that a line of windows reads

    // Neighbours of a line join, unless only a part of their channels is meant.
    void settle(const Frame& f, int64_t channels) {
        std::sort(all.begin(), all.end(), [](const Tap& a, const Tap& b) {
            return a.line != b.line ? a.line < b.line : a.column < b.column;
        });
        size_t wide = 0;
        while (wide < all.size() && all[wide].line == all[0].line) ++wide;
        bool joins = channels == f.channels && all.size() % wide == 0;
        for (size_t i = 0; joins && i < all.size(); ++i) {
            const Tap &first = all[i / wide * wide], &tap = all[i];
            joins = tap.line == first.line && tap.column == first.column + int64_t(i % wide);
        }
        if (!joins) wide = 1;
        run = int64_t(wide) * channels;
        for (size_t i = 0; i < all.size(); i += wide) offset.push_back(all[i].line * f.pitch() + all[i].column * f.channels);
        low = all.front().line, high = all.back().line + 1;
    }
};

// The frame of a convolution's input, and the taps of its windows.
inline Frame input_frame(const ConvShape& s) {
    const ConvAxis &h = s.axis[1], &v = s.axis[2];
    return {h.in, v.in, s.channels, h.padding, v.padding, (h.out - 1) * h.stride + (h.kernel - 1) * h.dilation + 1,
            (v.out - 1) * v.stride + (v.kernel - 1) * v.dilation + 1};
}
inline Taps window_taps(const ConvShape& s, const Frame& f) {
    const ConvAxis &h = s.axis[1], &v = s.axis[2];
    Taps taps;
    for (int64_t i = 0; i < h.kernel; ++i)
        for (int64_t j = 0; j < v.kernel; ++j) taps.all.push_back({i * h.dilation, j * v.dilation, i * v.kernel + j});
    taps.settle(f, s.group_channels());
    return taps;
}

}  // namespace fw::windows
