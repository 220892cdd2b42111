// What an optimizer's step and the end of a backward do for each parameter, without Python in between.
#include <algorithm>

#include "bind/deferral/leaves.h"

namespace fw::deferral {

Py_ssize_t at_grad = 0, at_hooks = 0, at_after = 0;

namespace {

PyObject *word_step = nullptr, *word_params = nullptr, *word_zero = nullptr;

PyArrayObject* plain_array(PyObject* tensor) { return is_tensor(tensor) ? array_of(tensor) : nullptr; }

// Whether one of the options is a tensor, or holds one.
bool has_tensor(PyObject* options, PyObject* names) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(names); ++k) {
        PyObject* value = PyDict_GetItemWithError(options, PyTuple_GET_ITEM(names, k));
        if (!value || value == Py_None || PyFloat_CheckExact(value) || PyLong_CheckExact(value)) continue;
        if (PyTuple_CheckExact(value)) {
            for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i)
                if (PyObject_TypeCheck(PyTuple_GET_ITEM(value, i), tensor_type)) return true;
        } else if (PyObject_TypeCheck(value, tensor_type)) {
            return true;
        }
    }
    return false;
}

// Whether no parameter is there twice: it would step twice.
bool once_each(const std::vector<nb::object>& work) {
    std::vector<PyObject*> all;
    for (const nb::object& found : work)
        for (nb::handle p : nb::borrow<nb::list>(found[0])) all.push_back(p.ptr());
    std::sort(all.begin(), all.end());
    return std::adjacent_find(all.begin(), all.end()) == all.end();
}

// The parameters of a group that have a gradient, and what their step takes.
struct Ready {
    nb::list params, states;
    std::vector<nb::object> weights, gradients;
    nb::object number;  // of the last step
};

// False where one is not as usual, or is at another step than the first.
bool gather(PyObject* params, PyObject* state, Ready& found) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(params); ++i) {
        PyObject* p = PyList_GET_ITEM(params, i);
        PyArrayObject* a = plain_array(p);
        if (!a) return false;
        PyObject* node = slot(p, offsets[1]);
        if (!node || Py_TYPE(node) != leaf_type) {
            PyObject* more = slot(p, offsets[3]);
            if ((node && node != Py_None) || (more && more != Py_None)) return false;
            continue;
        }
        PyObject* grad = slot(node, at_grad);
        if (!grad || grad == Py_None) continue;
        PyArrayObject* g = Py_TYPE(grad) == tensor_type ? array_of(grad) : nullptr;
        if (!g || !PyArray_ISWRITEABLE(a) || !PyArray_SAMESHAPE(a, g) || PyArray_DESCR(a) != PyArray_DESCR(g))
            return false;
        PyObject* kept = PyDict_GetItemWithError(state, p);
        if (!kept) {
            if (PyErr_Occurred()) throw nb::python_error();
            return false;
        }
        PyObject* step = PyDict_CheckExact(kept) ? PyDict_GetItemWithError(kept, word_step) : nullptr;
        if (!step || !PyLong_CheckExact(step)) return false;
        if (!found.number.is_valid()) found.number = nb::borrow(step);
        else if (found.number.ptr() != step && PyLong_AsLongLong(found.number.ptr()) != PyLong_AsLongLong(step)) return false;
        found.params.append(nb::handle(p)), found.states.append(nb::handle(kept));
        found.weights.push_back(nb::borrow(slot(p, offsets[0])));
        found.gradients.push_back(nb::borrow(slot(grad, offsets[0])));
    }
    return true;
}

