#include "bind/deferral/recycled.h"

#include <algorithm>

namespace fw::deferral {
namespace {

constexpr npy_intp LARGEST = 1 << 17, MOST = 1 << 20;  // bytes: of one array, and of all that are kept

// Whether it has its memory for itself, in row-major order.
bool whole(PyObject* o) {
    if (!PyArray_CheckExact(o)) return false;
    auto* a = reinterpret_cast<PyArrayObject*>(o);
    return !PyArray_BASE(a) && PyArray_CHKFLAGS(a, NPY_ARRAY_CARRAY | NPY_ARRAY_OWNDATA) && PyArray_ISNOTSWAPPED(a);
}

}  // namespace

bool Recycled::Kind::suits(PyArrayObject* a) const {
    return PyArray_TYPE(a) == type && PyArray_NDIM(a) == int(sizes.size()) &&
           std::equal(sizes.begin(), sizes.end(), PyArray_DIMS(a));
}

Recycled::~Recycled() {
    for (Kind& kind : kinds)
        for (PyObject* a : kind.free) Py_DECREF(a);
}

int Recycled::kind_of(PyObject* o) {
    if (!whole(o)) return NONE;
    auto* a = reinterpret_cast<PyArrayObject*>(o);
    for (size_t i = 0; i < kinds.size(); ++i)
        if (kinds[i].suits(a)) return int(i);
    if (PyArray_NBYTES(a) > LARGEST || !PyArray_NBYTES(a)) return NONE;
    kinds.push_back({PyArray_TYPE(a), PyArray_NBYTES(a), {PyArray_DIMS(a), PyArray_DIMS(a) + PyArray_NDIM(a)}, {}});
    return int(kinds.size()) - 1;
}

PyObject* Recycled::take(int kind) {
    if (kind == NONE || kinds[size_t(kind)].free.empty()) return nullptr;
    PyObject* a = kinds[size_t(kind)].free.back();
    kinds[size_t(kind)].free.pop_back();
    bytes -= kinds[size_t(kind)].bytes;
    return a;
}

void Recycled::give(nb::object& given, int kind) {
    if (kind != NONE && given.is_valid() && Py_REFCNT(given.ptr()) == 1 && PyArray_CheckExact(given.ptr())) {
        PyObject* base = PyArray_BASE(reinterpret_cast<PyArrayObject*>(given.ptr()));
        if (base && PyArray_CheckExact(base) && Py_REFCNT(base) == 1) given = nb::borrow(base);
        put(given, kinds[size_t(kind)]);
    }
    given = nb::object();
}

void Recycled::give_back(PyObject* a, int kind) {
    nb::object given = nb::steal(a);
    put(given, kinds[size_t(kind)]);
}

void Recycled::put(nb::object& a, Kind& kind) {
    if (Py_REFCNT(a.ptr()) != 1 || !whole(a.ptr()) || !kind.suits(reinterpret_cast<PyArrayObject*>(a.ptr())) ||
        bytes + kind.bytes > MOST)
        return;
    kind.free.push_back(a.release().ptr());
    bytes += kind.bytes;
}

}  // namespace fw::deferral
