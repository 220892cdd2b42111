// A few whole numbers, as sizes of images and their windows are: without an allocation where there are no more than eight.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <vector>

namespace fw {

class Sizes {
  public:
    using value_type = int64_t;
    Sizes() = default;
    Sizes(size_t count, int64_t value) { std::fill_n(grown(count), count, value); }
    template <class It, class = typename std::iterator_traits<It>::iterator_category> Sizes(It first, It last) {
        const auto count = size_t(last - first);
        std::copy(first, last, grown(count));
    }
    Sizes(std::initializer_list<int64_t> values) : Sizes(values.begin(), values.end()) {}
    Sizes(const std::vector<int64_t>& values) : Sizes(values.begin(), values.end()) {}
    Sizes(const Sizes& other) : Sizes(other.begin(), other.end()) {}
    Sizes(Sizes&& other) noexcept : n(other.n), room(other.room), far(std::move(other.far)) {
        std::copy(other.near, other.near + NEAR, near);
        other.n = 0, other.room = NEAR;
    }
    Sizes& operator=(Sizes other) noexcept {
        n = other.n, room = other.room, far = std::move(other.far);
        std::copy(other.near, other.near + NEAR, near);
        return *this;
    }

    size_t size() const { return n; }
    bool empty() const { return n == 0; }
    int64_t* data() { return far ? far.get() : near; }
    const int64_t* data() const { return far ? far.get() : near; }
    int64_t* begin() { return data(); }
    int64_t* end() { return data() + n; }
    const int64_t* begin() const { return data(); }
    const int64_t* end() const { return data() + n; }
    int64_t& operator[](size_t i) { return data()[i]; }
    int64_t operator[](size_t i) const { return data()[i]; }
    int64_t back() const { return data()[n - 1]; }
    void push_back(int64_t value) { *grown(1) = value; }
    template <class It> void append(It first, It last) { std::copy(first, last, grown(size_t(last - first))); }
    bool operator==(const Sizes& other) const { return n == other.n && std::equal(begin(), end(), other.begin()); }
    bool operator!=(const Sizes& other) const { return !(*this == other); }

  private:
    static constexpr size_t NEAR = 8;
    // What was behind the end: so many more, which are counted from here on.
    int64_t* grown(size_t count) {
        if (n + count > room) {
            const size_t wanted = std::max(n + count, 2 * room);
            std::unique_ptr<int64_t[]> more(new int64_t[wanted]);
            std::copy(begin(), end(), more.get());
            far = std::move(more), room = wanted;
        }
        n += count;
        return data() + n - count;
    }

    size_t n = 0, room = NEAR;
    std::unique_ptr<int64_t[]> far;
    int64_t near[NEAR];
};

}  // namespace fw