// prepared(group, names, state, fused): what the step of a group of parameters takes, which nothing has changed yet:
// (parameters, their state, kernel, its arrays, number of the step), kernel being what fused(group, number) gives. None
// where something is not as usual, False where no parameter has a gradient. names: the group's options.
nb::object prepared(nb::dict group, nb::tuple names, nb::dict state, nb::object fused) {
    PyObject* params = PyDict_GetItemWithError(group.ptr(), word_params);
    if (!params || !PyList_CheckExact(params) || has_tensor(group.ptr(), names.ptr())) return nb::none();
    Ready found;
    if (!gather(params, state.ptr(), found)) return nb::none();
    if (!found.number.is_valid()) return nb::bool_(false);
    nb::object number = nb::steal(PyLong_FromLongLong(PyLong_AsLongLong(found.number.ptr()) + 1));
    // (function, names of states, numbers, numbers of the states after it, a rate on a GPU, ...)
    nb::object kernel = fused(group, number);
    if (!PyTuple_Check(kernel.ptr()) || PyTuple_GET_SIZE(kernel.ptr()) < 5) return nb::none();
    if (PyTuple_GET_ITEM(kernel.ptr(), 4) != Py_None) return nb::none();
    PyObject* after = PyTuple_GET_ITEM(kernel.ptr(), 3);
    if (!PyDict_CheckExact(after) || PyDict_GET_SIZE(after)) return nb::none();
    PyObject* wanted = PyTuple_GET_ITEM(kernel.ptr(), 1);
    nb::list arrays;
    for (size_t i = 0; i < found.weights.size(); ++i) {
        arrays.append(found.weights[i]);
        arrays.append(found.gradients[i]);
        for (Py_ssize_t k = 0; k < PyTuple_Size(wanted); ++k) {
            PyObject* kept = PyDict_GetItemWithError(PyList_GET_ITEM(found.states.ptr(), Py_ssize_t(i)),
                                                     PyTuple_GET_ITEM(wanted, k));
            if (!kept || !plain_array(kept)) return nb::none();
            arrays.append(nb::handle(slot(kept, offsets[0])));
        }
    }
    return nb::make_tuple(found.params, found.states, kernel, arrays, number);
}

// stepped(params, states, number, name): they were changed in place, by this.
void stepped(nb::list params, nb::list states, nb::object number, nb::object name) {
    const size_t n = params.size();
    bool fit = states.size() == n && tensor_type;
    for (size_t i = 0; fit && i < n; ++i) {
        PyObject* p = PyList_GET_ITEM(params.ptr(), Py_ssize_t(i));
        fit = is_tensor(p) && PyDict_CheckExact(PyList_GET_ITEM(states.ptr(), Py_ssize_t(i)));
        PyObject* counter = fit ? slot(p, offsets[2]) : nullptr;
        if (counter && counter != Py_None)
            fit = PyList_CheckExact(counter) && PyList_GET_SIZE(counter) == 2 && PyLong_CheckExact(PyList_GET_ITEM(counter, 0));
    }
    if (!fit) throw nb::type_error("stepped: wanted a list of tensors and one of dicts, as many of each");
    for (size_t i = 0; i < n; ++i) {
        const nb::object p = params[i], kept = states[i];
        if (PyDict_SetItem(kept.ptr(), word_step, number.ptr()) < 0) throw nb::python_error();
        if (!slot(p.ptr(), offsets[2]) || slot(p.ptr(), offsets[2]) == Py_None) {
            nb::list made;
            made.append(nb::handle(word_zero)), made.append(nb::none());
            Py_XSETREF(slot(p.ptr(), offsets[2]), made.release().ptr());
        }
        const nb::object counter = nb::borrow(slot(p.ptr(), offsets[2]));
        PyObject* before = PyList_GetItem(counter.ptr(), 0);
        const long long count = before ? PyLong_AsLongLong(before) : -1;
        if (PyErr_Occurred()) throw nb::python_error();
        if (PyList_SetItem(counter.ptr(), 0, PyLong_FromLongLong(count + 1)) < 0 ||
            PyList_SetItem(counter.ptr(), 1, nb::object(name).release().ptr()) < 0)
            throw nb::python_error();
    }
}

// What the steps of all groups take, or nothing where one is not as usual. `groups` are those that have gradients.
bool gather_all(nb::list given, nb::tuple names, nb::dict state, nb::object fused, std::vector<nb::object>& groups,
                std::vector<nb::object>& work) try {
    for (nb::handle group : given) {
        if (!PyDict_CheckExact(group.ptr())) return false;
        nb::object found = prepared(nb::borrow<nb::dict>(group), names, state, fused);
        if (found.is_none()) return false;
        if (!PyTuple_CheckExact(found.ptr())) continue;
        groups.push_back(nb::borrow(group)), work.push_back(std::move(found));
    }
    return once_each(work);
} catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;
    return false;  // the optimizer says what is wrong, after what it does before it finds out
}

