// Whether a call is one that was recorded: the function, and of each argument its kind.
#include <algorithm>
#include <cstring>

#include "bind/deferral/tape.h"

namespace fw::deferral {
namespace {

constexpr Py_ssize_t SNAPSHOT = 1 << 16;  // bytes of shared memory that are copied, to see whether it was changed

bool same_constant(PyObject* a, PyObject* b) {
    if (a == b) return true;
    if (Py_TYPE(a) != Py_TYPE(b)) return false;
    if (PyFloat_CheckExact(a)) {
        const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
        return std::memcmp(&x, &y, sizeof x) == 0;
    }
    if (PyLong_CheckExact(a)) {
        int over_a = 0, over_b = 0;
        const long long x = PyLong_AsLongLongAndOverflow(a, &over_a), y = PyLong_AsLongLongAndOverflow(b, &over_b);
        return !over_a && !over_b && x == y;
    }
    if (PyUnicode_CheckExact(a)) return PyUnicode_Compare(a, b) == 0;
    return false;
}

// Whether nobody but the tensor has the memory; shared memory is copied if it is small, to be compared later.
bool keep(External& e) {
    auto* a = reinterpret_cast<PyArrayObject*>(e.array.ptr());
    if (Py_REFCNT(a) == 2 && !PyArray_BASE(a)) return true;  // the tensor and `e`
    if (PyArray_NBYTES(a) > SNAPSHOT) return false;
    PyObject* copy = PyArray_NewCopy(a, NPY_CORDER);
    if (!copy) {
        PyErr_Clear();
        return false;
    }
    e.copy = nb::steal(copy);
    return true;
}

// The array in row-major order: itself, or a copy.
nb::object in_rows(const nb::object& array) {
    auto* a = reinterpret_cast<PyArrayObject*>(array.ptr());
    return PyArray_IS_C_CONTIGUOUS(a) ? array : nb::steal(PyArray_NewCopy(a, NPY_CORDER));
}

}  // namespace

bool unchanged(const External& e) {
    if (!e.copy.is_valid()) return true;
    nb::object now = in_rows(e.array);
    if (!now.is_valid()) {
        PyErr_Clear();
        return false;
    }
    auto *a = reinterpret_cast<PyArrayObject*>(now.ptr()), *b = reinterpret_cast<PyArrayObject*>(e.copy.ptr());
    return std::memcmp(PyArray_DATA(a), PyArray_DATA(b), size_t(PyArray_NBYTES(a))) == 0;
}

namespace {

bool add_external(Tape* t, PyObject* tensor) {
    External e;
    e.tensor = nb::borrow(tensor);
    e.array = nb::borrow(slot(tensor, offsets[0]));
    if (PyObject* node = slot(tensor, offsets[1]); node && node != Py_None) e.node = nb::borrow(node);
    e.version = version_of(tensor);
    if (!keep(e)) return false;
    if (e.copy.is_valid() && !t->recording)  // copies of one memory are of one moment
        for (const External& other : *t->externals)
            if (!unchanged(other)) return false;
    t->externals->push_back(std::move(e));
    return true;
}

// A key that was drawn, as something from outside whose array nobody writes.
bool add_drawn(Tape* t, PyObject* key) {
    nb::object array = nb::steal(PyObject_GetAttr(key, word_array));
    if (!array.is_valid() || !PyArray_CheckExact(array.ptr())) {
        PyErr_Clear();
        return false;
    }
    External e;
    e.tensor = nb::borrow(key);
    e.array = array;
    e.taken = true;
    t->externals->push_back(std::move(e));
    return true;
}

}  // namespace

Py_ssize_t seen(const Tape* t, PyObject* tensor) {
    const auto& all = *t->externals;
    for (size_t i = 0; i < all.size(); ++i)
        if (all[i].tensor.ptr() == tensor) return Py_ssize_t(i);
    return -1;
}

Promise* promise_of(const Tape* t, PyObject* tensor) {
    auto* p = reinterpret_cast<Promise*>(slot(tensor, at_promise));
    return p && p->tape == t ? p : nullptr;
}

namespace {

// Whether it is that tensor, as it was; what a recorded call takes is what it finds.
bool is_same(const Tape* t, const External& e, PyObject* arg) {
    if (e.tensor.ptr() != arg) return false;
    if (t->recording) return true;
    PyObject* node = slot(arg, offsets[1]);
    return slot(arg, offsets[0]) == e.array.ptr() &&
           (e.node.is_valid() ? node == e.node.ptr() : !node || node == Py_None) && unchanged(e);
}

bool matches(Tape* t, const Spec& s, PyObject* arg) {
    switch (s.kind) {
    case Spec::CONSTANT: return same_constant(s.object.ptr(), arg);
    case Spec::VALUE: {
        if (Py_TYPE(arg) != tensor_type) return false;
        Promise* p = promise_of(t, arg);
        return p && p->index == s.index;
    }
    case Spec::EXTERNAL: {
        if (Py_TYPE(arg) != (s.type ? s.type : Py_TYPE(arg)) || !is_tensor(arg) || promise_of(t, arg)) return false;
        if (!s.first) return size_t(s.index) < t->externals->size() && is_same(t, (*t->externals)[s.index], arg);
        PyArrayObject* a = array_of(arg);
        if (!a || reinterpret_cast<PyObject*>(PyArray_DESCR(a)) != s.dtype.ptr() || PyArray_NDIM(a) != s.ndim ||
            place_of(arg) != s.place || (PyArray_FLAGS(a) & NPY_ARRAY_BEHAVED) != s.flags)
            return false;
        for (int d = 0; d < s.ndim; ++d)
            if (PyArray_DIM(a, d) != s.dims[d] || PyArray_STRIDE(a, d) != s.strides[d]) return false;
        return seen(t, arg) < 0 && add_external(t, arg);
    }
    case Spec::TUPLE:
    case Spec::LIST: {
        if (reinterpret_cast<PyObject*>(Py_TYPE(arg)) != s.object.ptr()) return false;
        const Py_ssize_t n = Py_SIZE(arg);
        if (n != Py_ssize_t(s.items.size())) return false;
        for (Py_ssize_t i = 0; i < n; ++i)
            if (!matches(t, s.items[i], s.kind == Spec::LIST ? PyList_GET_ITEM(arg, i) : PyTuple_GET_ITEM(arg, i)))
                return false;
        return true;
    }
    case Spec::DICT: {
        if (!PyDict_CheckExact(arg) || PyDict_GET_SIZE(arg) != Py_ssize_t(s.items.size())) return false;
        for (size_t i = 0; i < s.items.size(); ++i) {
            PyObject* value = PyDict_GetItemWithError(arg, PyTuple_GET_ITEM(s.object.ptr(), Py_ssize_t(i)));
            if (!value || !matches(t, s.items[i], value)) return false;
        }
        return true;
    }
    case Spec::DRAWN: return Py_TYPE(arg) == drawn_type && seen(t, arg) < 0 && add_drawn(t, arg);
    case Spec::SLICE: {
        if (!PySlice_Check(arg)) return false;
        auto* x = reinterpret_cast<PySliceObject*>(arg);
        return matches(t, s.items[0], x->start) && matches(t, s.items[1], x->stop) && matches(t, s.items[2], x->step);
    }
    }
    return false;
}

}  // namespace

bool describe(Tape* t, PyObject* arg, Spec& s) {
    if (is_tensor(arg)) {
        if (Promise* p = promise_of(t, arg)) {
            s.kind = Spec::VALUE;
            s.index = p->index;
            return Py_TYPE(arg) == tensor_type;
        }
        PyArrayObject* a = array_of(arg);
        if (!a || PyArray_NDIM(a) > 8 || PyTypeNum_ISUSERDEF(PyArray_TYPE(a))) return false;
        s.kind = Spec::EXTERNAL;
        s.index = seen(t, arg);
        s.type = Py_TYPE(arg);
        if (s.index >= 0) return true;
        s.index = Py_ssize_t(t->externals->size());
        s.first = true;
        s.dtype = nb::borrow(reinterpret_cast<PyObject*>(PyArray_DESCR(a)));
        s.ndim = PyArray_NDIM(a);
        s.flags = PyArray_FLAGS(a) & NPY_ARRAY_BEHAVED;
        s.place = place_of(arg);
        std::copy(PyArray_DIMS(a), PyArray_DIMS(a) + s.ndim, s.dims);
        std::copy(PyArray_STRIDES(a), PyArray_STRIDES(a) + s.ndim, s.strides);
        return add_external(t, arg);
    }
    if (PyTuple_Check(arg) || PyList_CheckExact(arg)) {
        if (Py_TYPE(arg)->tp_dictoffset) return false;  // a class of somebody's, which may have more than its items
        s.kind = PyTuple_Check(arg) ? Spec::TUPLE : Spec::LIST;
        s.object = nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(arg)));
        for (Py_ssize_t i = 0; i < Py_SIZE(arg); ++i) {
            s.items.emplace_back();
            PyObject* item = s.kind == Spec::LIST ? PyList_GET_ITEM(arg, i) : PyTuple_GET_ITEM(arg, i);
            if (!describe(t, item, s.items.back())) return false;
        }
        return true;
    }
    if (PyDict_CheckExact(arg)) {
        s.kind = Spec::DICT;
        s.object = nb::steal(PySequence_Tuple(arg));
        for (Py_ssize_t i = 0; s.object.is_valid() && i < PyTuple_GET_SIZE(s.object.ptr()); ++i) {
            PyObject* value = PyDict_GetItemWithError(arg, PyTuple_GET_ITEM(s.object.ptr(), i));
            s.items.emplace_back();
            if (!value || !describe(t, value, s.items.back())) return false;
        }
        return s.object.is_valid();
    }
    if (Py_TYPE(arg) == drawn_type) {
        s.kind = Spec::DRAWN;
        s.index = Py_ssize_t(t->externals->size());
        return seen(t, arg) < 0 && add_drawn(t, arg);
    }
    if (PySlice_Check(arg)) {
        auto* x = reinterpret_cast<PySliceObject*>(arg);
        s.kind = Spec::SLICE;
        for (PyObject* part : {x->start, x->stop, x->step}) {
            s.items.emplace_back();
            if (!describe(t, part, s.items.back()) || s.items.back().kind != Spec::CONSTANT) return false;
        }
        return true;
    }
    s.object = nb::borrow(arg);
    return arg == Py_None || arg == Py_Ellipsis || PyBool_Check(arg) || PyFloat_CheckExact(arg) ||
           PyLong_CheckExact(arg) || PyUnicode_CheckExact(arg) ||
           std::find(single_types.begin(), single_types.end(), Py_TYPE(arg)) != single_types.end();
}

