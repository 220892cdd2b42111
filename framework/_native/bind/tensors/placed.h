// Where the results of a function may be made: `out=`.
#pragma once

#include "bind/tensors/tensors.h"

namespace fw::tensors {

// The memory of `out=`, and the arrays of the function's tensors.
struct Targets {
    static constexpr int MOST = Offer::MOST, MOST_INPUTS = 16;
    Held arrays[MOST] = {nullptr, nullptr, nullptr, nullptr};
    bool taken[MOST] = {};  // a kernel has begun to write there
    PyObject* given[MOST_INPUTS];  // the first ones
    PyObject* record = nullptr;    // whose first kernel makes the results; null once it has run
    int count = 0, inputs = 0;

    bool take_out(PyObject* out);
    bool take_input(PyObject* x, int depth);
};
extern thread_local Targets* targets;  // of the function that runs

// While this lives the kernel of that record makes results there.
class Placing {
  public:
    Placing(PyObject* record, PyObject* const* inputs, Py_ssize_t n);
    Placing(const Placing&) = delete;
    ~Placing() {
        if (to) close();
    }

  private:
    void close();
    Targets* to = nullptr;
    Offer offer;
    Offer* before = nullptr;
    Placing* outer = nullptr;

    friend bool is_awaited();
};
bool is_awaited();  // whether this thread's kernel writes into memory that was there before

// What a function gives, in `out`: (function, inputs, settings, out, name, exact, record), where the record is the one that gives the
// results, or None; and what a record gives: (record, inputs, settings, out, name).
nb::object run_into(PyObject* const* args);
nb::object compute_into(PyObject* const* args);
// A result that is there, in `out` by the rules of `check_out` of `public.py`.
nb::object put_into(PyObject* out, PyObject* result, PyObject* name);

}  // namespace fw::tensors