// step_groups(groups, names, state, fused, module, name, noted): makes the step of all parameters by the functions of
// `module` that fused(group, number) names; None where something is not as usual, and nothing is changed. Gives
// (group, what `prepared` found, numbers of the parameters that are left) of the groups that are not done; with `noted` of
// all, whose versions and numbers of steps the caller counts.
nb::object step_groups(nb::list given, nb::tuple names, nb::dict state, nb::object fused, nb::object module, nb::object name,
                       bool noted) {
    std::vector<nb::object> groups, work;
    if (!gather_all(given, names, state, fused, groups, work)) return nb::none();
    nb::list left;
    for (size_t i = 0; i < work.size(); ++i) {
        const nb::object kernel = work[i][2], function = nb::steal(PyObject_GetAttr(module.ptr(), nb::object(kernel[0]).ptr()));
        if (!function.is_valid()) throw nb::python_error();
        nb::object skipped = function(nb::object(work[i][3]), nb::object(kernel[2]));
        if (noted || !PyList_CheckExact(skipped.ptr()) || PyList_GET_SIZE(skipped.ptr()))
            left.append(nb::make_tuple(groups[i], work[i], skipped));
        else
            stepped(nb::borrow<nb::list>(work[i][0]), nb::borrow<nb::list>(work[i][1]), work[i][4], name);
    }
    return left;
}

}  // namespace

bool are_free(const Tape* t, PyObject* numbers) {
    std::vector<PyObject*> nodes;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(numbers); ++i) {
        PyObject* tensor = (*t->externals)[size_t(PyLong_AsSsize_t(PyTuple_GET_ITEM(numbers, i)))].tensor.ptr();
        if (Py_TYPE(tensor) == drawn_type) continue;
        PyObject* node = slot(tensor, offsets[1]);
        if (!node || Py_TYPE(node) != leaf_type) return false;
        PyObject *hooks = slot(node, at_hooks), *after = slot(node, at_after), *grad = slot(node, at_grad);
        if (grad && Py_TYPE(grad) == tensor_type && !slot(grad, offsets[0])) return false;  // it is put off
        if ((hooks && hooks != Py_None) || (after && after != Py_None && PyObject_IsTrue(after))) return false;
        for (PyObject* other : nodes)
            if (other == node) return false;
        nodes.push_back(node);
    }
    return true;
}

PyObject* hand_out(const Tape* t, PyObject* numbers, PyObject* arrays, Py_ssize_t at) {
    nb::list left;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(numbers); ++i) {
        PyObject* number = PyTuple_GET_ITEM(numbers, i);
        PyObject* node = slot((*t->externals)[size_t(PyLong_AsSsize_t(number))].tensor.ptr(), offsets[1]);
        PyObject *array = PyTuple_GET_ITEM(arrays, at + i), *before = slot(node, at_grad);
        if ((before && before != Py_None) || !PyArray_CheckExact(array)) {
            left.append(nb::make_tuple(nb::handle(node), nb::handle(array)));
            continue;
        }
        PyObject* made = tensor_type->tp_alloc(tensor_type, 0);
        if (!made) return nullptr;
        PyObject* parts[SLOTS] = {array, Py_None, Py_None, Py_None};
        for (int k = 0; k < SLOTS; ++k) {
            Py_INCREF(parts[k]);
            slot(made, offsets[k]) = parts[k];
        }
        Py_XSETREF(slot(node, at_grad), made);
    }
    return left.release().ptr();
}

}  // namespace fw::deferral

namespace fw {

FW_BIND(m) {
    using namespace deferral;
    word_step = PyUnicode_InternFromString("step");
    word_zero = PyLong_FromLong(0);
    word_params = PyUnicode_InternFromString("params");
    m.def("step_groups", &step_groups);
    m.def("stepped", &stepped);
}

}  // namespace fw
