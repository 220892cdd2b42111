// The parameters of an optimizer's step: checks, and which memory they share.
#include <map>

#include "optim/optim.h"

namespace fw::optim {
namespace {

PyArrayObject* as_array(PyObject* o) {
    bool good = PyArray_CheckExact(o) && PyArray_ISBEHAVED_RO(reinterpret_cast<PyArrayObject*>(o));
    return good ? reinterpret_cast<PyArrayObject*>(o) : nullptr;
}

bool same_layout(PyArrayObject* a, PyArrayObject* b) {
    if (PyArray_TYPE(a) != PyArray_TYPE(b) || !PyArray_SAMESHAPE(a, b)) return false;
    int both = PyArray_FLAGS(a) & PyArray_FLAGS(b);
    return both & (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS);
}

// One parameter from its objects; false where the kernels cannot take it.
bool read(PyObject* const* objects, int count, Parameter& one) {
    PyArrayObject* p = as_array(objects[0]);
    if (!p || (PyArray_TYPE(p) != NPY_FLOAT && PyArray_TYPE(p) != NPY_DOUBLE)) return false;
    for (int k = 0; k < count; ++k) {
        PyArrayObject* a = as_array(objects[k]);
        if (!a || !same_layout(p, a) || (k != 1 && !PyArray_ISWRITEABLE(a))) return false;
        one.arrays[k] = PyArray_BYTES(a);
    }
    one.size = PyArray_SIZE(p);
    one.wide = PyArray_TYPE(p) == NPY_DOUBLE;
    return true;
}

struct Range {
    const char *begin, *end;
    bool operator<(const Range& o) const { return begin < o.begin; }
    bool operator==(const Range& o) const { return begin == o.begin && end == o.end; }
};

// What the updates write, sorted; the last few such lists, since they rarely change from step to step.
struct Written {
    std::vector<Range> given, sorted;
    bool disjoint;
};

const Written& written(std::vector<Range> given) {
    constexpr size_t MOST = 64;
    static auto& known = *new std::map<const char*, Written>;  // used with Python's lock held
    auto found = known.find(given[0].begin);
    if (found != known.end() && found->second.given == given) return found->second;
    if (known.size() >= MOST) known.clear();
    Written fresh{given, std::move(given), true};
    std::sort(fresh.sorted.begin(), fresh.sorted.end());
    for (size_t i = 1; i < fresh.sorted.size(); ++i)
        if (fresh.sorted[i].begin < fresh.sorted[i - 1].end) fresh.disjoint = false;
    return known[fresh.given[0].begin] = std::move(fresh);
}

// Whether no memory that one update writes is used by another; a gradient may be its parameter itself.
bool independent(const std::vector<Parameter>& all, int count) {
    std::vector<Range> ranges;
    ranges.reserve(all.size() * size_t(count));
    for (const Parameter& one : all)
        for (int k = 0; k < count; ++k)
            if (k != 1 && one.size) ranges.push_back({one.arrays[k], one.arrays[k] + one.size * (one.wide ? 8 : 4)});
    if (ranges.empty()) return true;
    const Written& w = written(std::move(ranges));
    if (!w.disjoint) return false;
    for (const Parameter& one : all) {
        if (count == 1 || !one.size || one.arrays[1] == one.arrays[0]) continue;
        Range g{one.arrays[1], one.arrays[1] + one.size * (one.wide ? 8 : 4)};
        auto after = std::upper_bound(w.sorted.begin(), w.sorted.end(), g);
        if (after != w.sorted.end() && after->begin < g.end) return false;
        if (after != w.sorted.begin() && (after - 1)->end > g.begin) return false;
    }
    return true;
}

// Whether every gradient has the shape and dtype of its parameter, and all parameters are NumPy arrays that
// may be written.
bool gradients_fit(nb::list params, nb::list grads) {
    size_t n = params.size();
    if (grads.size() != n) return false;
    for (size_t i = 0; i < n; ++i) {
        PyArrayObject* p = as_array(PyList_GET_ITEM(params.ptr(), Py_ssize_t(i)));
        PyArrayObject* g = as_array(PyList_GET_ITEM(grads.ptr(), Py_ssize_t(i)));
        if (!p || !g || !PyArray_ISWRITEABLE(p) || !PyArray_SAMESHAPE(p, g)) return false;
        if (PyArray_DESCR(p) != PyArray_DESCR(g)) return false;
    }
    return true;
}

}  // namespace

Work gather(nb::list arrays, int count) {
    Work work;
    if (arrays.size() % size_t(count)) throw nb::value_error("some parameter has not all of its arrays");
    work.keep = nb::steal(PyList_GetSlice(arrays.ptr(), 0, PY_SSIZE_T_MAX));
    if (!work.keep.is_valid()) throw nb::python_error();
    size_t n = arrays.size() / size_t(count);
    work.all.reserve(n);
    work.ends.reserve(n);
    int64_t end = 0;
    PyObject* const* objects = PySequence_Fast_ITEMS(work.keep.ptr());
    for (size_t i = 0; i < n; ++i) {
        Parameter one;
        if (!read(objects + i * size_t(count), count, one)) {
            work.skipped.push_back(int64_t(i));
            continue;
        }
        end += one.size;
        work.bytes += one.size * count * (one.wide ? 8 : 4);
        work.all.push_back(one);
        work.ends.push_back(end);
    }
    if (!independent(work.all, count)) {
        work = {};
        for (size_t i = 0; i < n; ++i) work.skipped.push_back(int64_t(i));
    }
    return work;
}

bool gather_rows(nb::list arrays, int count, Array rows, RowsWork& work) {
    if (arrays.size() != size_t(count)) throw nb::value_error("a parameter, its gradient and its states were wanted");
    work.keep = nb::steal(PyList_GetSlice(arrays.ptr(), 0, PY_SSIZE_T_MAX));
    if (!work.keep.is_valid()) throw nb::python_error();
    PyArrayObject* p = as_array(PyList_GET_ITEM(work.keep.ptr(), 0));
    if (!p || (PyArray_TYPE(p) != NPY_FLOAT && PyArray_TYPE(p) != NPY_DOUBLE) || PyArray_NDIM(p) < 1) return false;
    if (!rows.is<int64_t>() || rows.ndim() != 1 || !rows.contiguous()) return false;
    const int64_t n = rows.size(), all = PyArray_DIM(p, 0);
    std::vector<Range> ranges;
    for (int k = 0; k < count; ++k) {
        PyArrayObject* a = as_array(PyList_GET_ITEM(work.keep.ptr(), k));
        if (!a || PyArray_TYPE(a) != PyArray_TYPE(p) || PyArray_NDIM(a) != PyArray_NDIM(p) ||
            !PyArray_IS_C_CONTIGUOUS(a) || (k != 1 && !PyArray_ISWRITEABLE(a)) ||
            PyArray_DIM(a, 0) != (k == 1 ? n : all) ||
            !std::equal(PyArray_DIMS(a) + 1, PyArray_DIMS(a) + PyArray_NDIM(a), PyArray_DIMS(p) + 1))
            return false;
        work.one.arrays[k] = PyArray_BYTES(a);
        ranges.push_back({PyArray_BYTES(a), PyArray_BYTES(a) + PyArray_NBYTES(a)});
    }
    std::sort(ranges.begin(), ranges.end());
    for (size_t k = 1; k < ranges.size(); ++k)
        if (ranges[k].begin < ranges[k - 1].end) return false;
    work.one.wide = PyArray_TYPE(p) == NPY_DOUBLE;
    work.width = all ? PyArray_SIZE(p) / all : 0;
    work.rows.assign(rows.data<int64_t>(), rows.data<int64_t>() + n);
    for (int64_t i = 0; i < n; ++i)
        if (work.rows[size_t(i)] < 0 || work.rows[size_t(i)] >= all || (i && work.rows[size_t(i)] <= work.rows[size_t(i) - 1]))
            return false;
    return true;
}

double Numbers::wide(const char* name) {
    constexpr double EXACT = 9007199254740992.0;  // integers up to it are numbers of float64
    if (!given_) return read_[next_++];
    PyObject* o = PyDict_GetItemString(given_, name);
    if (!o) throw nb::key_error(name);
    double value;
    if (PyFloat_CheckExact(o)) {
        value = PyFloat_AS_DOUBLE(o);
    } else {
        if (!PyLong_CheckExact(o) && !PyBool_Check(o)) throw NotPythons();
        value = PyLong_AsDouble(o);
        if (value == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            throw NotPythons();
        }
        if (value < -EXACT || value > EXACT) throw NotPythons();
    }
    read_.push_back(value);
    return value;
}

FW_BIND(m) { m.def("gradients_fit", &gradients_fit); }

}  // namespace fw::optim
