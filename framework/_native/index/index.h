// Choosing and writing by positions and by masks, in plain memory. No Python.
#pragma once

#include <type_traits>
#include <vector>

#include "base/view.h"
#include "move/block.h"

namespace fw::moving {

constexpr int MOST_INDEX_DIMS = 64;

// A position that others may change: what was checked is what is used.
FW_INLINE int64_t once(const int64_t* p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }

// -- whole rows -----------------------------------------------------------------------------------

// Dimensions of an array as (outer, n, inner): positions of n count, `inner` elements move at once.
struct Layout {
    int64_t outer = 1, n = 1, inner = 1;
};

// Positions that were checked: each lies in [0, n). They are copies, which nobody changes meanwhile.
struct Places {
    std::vector<int64_t> at;
    bool good = false;

    int64_t count() const { return int64_t(at.size()); }
    const int64_t* begin() const { return at.data(); }
};

// The positions that `index` (int64 or int32, row by row) holds for dimensions of these sizes, one array after the other,
// combined to positions in all of them together; negative ones count from the end.
Places read_places(const View& index, int dims, const int64_t* sizes);

// to (outer, places, inner) = from (outer, n, inner) at the places
void take_rows(const Layout& l, const Places& places, int bytes, const char* from, char* to);
// Zeros of (outer, n, inner), with the rows of (outer, places, inner) added in order; false for a type that is not summed.
bool add_rows(Type type, const Layout& l, const Places& places, const void* from, void* to);
// The same sums, each added to the element of x (outer, n, inner), which stays where the sum is 0.
bool add_rows_to(Type type, const Layout& l, const Places& places, const void* x, const void* from, void* to);
enum class Combine { sum, product, largest, smallest };
// to (outer, n, inner) at the places combined with the rows of (outer, places, inner): the sum of those that go to one place is added
// to it. False for a type of numbers that is not combined so.
bool combine_rows(Combine how, Type type, const Layout& l, const Places& places, const void* rows, void* to);
// to (outer, n, inner) at the places = `rows` (outer, places, inner), or without them a number; where a place stands twice,
// the last one counts.
void put_rows(const Layout& l, const Places& places, int bytes, const char* rows, const Pair& number, char* to);

void range_of(const int64_t* at, int64_t n, int64_t& smallest, int64_t& largest);  // n > 0

// -- elements along a dimension -------------------------------------------------------------------

// An index and what it runs along. `far` is the array that positions point into, `near` has the index's shape.
// Dimensions: `outer` (all but dim and the last), then `steps` along dim, then `width` along the last one.
// Where dim is the last one, steps is 1 and positions vary along the width.
struct Elements {
    const char* index = nullptr;
    Block outer;  // from: strides of the index, to: of near
    int64_t far_outer[MOST_INDEX_DIMS];
    int64_t steps = 1, width = 1, n = 1;
    int64_t index_step = 0, near_step = 0;                 // along dim, in bytes
    int64_t index_next = 0, near_next = 0, far_next = 0;   // along the last dimension, in bytes
    int64_t far_jump = 0;                                  // of one position
    bool single = false;                                   // one position along dim: no place is named twice
    int64_t band = 1, bands = 1;                           // columns that belong to one thread
    bool good = false;

    // shared: what is written is the far array. Not `good` where index and array do not fit.
    Elements(const View& index, int ndim, const int64_t* far_shape, const int64_t* far_strides,
             const int64_t* near_strides, int64_t dim, int bytes, bool shared);
    int64_t units() const { return product(outer.shape, 0, outer.ndim) * bands; }
    int64_t unit_bytes(int bytes) const { return steps * band * bytes; }
};

// False where a position is out of range; the result is unfinished then.
bool gather(const Elements& p, int bytes, const char* far, char* near);
bool scatter(const Elements& p, int bytes, const char* near, char* far);
bool scatter(Combine how, Type type, const Elements& p, const char* near, char* far);  // or for a type that has no sums
// Adds to each place the sum of what goes there, in order; false, and nothing is written, for a type of numbers that is not summed so.
// Positions out of range, of which there are none unless somebody changes them meanwhile, are false, too. Where places may be named
// twice in one thread, with memory for each element: for few of them.
bool add_few(Type type, const Elements& p, const char* near, char* far);

// to (n, count): 1 at each class, 0 elsewhere
bool one_hot(const int64_t* classes, int64_t n, int64_t count, int64_t* to);

// -- masks ----------------------------------------------------------------------------------------

// A mask over the leading dimensions of an array, which has `inner` elements for each of its own.
struct Chosen {
    const uint8_t* mask = nullptr;
    int64_t n = 0, inner = 1;
    std::vector<int64_t> before;  // how many it chose before each chunk, once they are counted

    void count();
    int64_t total() const { return before.back(); }
};

// Of a mask that was counted. Should somebody change it meanwhile, no more elements are moved than were counted.
void pick(const Chosen& chosen, int bytes, const char* from, char* to);
// to = the next row of `from` where the mask holds, else that of `kept`, or 0 without it
void place(const Chosen& chosen, int bytes, const char* from, const char* kept, char* to);
// to = a number where the mask holds, else from; nothing need be counted
void fill(const Chosen& chosen, int bytes, const Pair& number, const char* from, char* to);

// -- numbers --------------------------------------------------------------------------------------

// a + b; integers wrap around
template <class T> FW_INLINE T sum_of(T a, T b) {
    if constexpr (std::is_integral<T>::value)
        return T(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b));
    else
        return a + b;
}

// x with a sum added; what stays of it where the sum is 0.
template <class T> FW_INLINE T with_sum(T x, T sum) { return sum == T(0) ? x : sum_of(x, sum); }

// sums = x with them added. By vectors: nobody foresees where there is a sum.
template <class T> void add_sums(const T* x, int64_t n, T* sums) {
    using U = std::conditional_t<std::is_integral<T>::value, std::make_unsigned<T>, std::enable_if<true, T>>;
    using V = typename U::type;  // whole numbers wrap around
    const V* own = reinterpret_cast<const V*>(x);
    V* to = reinterpret_cast<V*>(sums);
    int64_t i = 0;
    for (; i + lanes<V> <= n; i += lanes<V>) {
        const Vec<V> before = load(own + i), sum = load(to + i);
        store<V>(to + i, sum == Vec<V>{} ? before : before + sum);
    }
    for (; i < n; ++i) sums[i] = with_sum(x[i], sums[i]);
}

// Calls f with a number of the type that is summed; false for other types.
template <class F> bool by_number(Type type, F&& f) {
    switch (type) {
        case Type::float32: return f(float{}), true;
        case Type::float64: return f(double{}), true;
        case Type::int64: return f(int64_t{}), true;
        case Type::int32: return f(int32_t{}), true;
        default: return false;
    }
}

}  // namespace fw::moving
