// Work on images chunk by chunk, so that what is copied of them stays in the caches.
#pragma once

#include "conv/conv_planes.h"
#include "base/scratch.h"

namespace fw::windows {

constexpr int64_t chunk_bytes = 2 << 20;  // of copied images at once

// Calls body(planes, first image, count) for all images, chunk by chunk. Where there are images enough, each
// thread copies and multiplies its own, in its own cache; else all threads share the work on each chunk.
template <class T, class Body>
void each_chunk(const Planes& planes, const T* from, int64_t n, T* copy, Body&& body) {
    const int64_t chunks = (n + planes.images - 1) / planes.images;
    parallel(copy ? 1 : chunks, 1, [&](int64_t begin, int64_t end) {
        if (copy) end = chunks;
        T* to = copy ? copy : scratch<T>(0, planes.size);
        for (int64_t i = begin * planes.images; i < std::min(n, end * planes.images); i += planes.images) {
            const int64_t count = std::min(planes.images, n - i);
            const T* chunk =
                from + i * planes.channels * planes.axis[0].in * planes.axis[1].in * planes.axis[2].in;
            if (planes.copied) planes.copy(to, chunk, count);
            body(planes.copied ? to : chunk, i, count);
        }
    });
}

// Whether each thread has its own chunks. They are small then, and several for each thread.
template <class T> bool own_chunks(Planes& planes, int64_t n, int64_t channels) {
    constexpr int64_t own_bytes = 384 << 10, most_bytes = 1 << 20;
    const int64_t each = n / (4 * threads());
    planes.settle<T>(n, channels, own_bytes);
    if (!planes.copied || each < 1 || planes.size * int64_t(sizeof(T)) > most_bytes) {
        planes.settle<T>(n, channels, chunk_bytes);
        return false;
    }
    if (planes.images > each) planes.settle<T>(each, channels, own_bytes);
    return true;
}

}  // namespace fw::windows
