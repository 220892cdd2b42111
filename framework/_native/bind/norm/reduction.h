// What becomes of losses, by its name in Python.
#pragma once

#include "bind/array.h"
#include "norm/loss_classes.h"

namespace fw {

inline Reduction reduction_of(nb::handle name) {
    auto is = [&](const char* text) {
        return PyUnicode_Check(name.ptr()) && PyUnicode_CompareWithASCIIString(name.ptr(), text) == 0;
    };
    return is("none") ? Reduction::none : is("sum") ? Reduction::sum : Reduction::mean;
}

}  // namespace fw
