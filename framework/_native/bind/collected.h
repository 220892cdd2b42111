// What Python's garbage collector asks of a type that is written by hand, without nanobind: one text for all of them.
#pragma once

#include <Python.h>

namespace fw {

// Of instances of `T`, which own the objects in these members; null members are allowed.
template <class T, PyObject* T::*... owned> struct Collected {
    static int traverse(PyObject* self, visitproc visit, void* arg) {
        Py_VISIT(Py_TYPE(self));
        for (PyObject* member : {reinterpret_cast<T*>(self)->*owned...}) Py_VISIT(member);
        return 0;
    }
    static int clear(PyObject* self) {
        const auto drop = [](PyObject*& member) { Py_CLEAR(member); };
        (drop(reinterpret_cast<T*>(self)->*owned), ...);
        return 0;
    }
    // The end of an instance; what it owns beside objects goes in `T::close`.
    static void free(PyObject* self) {
        PyObject_GC_UnTrack(self);
        PyTypeObject* type = Py_TYPE(self);
        clear(self);
        reinterpret_cast<T*>(self)->close();
        PyObject_GC_Del(self);
        Py_DECREF(type);
    }
};

}  // namespace fw
