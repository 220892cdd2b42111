// How operands lie in memory beside the result: broadcast, transposed, strided.
//
// The elements of a result are numbered in the order in which they lie. An operand that lies the same way is
// `flat`; one of a single element is `constant`; others are gathered, run by run.
#pragma once

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/few.h"
#include "base/strided.h"

namespace fw {

constexpr int MOST_DIMS = 32;
constexpr int64_t LEAST_BLOCK = 128;  // elements that are computed together
constexpr int64_t SHORT_LINE = 16;  // elements of a line up to which lines are copied together

// Dimensions in order; those of which neither comes before the other keep theirs.
template <class Before> void sort_axes(int* axes, int n, Before before) {
    for (int i = 1; i < n; ++i) {
        const int axis = axes[i];
        int at = i;
        for (; at > 0 && before(axis, axes[at - 1]); --at) axes[at] = axes[at - 1];
        axes[at] = axis;
    }
}

struct Operand {
    const char* data = nullptr;
    const void* array = nullptr;     // nullptr for a number
    bool flat = false, constant = false;
    int64_t strides[MOST_DIMS];      // over the layout's merged dimensions, set where neither

    static Operand single(const char* number) {
        Operand o;
        o.data = number;
        o.constant = true;
        return o;
    }
};

using OperandList = Few<Operand, 4>;

// The elements of an operand of which blocks are taken: those that come again with each block are found once.
template <class T> struct Gathered {
    bool repeats = false;
    const T* values = nullptr;
    int64_t count = 0;  // from the beginning of a block

    // n elements, from the beginning of a block if `first`; find() finds them.
    template <class F> const T* of(bool first, int64_t n, F&& find) {
        if (repeats && first && n <= count) return values;
        values = find(), count = first ? n : 0;
        return values;
    }
};

struct Layout {
    int ndim = 0, merged = 0;
    int64_t shape[MOST_DIMS];
    int64_t size = 1, sizes[MOST_DIMS];  // of the merged dimensions, the last one moves fastest

    // Whether the product of the sizes is a number, as it must be where no array is made of them.
    bool countable() const {
        int64_t n = 1;
        for (int d = 0; d < ndim; ++d)
            if (shape[d] && __builtin_mul_overflow(n, int64_t(shape[d]), &n)) return false;
        return n <= INT64_MAX / 64;
    }

    // Elements in a row of the innermost dimension, of those merged.
    int64_t line() const { return merged ? sizes[merged - 1] : size; }

    // After how many elements an operand that is broadcast along the first dimensions comes again; 0 of others.
    int64_t period(const Operand& o) const {
        if (o.flat || o.constant || merged < 2 || o.strides[0]) return 0;
        int64_t n = 1;
        for (int d = merged - 1; d > 0; --d) n *= sizes[d];
        for (int d = 1; d < merged - 1 && !o.strides[d]; ++d) n /= sizes[d];
        return n;
    }

    // Whether it comes again with each block of so many elements.
    bool repeats(const Operand& o, int64_t block) const {
        const int64_t n = period(o);
        return n && block % n == 0;
    }

    // How many elements of these operands to take at a time, of `most`: what is broadcast comes again with each block, or no
    // line is copied, as blocks end where lines do.
    int64_t block(const OperandList& operands, int64_t most) const {
        int64_t again = 0;
        bool flat = true;
        for (const Operand& o : operands) {
            const int64_t n = period(o);
            if (n <= most) again = std::max(again, n);
            flat = flat && (o.flat || o.constant);
        }
        if (again) return most / again * again;
        if (flat || line() < LEAST_BLOCK) return most;
        if (line() <= most) return most / line() * line();
        const int64_t parts = (line() + most - 1) / most;
        return line() % parts == 0 ? line() / parts : most;
    }

    // How far elements that are neighbours in dimension d are apart in the order of their numbers.
    int64_t apart(int d) const { return order[d] / itemsize; }