PyObject* enabled_of(const Tape* t) {
    PyObject* found = PyDict_GetItemWithError(t->state, word_enabled);
    return found ? found : Py_True;  // the default of the class
}

bool usual(const Tape* t) {
    for (const Condition& c : *t->conditions) {
        PyObject* now = PyDict_GetItemWithError(c.dict.ptr(), c.key.ptr());
        if (c.expected.is_valid() ? now != c.expected.ptr() : now && now != Py_None) return false;
    }
    return true;
}

bool in_range(const Tape* t, const Range& r) {
    nb::object rows = in_rows((*t->externals)[r.external].array);
    if (!rows.is_valid()) {
        PyErr_Clear();
        return false;
    }
    auto* a = reinterpret_cast<PyArrayObject*>(rows.ptr());
    if (PyArray_TYPE(a) != NPY_INT64) return false;
    const auto* x = static_cast<const int64_t*>(PyArray_DATA(a));
    bool good = true;
    for (npy_intp i = 0, n = PyArray_SIZE(a); i < n; ++i) good &= x[i] >= r.low && x[i] < r.high;
    return good;
}

namespace {

bool call_matches(Tape* t, const Call* c, PyObject* door, PyObject* args, PyObject* keywords, PyObject* enabled) {
    if (c->door != door || c->enabled != enabled) return false;
    const Py_ssize_t n = PyTuple_GET_SIZE(args), named = keywords ? PyDict_GET_SIZE(keywords) : 0;
    if (n + named != Py_ssize_t(c->specs->size()) || PyTuple_GET_SIZE(c->keys) != named) return false;
    const size_t before = t->externals->size();
    bool good = true;
    for (Py_ssize_t i = 0; i < n && good; ++i) good = matches(t, (*c->specs)[i], PyTuple_GET_ITEM(args, i));
    if (named && good) {
        Py_ssize_t at = 0, i = 0;
        PyObject *key, *value;
        while (good && PyDict_Next(keywords, &at, &key, &value)) {
            good = PyUnicode_Compare(PyTuple_GET_ITEM(c->keys, i), key) == 0 && matches(t, (*c->specs)[n + i], value);
            ++i;
        }
    }
    if (!good) t->externals->resize(before);
    return good;
}

}  // namespace

Call* child_for(Tape* t, PyObject* door, PyObject* args, PyObject* keywords) {
    PyObject* enabled = enabled_of(t);
    for (Call* c : *t->cursor->children)
        if (call_matches(t, c, door, args, keywords, enabled)) return c;
    return nullptr;
}

}  // namespace fw::deferral
