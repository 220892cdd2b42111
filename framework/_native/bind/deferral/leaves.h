// Leaves of a backward that runs as a plan.
#pragma once

#include "bind/deferral/tape.h"

namespace fw::deferral {

extern Py_ssize_t at_grad, at_hooks, at_after;  // where slots of a leaf lie

// Whether the externals of these numbers, but for keys, are leaves that nothing is hooked to, each once, whose gradients are there.
bool are_free(const Tape* t, PyObject* numbers);
// The arrays from `at` on are gradients of these externals, which had none; gives (leaf, gradient) of those that had.
PyObject* hand_out(const Tape* t, PyObject* numbers, PyObject* arrays, Py_ssize_t at);

}  // namespace fw::deferral