    // The address of element `at` of an operand, and its index in the merged dimensions.
    const char* address_of(const Operand& o, int64_t at, int64_t* index) const {
        const char* p = o.data;
        for (int d = merged - 1; d >= 0; --d) {
            index[d] = at % sizes[d];
            at /= sizes[d];
            p += index[d] * o.strides[d];
        }
        return p;
    }

    // Calls f(first address, stride in bytes, count, offset) for the stretches of elements [at, at + n).
    template <class F> void each_run(const Operand& o, int64_t at, int64_t n, F&& f) const {
        int64_t index[MOST_DIMS];
        const char* p = address_of(o, at, index);
        const int last = merged - 1;
        for (int64_t done = 0; done < n;) {
            int64_t count = std::min(sizes[last] - index[last], n - done);
            f(p, o.strides[last], count, done);
            done += count;
            p += count * o.strides[last];
            index[last] += count;
            for (int d = last; d > 0 && index[d] == sizes[d]; --d) {
                p += o.strides[d - 1] - sizes[d] * o.strides[d];
                index[d] = 0;
                ++index[d - 1];
            }
        }
    }

    // Calls f(first address, lines, their distance, elements of a line, stride, offset) for the elements [at, at + n), whose lines
    // are so short that what is done for each would cost more than they: many at a time.
    template <class F> void each_lines(const Operand& o, int64_t at, int64_t n, F&& f) const {
        int64_t index[MOST_DIMS];
        const char* p = address_of(o, at, index);
        const int last = merged - 1;
        const int64_t line = sizes[last], stride = o.strides[last], apart = o.strides[last - 1];
        for (int64_t done = 0; done < n;) {
            int d = last;
            if (index[last] == 0 && n - done >= line) {  // whole lines, to the end of the dimension around
                const int64_t lines = std::min(sizes[last - 1] - index[last - 1], (n - done) / line);
                f(p, lines, apart, line, stride, done);
                done += lines * line;
                p += lines * apart;
                index[--d] += lines;
            } else {
                const int64_t count = std::min(line - index[last], n - done);
                f(p, 1, 0, count, stride, done);
                done += count;
                p += count * stride;
                index[last] += count;
            }
            for (; d > 0 && index[d] == sizes[d]; --d) {
                p += o.strides[d - 1] - sizes[d] * o.strides[d];
                index[d] = 0;
                ++index[d - 1];
            }
        }
    }

    template <class T> static void repeat_line(T* to, const char* from, int64_t lines, int64_t line, int64_t stride) {
        take_lines<T, 0>(to, from, 1, 0, line, stride);
        for (int64_t made = line, all = lines * line; made < all; made *= 2)
            std::memcpy(to + made, to, size_t(std::min(made, all - made)) * sizeof(T));
    }

    // Lines of one element each. What is stored of it may reach over the line's end, where the next lines are written then.
    template <class T> static void spread_lines(T* to, const char* from, int64_t lines, int64_t line, int64_t apart) {
        using Bits = Int<T>;
        typedef Bits Some __attribute__((vector_size(64)));
        for (; lines > 0; --lines, from += apart, to += line) {
            Bits value;
            std::memcpy(&value, from, sizeof value);
            if (lines * line < MOST_STORED) {
                for (int64_t i = 0; i < line; ++i) std::memcpy(to + i, &value, sizeof value);
                continue;
            }
            const Some values = Some{} + value;
            for (int64_t i = 0; i < line; i += 64 / int64_t(sizeof(T))) std::memcpy(to + i, &values, sizeof values);
        }
    }
    static constexpr int64_t MOST_STORED = 64;  // elements that the stores of a short line reach over

    template <class T, int fixed>
    static void take_lines(T* to, const char* from, int64_t lines, int64_t apart, int64_t line, int64_t stride) {
        if (fixed) line = fixed;
        for (int64_t k = 0; k < lines; ++k, from += apart, to += line)
            for (int64_t i = 0; i < line; ++i) std::memcpy(to + i, from + i * stride, sizeof(T));
    }

