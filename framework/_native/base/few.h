// A few values, as sizes of images or operands of a kernel are: without an allocation where there are no more than N.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <vector>

namespace fw {

template <class T, size_t N> class Few {
  public:
    using value_type = T;
    Few() = default;
    explicit Few(size_t count) { grown(count); }  // each as `T values[count]` would have it
    Few(size_t count, const T& value) { std::fill_n(grown(count), count, value); }
    template <class It, class = typename std::iterator_traits<It>::iterator_category> Few(It first, It last) {
        const auto count = size_t(last - first);
        std::copy(first, last, grown(count));
    }
    Few(std::initializer_list<T> values) : Few(values.begin(), values.end()) {}
    Few(const std::vector<T>& values) : Few(values.begin(), values.end()) {}
    Few(const Few& other) : Few(other.begin(), other.end()) {}
    Few(Few&& other) noexcept : n(other.n), room(other.room), far(std::move(other.far)) {
        std::copy(other.near, other.near + N, near);
        other.n = 0, other.room = N;
    }
    Few& operator=(Few other) noexcept {
        n = other.n, room = other.room, far = std::move(other.far);
        std::copy(other.near, other.near + N, near);
        return *this;
    }

    size_t size() const { return n; }
    bool empty() const { return n == 0; }
    T* data() { return far ? far.get() : near; }
    const T* data() const { return far ? far.get() : near; }
    T* begin() { return data(); }
    T* end() { return data() + n; }
    const T* begin() const { return data(); }
    const T* end() const { return data() + n; }
    T& operator[](size_t i) { return data()[i]; }
    const T& operator[](size_t i) const { return data()[i]; }
    const T& back() const { return data()[n - 1]; }
    void push_back(T value) { *grown(1) = value; }
    void pop_back() { --n; }
    template <class It> void append(It first, It last) { std::copy(first, last, grown(size_t(last - first))); }
    bool operator==(const Few& other) const { return n == other.n && std::equal(begin(), end(), other.begin()); }
    bool operator!=(const Few& other) const { return !(*this == other); }

  private:
    // What was behind the end: so many more, which are counted from here on.
    T* grown(size_t count) {
        if (n + count > room) {
            const size_t wanted = std::max(n + count, 2 * room);
            std::unique_ptr<T[]> more(new T[wanted]);
            std::copy(begin(), end(), more.get());
            far = std::move(more), room = wanted;
        }
        n += count;
        return data() + n - count;
    }

    size_t n = 0, room = N;
    std::unique_ptr<T[]> far;
    T near[N];
};

using Sizes = Few<int64_t, 8>;

}  // namespace fw
