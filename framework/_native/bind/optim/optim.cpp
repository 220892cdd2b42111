// Steps of optimizers and the clipping of gradients, of lists of NumPy arrays; what kernels do not take is left to the plain
// forms.
#include <stdexcept>

#include "bind/bf16_array.h"
#include "optim/optimizers.h"

namespace fw::optim {
namespace {

Array as_array(PyObject* o) {
    const bool good = PyArray_CheckExact(o) && PyArray_ISBEHAVED_RO(reinterpret_cast<PyArrayObject*>(o));
    return {good ? reinterpret_cast<PyArrayObject*>(o) : nullptr};
}

// Raised where NumPy would not take a number as Python's, which takes the dtype of the array it meets.
struct NotPythons {};

double number_of(PyObject* o) {
    constexpr double EXACT = 9007199254740992.0;  // integers up to it are numbers of float64
    if (PyFloat_CheckExact(o)) return PyFloat_AS_DOUBLE(o);
    if (!PyLong_CheckExact(o) && !PyBool_Check(o)) throw NotPythons();
    const double value = PyLong_AsDouble(o);
    if (value == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        throw NotPythons();
    }
    if (value < -EXACT || value > EXACT) throw NotPythons();
    return value;
}

std::unique_ptr<const Method> method_of(const char* name, nb::dict numbers) {
    std::vector<Setting> settings;
    settings.reserve(size_t(PyDict_Size(numbers.ptr())));
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(numbers.ptr(), &at, &key, &value);) {
        const char* text = PyUnicode_Check(key) ? PyUnicode_AsUTF8(key) : nullptr;  // which the dict keeps
        if (!text) {
            PyErr_Clear();
            throw nb::value_error("a number without a name");
        }
        settings.push_back({text, number_of(value)});
    }
    try {
        return method_named(name, settings);
    } catch (const std::out_of_range& missing) {
        throw nb::key_error(missing.what());
    }
}

// The arrays of some parameters, whatever happens to the list meanwhile.
struct HeldArrays {
    nb::object tuple;
    explicit HeldArrays(nb::list arrays) : tuple(nb::steal(PyList_AsTuple(arrays.ptr()))) {
        if (!tuple.is_valid()) throw nb::python_error();
    }
    size_t size() const { return size_t(PyTuple_GET_SIZE(tuple.ptr())); }