    template <class T, int fixed>
    static void put_lines(char* to, const T* from, int64_t lines, int64_t apart, int64_t line, int64_t stride) {
        if (fixed) line = fixed;
        for (int64_t k = 0; k < lines; ++k, from += line, to += apart)
            for (int64_t i = 0; i < line; ++i) std::memcpy(to + i * stride, from + i, sizeof(T));
    }

    bool has_short_lines() const { return merged > 1 && sizes[merged - 1] <= SHORT_LINE; }

    // Elements [at, at + n): where they are, if they are neighbours, else copied into `buffer`.
    template <class T> const T* gather(const Operand& o, T* buffer, int64_t at, int64_t n) const {
        if (has_short_lines()) {
            each_lines(o, at, n, [=](const char* p, int64_t lines, int64_t apart, int64_t line, int64_t stride, int64_t offset) {
                T* to = buffer + offset;
                if (stride == int64_t(sizeof(T)) && apart == line * stride) std::memcpy(to, p, size_t(lines * apart));
                else if (stride == int64_t(sizeof(T)))
                    copy_short_lines(reinterpret_cast<char*>(to), line * stride, p, apart, lines, line * stride);
                else if (lines > 1 && apart == 0) repeat_line<T>(to, p, lines, line, stride);
                else if (stride == 0) spread_lines<T>(to, p, lines, line, apart);
                else if (line == 2) take_lines<T, 2>(to, p, lines, apart, line, stride);
                else if (line == 3) take_lines<T, 3>(to, p, lines, apart, line, stride);
                else if (line == 4) take_lines<T, 4>(to, p, lines, apart, line, stride);
                else take_lines<T, 0>(to, p, lines, apart, line, stride);
            });
            return buffer;
        }
        const T* found = buffer;
        each_run(o, at, n, [&](const char* p, int64_t stride, int64_t count, int64_t offset) {
            T* to = buffer + offset;
            if (stride == int64_t(sizeof(T))) {
                if (count == n) found = reinterpret_cast<const T*>(p);
                else std::memcpy(to, p, size_t(count) * sizeof(T));
            } else if (stride == 0) {
                T value;
                std::memcpy(&value, p, sizeof value);
                std::fill(to, to + count, value);
            } else {
                take_line(to, p, stride, count);
            }
        });
        return found;
    }

    // The other way: elements [at, at + n) to the places of an operand.
    template <class T> void scatter(const Operand& o, const T* values, int64_t at, int64_t n) const {
        if (has_short_lines())
            return each_lines(o, at, n, [=](const char* p, int64_t lines, int64_t apart, int64_t line, int64_t stride, int64_t offset) {
                char* to = const_cast<char*>(p);
                if (stride == int64_t(sizeof(T)))
                    copy_short_lines(to, apart, reinterpret_cast<const char*>(values + offset), line * stride, lines, line * stride);
                else if (line == 2) put_lines<T, 2>(to, values + offset, lines, apart, line, stride);
                else if (line == 3) put_lines<T, 3>(to, values + offset, lines, apart, line, stride);
                else if (line == 4) put_lines<T, 4>(to, values + offset, lines, apart, line, stride);
                else put_lines<T, 0>(to, values + offset, lines, apart, line, stride);
            });
        each_run(o, at, n, [=](const char* p, int64_t stride, int64_t count, int64_t offset) {
            char* to = const_cast<char*>(p);
            if (stride == int64_t(sizeof(T))) std::memcpy(to, values + offset, size_t(count) * sizeof(T));
            else put_line(to, stride, values + offset, count);
        });
    }

    // Where the elements [at, at + n) of an operand lie, if they are neighbours; else nullptr.
    template <class T> T* in_a_row(const Operand& o, int64_t at, int64_t n) const {
        const int last = merged - 1;
        if (o.strides[last] != int64_t(sizeof(T)) || at % sizes[last] + n > sizes[last]) return nullptr;
        int64_t index[MOST_DIMS];
        return reinterpret_cast<T*>(const_cast<char*>(address_of(o, at, index)));
    }

