// C++ that Python calls without nanobind: what is thrown becomes Python's error.
#pragma once

#include <new>

#include "base/pool.h"
#include "bind/array.h"

namespace fw {

// What `body` gives, or null with Python's error set.
template <class F> PyObject* guarded(F&& body) {
    try {
        return body();
    } catch (nb::python_error& error) {
        error.restore();
    } catch (const Interrupted&) {  // the error is set
    } catch (const nb::builtin_exception& error) {
        const bool of_type = error.type() == nb::exception_type::type_error;
        PyErr_SetString(of_type ? PyExc_TypeError : error.type() == nb::exception_type::value_error ? PyExc_ValueError : PyExc_RuntimeError, error.what());
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return nullptr;
}

}  // namespace fw