    // The `count` arrays from number `first` on; false where one is none, or must be written and may not be.
    bool views(size_t first, int count, View* to) const {
        for (int k = 0; k < count; ++k) {
            const Array a = as_array(PyTuple_GET_ITEM(tuple.ptr(), Py_ssize_t(first) + k));
            if (!a.usable() || (k != 1 && !a.writeable())) return false;
            to[k] = view_of(a);
        }
        return true;
    }
};

ParameterList list_of(const HeldArrays& arrays, int count) {
    if (arrays.size() % size_t(count)) throw nb::value_error("some parameter has not all of its arrays");
    ParameterList list;
    list.all.reserve(arrays.size() / size_t(count));
    list.ends.reserve(arrays.size() / size_t(count));
    View views[MOST_ARRAYS];
    for (size_t i = 0; i < arrays.size(); i += size_t(count)) {
        if (arrays.views(i, count, views)) list.add(views, count);
        else list.skip();
    }
    list.part(count);
    return list;
}

void release_and_run(const Method& method, const ParameterList& list) {
    Release release(list.bytes, Writes::memory);
    run(method, list);
}

// One step: of each parameter itself, its gradient, its states, one parameter after the other; only gradients are not
// written. Gives the numbers of the parameters that are left to the plain form.
nb::object step(const char* name, nb::list arrays, nb::dict numbers) try {
    const auto method = method_of(name, numbers);
    const HeldArrays held(arrays);
    const ParameterList list = list_of(held, method->count);
    release_and_run(*method, list);
    return nb::cast(list.skipped);
} catch (const NotPythons&) {
    return not_implemented();
}

// One step of some rows of one parameter [n, *] and its states: `rows` says which, `arrays` are the parameter, the
// gradient [len(rows), *] and the states.
bool rows_step(const char* name, nb::list arrays, Array rows, nb::dict numbers) try {
    const auto method = method_of(name, numbers);
    const HeldArrays held(arrays);
    if (held.size() != size_t(method->count)) throw nb::value_error("a parameter, its gradient and its states were wanted");
    View views[MOST_ARRAYS];
    ParameterRows work;
    if (!rows.is<int64_t>() || rows.ndim() != 1 || !rows.contiguous() || !held.views(0, method->count, views) ||
        !work.take(views, method->count, rows.data<int64_t>(), rows.size()))
        return false;
    Release release(int64_t(work.rows.size()) * work.width * (work.one.wide ? 8 : 4) * method->count, Writes::memory);
    run(*method, work);
    return true;
} catch (const NotPythons&) {
    return false;
}

// In place on all arrays, or on none.
nb::object change_all(const char* name, nb::list arrays, nb::dict numbers) try {
    const auto method = method_of(name, numbers);
    const HeldArrays held(arrays);
    const ParameterList list = list_of(held, 1);
    if (!list.skipped.empty()) return not_implemented();
    release_and_run(*method, list);
    return nb::none();
} catch (const NotPythons&) {
    return not_implemented();
}

nb::object norm_of_all(nb::list arrays) {
    const HeldArrays held(arrays);
    const ParameterList list = list_of(held, 1);
    if (!list.skipped.empty()) return not_implemented();
    double norm;
    {
        Release release(list.bytes);
        norm = norm_of(list);
    }
    return nb::float_(norm);
}

// Whether every gradient has the shape and dtype of its parameter, and all parameters are NumPy arrays that
// may be written.
bool gradients_fit(nb::list params, nb::list grads) {
    const size_t n = params.size();
    if (grads.size() != n) return false;
    for (size_t i = 0; i < n; ++i) {
        const Array p = as_array(PyList_GET_ITEM(params.ptr(), Py_ssize_t(i)));
        const Array g = as_array(PyList_GET_ITEM(grads.ptr(), Py_ssize_t(i)));
        if (!p.usable() || !g.usable() || !p.writeable() || !p.same_shape(g)) return false;
        if (PyArray_DESCR(p.p) != PyArray_DESCR(g.p)) return false;
    }
    return true;
}

}  // namespace

FW_BIND(m) {
    m.def("sgd_step", [](nb::list arrays, nb::dict numbers) { return step("sgd", arrays, numbers); });
    m.def("adagrad_step", [](nb::list arrays, nb::dict numbers) { return step("adagrad", arrays, numbers); });
    m.def("rmsprop_step", [](nb::list arrays, nb::dict numbers) { return step("rmsprop", arrays, numbers); });
    m.def("adam_step", [](nb::list arrays, nb::dict numbers) { return step("adam", arrays, numbers); });
    m.def("adadelta_step", [](nb::list arrays, nb::dict numbers) { return step("adadelta", arrays, numbers); });
    m.def("adamax_step", [](nb::list arrays, nb::dict numbers) { return step("adamax", arrays, numbers); });
    m.def("sgd_rows", [](nb::list arrays, Array rows, nb::dict n) { return rows_step("sgd", arrays, rows, n); });
    m.def("adagrad_rows", [](nb::list arrays, Array rows, nb::dict n) { return rows_step("adagrad", arrays, rows, n); });
    m.def("sparse_adam_rows",
          [](nb::list arrays, Array rows, nb::dict n) { return rows_step("sparse_adam", arrays, rows, n); });
    m.def("scale_all", [](nb::list arrays, nb::dict numbers) { return change_all("scale", arrays, numbers); });
    m.def("clip_all", [](nb::list arrays, nb::dict numbers) { return change_all("clip", arrays, numbers); });
    m.def("norm_of_all", &norm_of_all);
    m.def("gradients_fit", &gradients_fit);
}

}  // namespace fw::optim