    int64_t order[MOST_DIMS], itemsize = 1;  // the strides by which elements are numbered
    bool rows = false;                       // row by row
};

// The same over arrays of one kind. `Of::Kind` is that kind; `Of` has ndim, size and stride of a dimension, count and bytes
// of elements, and whether they lie row by row.
template <class Of> struct LayoutOf : Layout {
    using A = typename Of::Kind;

    static Operand operand(const A* a) {
        Operand o;
        o.data = Of::data(*a);
        o.array = a;
        return o;
    }

    // Whether several elements share a place: an expanded array, which says nothing about the order of a result.
    static bool repeats(const A* a) {
        for (int d = 0; d < Of::ndim(*a); ++d)
            if (Of::stride(*a, d) == 0 && Of::size(*a, d) > 1) return true;
        return false;
    }

    // Takes the shape of one more operand in; false if it does not broadcast, or has too many dimensions.
    bool broadcast(const A* a) {
        const int n = Of::ndim(*a);
        if (n > MOST_DIMS) return false;
        if (n > ndim) {
            std::move_backward(shape, shape + ndim, shape + n);
            std::fill(shape, shape + (n - ndim), 1);
            ndim = n;
        }
        for (int i = 0; i < n; ++i) {
            int64_t& s = shape[ndim - n + i];
            if (s == 1) s = Of::size(*a, i);
            else if (Of::size(*a, i) != 1 && Of::size(*a, i) != s) return false;
        }
        return true;
    }

    // Numbers the elements and tells each operand how it lies.
    void settle(OperandList& operands) {
        bool simple = true;
        for (Operand& o : operands) {
            if (!o.array) continue;
            o.constant = Of::count(*array_of(o)) == 1;
            o.flat = !o.constant && same_order(array_of(o));
            simple = simple && (o.flat || o.constant);
        }
        if (!simple) merge(operands);
    }

    bool whole(const A& a) const {
        if (Of::ndim(a) != ndim) return false;
        for (int d = 0; d < ndim; ++d)
            if (Of::size(a, d) != shape[d]) return false;
        return true;
    }

    // Elements are numbered in the order in which those of `a` lie, which has the result's shape.
    void follow(const A& a) {
        for (int d = 0; d < ndim; ++d) order[d] = Of::stride(a, d);
        itemsize = Of::itemsize(a);
        rows = Of::in_rows(a);
    }

  private:
    static const A* array_of(const Operand& o) { return static_cast<const A*>(o.array); }

    bool same_order(const A* a) const {
        if (Of::count(*a) != size) return false;
        if (rows && Of::in_rows(*a)) return true;
        if (Of::ndim(*a) != ndim) return false;
        for (int d = 0; d < ndim; ++d)
            if (shape[d] != 1 && Of::stride(*a, d) * itemsize != order[d] * Of::itemsize(*a)) return false;
        return true;
    }

    // Dimensions in the order of the result's memory; neighbours that every operand steps through alike are one.
    void merge(OperandList& operands) {
        int axes[MOST_DIMS], count = 0;
        for (int d = 0; d < ndim; ++d)
            if (shape[d] != 1) axes[count++] = d;
        sort_axes(axes, count, [&](int a, int b) { return order[a] > order[b]; });
        merged = 0;
        for (int i = 0; i < count; ++i) {
            const int d = axes[i];
            bool joins = merged > 0;
            for (Operand& o : operands)
                if (strided(o)) joins = joins && o.strides[merged - 1] == step(o, d) * shape[d];
            if (!joins) ++merged;
            sizes[merged - 1] = joins ? sizes[merged - 1] * shape[d] : shape[d];
            for (Operand& o : operands)
                if (strided(o)) o.strides[merged - 1] = step(o, d);
        }
    }

    static bool strided(const Operand& o) { return o.array && !o.flat && !o.constant; }

    int64_t step(const Operand& o, int d) const {
        const int at = d - (ndim - Of::ndim(*array_of(o)));
        return at < 0 || Of::size(*array_of(o), at) == 1 ? 0 : Of::stride(*array_of(o), at);
    }
};

}  // namespace fw
