// Where the results of a function may be made: `out=`.
#pragma once

#include <vector>

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

// A call of a function whose results go into `out`: its arguments as they came, the names of the last ones (a tuple, or null), and
// the record that gives the results, or None.
struct PlacedCall {
    PyObject* function;
    PyObject* const* args;
    Py_ssize_t n;  // without names
    PyObject *keywords, *out, *name, *exact, *record;
    Py_ssize_t count() const { return n + (keywords ? PyTuple_GET_SIZE(keywords) : 0); }
};
nb::object call_into(const PlacedCall& call);

// Arguments with named ones behind them, at most so many, which it holds.
class Arguments {
  public:
    Arguments(PyObject* const* args, Py_ssize_t n, Py_ssize_t most) : given(args), n(n) {
        if (!most) return;
        all.reserve(size_t(n + most));
        all.assign(args, args + n);
        keys = taken(PyTuple_New(most));
    }
    Arguments(const Arguments&) = delete;
    ~Arguments() {
        for (size_t i = size_t(n); i < all.size(); ++i) Py_DECREF(all[i]);
    }
    void add(PyObject* name, PyObject* value) {
        PyTuple_SET_ITEM(keys.ptr(), Py_ssize_t(all.size()) - n, Py_NewRef(name));
        all.push_back(Py_NewRef(value));
    }
    PyObject* const* items() const { return keys.is_valid() ? all.data() : given; }
    PyObject* names() const { return keys.ptr(); }

  private:
    PyObject* const* given;
    Py_ssize_t n;
    std::vector<PyObject*> all;
    nb::object keys;
};

// What a record gives, in `out`: (record, inputs, settings, out, name).
nb::object compute_into(PyObject* const* args);
// A result that is there, in `out` by the rules of `check_out` of `public.py`.
nb::object put_into(PyObject* out, PyObject* result, PyObject* name);

}  // namespace fw::tensors
