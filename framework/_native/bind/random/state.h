// States of random generators in NumPy arrays.
#pragma once

#include <algorithm>

#include "bind/array.h"
#include "random/draws.h"

namespace fw {

// The state that an array holds, copied and checked as such: others may write into the array.
struct State {
    Array array;
    uint64_t words[random::STATE_WORDS];
    bool usable;
    explicit State(Array& a) : array(a) {
        usable = a.usable() && a.type() == NPY_UINT64 && a.contiguous() && a.writeable() && a.size() == random::STATE_WORDS;
        if (!usable) return;
        std::copy_n(a.data<uint64_t>(), random::STATE_WORDS, words);
        usable = random::is_state(words);
    }
    void store() { std::copy_n(words, random::STATE_WORDS, array.data<uint64_t>()); }
};

}  // namespace fw
