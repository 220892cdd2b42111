// Random numbers in plain memory. No Python.
#pragma once

#include <cstdint>

namespace fw::random {

// The state of numpy.random.Philox in words: key, the counter of the last block, that block, how many of its words are used
// up, whether half a word is left and which. Drawing leaves the state after it there, unless it throws.
constexpr int64_t STATE_WORDS = 13;
bool is_state(const uint64_t* words);  // whether words that somebody gave can be one

uint64_t draw_word(uint64_t* words);

// T: float or double. Uniform in [0, 1); normal.
template <class T> void draw_uniform(uint64_t* words, T* out, int64_t n);
template <class T> void draw_normal(uint64_t* words, T* out, int64_t n);

// The same in [low, high), of that mean and deviation, and 1 where one is below each chance, else 0.
template <class T> void draw_between(uint64_t* words, T* out, int64_t n, double low, double high);
template <class T> void draw_spread(uint64_t* words, T* out, int64_t n, double mean, double deviation);
template <class T> void draw_coins(uint64_t* words, const T* chances, T* out, int64_t n);
template <class T> void draw_coins(uint64_t* words, T chance, T* out, int64_t n);

// Uniform in [low, low + range); `takes_range` says whether so many of them are drawn here: not where many would have to be
// drawn again.
bool takes_range(int64_t low, uint64_t range, double n);
void draw_integers(uint64_t* words, int64_t* out, int64_t n, int64_t low, uint64_t range);

// Positions drawn in proportion to weights (rows, n), k of each row, again and again or each once: by k draws of a row, uniform in
// [0, 1), or by n. Whether such weights are taken here; a position is below n whatever the weights have become since.
template <class T> bool can_pick(const T* weights, int64_t rows, int64_t n, int64_t k, bool again);
template <class T> void pick(const T* weights, int64_t rows, int64_t n, const double* draws, int64_t* to, int64_t k, bool again);

// x / (1 - p) or 0, with probability p: which, is a function of the key. 0 <= p <= 1.
template <class T> void drop(const T* x, T* out, int64_t n, double p, uint64_t key);

}  // namespace fw::random
