// Views of tensors from their arguments to the finished tensor: what Python does for them in a dozen steps.
//
// Each function takes the tensor, the arguments as they came, and the record that a view is a call of. It answers
// NotImplemented wherever anything is out of the ordinary (another kind of tensor or array, an interceptor, wrong
// arguments, memory that would have to be copied): Python then goes the long way, and says what is wrong. What is
// usual in a program is declined without an exception, which costs more than the view.
#include <algorithm>
#include <cstring>

#include "bind/move/copy.h"
#include "bind/tensors/tensors.h"

namespace fw::tensors {

PyTypeObject* more_type = nullptr;
Py_ssize_t at_base, at_links, at_views, at_followed;

namespace {

Py_ssize_t at_grad, at_leaf;

PyObject* whole;
PyObject *word_keeps_nothing, *word_x_shape, *word_shape, *word_dims,
    *word_size, *word_key, *word_offset, *word_dim, *word_step, *word_stride, *word_layout;
constexpr Py_ssize_t PRUNE_FROM = 32;  // views that a base remembers before it looks which are alive

struct Declines {};  // thrown where Python goes on
[[noreturn]] void decline() { throw Declines(); }
nb::object declined() { return nb::object(); }  // the same as a result

// A tensor that a view may be taken of here, and how its elements lie.
struct Source {
    PyObject* x;
    PyArrayObject* a = nullptr;
    nb::object owner;  // of `a`: what is called on the way may give the tensor another array
    bool recorded = false;

    explicit Source(PyObject* given) : x(given) {
        PyArrayObject* array = array_of(x);
        if (!array || here_of(quiet, word_run).is_none()) return;
        if (has_node(x)) {
            const nb::object settle = here_of(quiet, word_settle);  // what was put off has its node first
            if (!settle.is_none()) taken(PyObject_CallNoArgs(settle.ptr()));
            const nb::object enabled = here_of(modes, word_enabled);
            if (enabled.ptr() != Py_True && enabled.ptr() != Py_False) return;
            recorded = enabled.ptr() == Py_True;
        }
        owner = nb::borrow(reinterpret_cast<PyObject*>(array));
        a = array;
    }
    bool usable() const { return a && PyArray_SIZE(a); }
    int ndim() const { return PyArray_NDIM(a); }
    npy_intp size(int d) const { return PyArray_DIM(a, d); }
    npy_intp stride(int d) const { return PyArray_STRIDE(a, d); }
    int dim(PyObject* given, int ndim) const {
        if (!PyLong_CheckExact(given)) decline();
        const Py_ssize_t d = PyLong_AsSsize_t(given);
        if (d == -1 && PyErr_Occurred()) PyErr_Clear(), decline();
        if (d < -ndim || d >= ndim) decline();
        return int(d < 0 ? d + ndim : d);
    }
    int dim(PyObject* given) const { return dim(given, ndim()); }
};

// How the elements of a view lie.
struct Seen {
    int ndim = 0;
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS], offset = 0;
    bool writeable = true;

    void add(npy_intp size, npy_intp stride) {
        if (ndim == NPY_MAXDIMS) decline();
        shape[ndim] = size, strides[ndim++] = stride;
    }
    // Elements one after the other; false where their number is another.
    bool in_rows(npy_intp count, npy_intp itemsize) {
        for (int d = ndim; d-- > 0;) {
            strides[d] = itemsize;
            if (__builtin_mul_overflow(itemsize, shape[d], &itemsize)) return false;
            if (d && count % shape[d]) return false;
            count /= shape[d];
        }
        return count == 1;
    }
};

nb::object numbers_of(const npy_intp* numbers, int n) {
    nb::object made = taken(PyTuple_New(n));
    for (int i = 0; i < n; ++i) PyTuple_SET_ITEM(made.ptr(), i, taken(PyLong_FromSsize_t(numbers[i])).release().ptr());
    return made;
}

// What was given as `*sizes` or as one tuple or list, as a tuple of ints, and the ints; those of a tensor are its shape's.
nb::object sizes_of(PyObject* given, npy_intp* to, int& n) {
    if (PyArrayObject* a = array_of(given)) {
        n = PyArray_NDIM(a);
        std::copy(PyArray_DIMS(a), PyArray_DIMS(a) + n, to);
        return numbers_of(to, n);
    }
    if (PyTuple_Check(given) && PyTuple_GET_SIZE(given) == 1) {
        PyObject* only = PyTuple_GET_ITEM(given, 0);
        if (PyTuple_Check(only) || PyList_CheckExact(only)) given = only;
    }
    if (!PyTuple_Check(given) && !PyList_CheckExact(given)) decline();
    nb::object sizes = taken(PySequence_Tuple(given));
    if (PyTuple_GET_SIZE(sizes.ptr()) > NPY_MAXDIMS) decline();
    n = int(PyTuple_GET_SIZE(sizes.ptr()));
    for (int i = 0; i < n; ++i) {
        PyObject* item = PyTuple_GET_ITEM(sizes.ptr(), i);
        if (!PyLong_CheckExact(item)) decline();
        to[i] = PyLong_AsSsize_t(item);
        if (to[i] == -1 && PyErr_Occurred()) PyErr_Clear(), decline();
    }
    return sizes;
}

nb::object new_more() {
    nb::object more = taken(more_type->tp_alloc(more_type, 0));
    for (Py_ssize_t at : {at_grad, at_leaf, at_base, at_links, at_views}) slot(more.ptr(), at) = Py_NewRef(Py_None);
    slot(more.ptr(), at_followed) = Py_NewRef(Py_False);
    return more;
}

nb::object more_of(PyObject* x) {
    if (!PyObject_TypeCheck(x, tensor_type)) throw nb::type_error("the base of a view must be a Tensor");
    PyObject*& more = slot(x, at_more);
    if (!more || more == Py_None) Py_XSETREF(more, new_more().release().ptr());
    return nb::borrow(more);
}

// Python's collector does not look at it again. Only for what holds numbers, names of settings and records, which live as
// long as the program: nothing there leads back to a tensor.
void leave_to_counts(nb::handle o) {
    if (PyObject_GC_IsTracked(o.ptr())) PyObject_GC_UnTrack(o.ptr());
}

bool left_to_counts(PyObject* o) { return !PyObject_IS_GC(o) || !PyObject_GC_IsTracked(o); }

// What a view is made with: the name of its only setting and that, or None and a dict of all.
struct Settings {
    PyObject* word = Py_None;
    nb::object value;
    bool only_numbers = false;
};

bool is_dead(PyObject* ref) {
#if PY_VERSION_HEX < 0x030d0000
    return PyWeakref_CheckRef(ref) && PyWeakref_GET_OBJECT(ref) == Py_None;
#else
    PyObject* living = nullptr;
    if (!PyWeakref_CheckRef(ref) || PyWeakref_GetRef(ref, &living) < 0) return false;
    Py_XDECREF(living);
    return !living;
#endif
}

// Only the references to those that are alive, in the same list. No other code runs meanwhile: nobody's end is told to what holds no callback.
void leave_out_dead(PyObject* refs) {
    Py_ssize_t living = 0, count = PyList_GET_SIZE(refs);
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* ref = PyList_GET_ITEM(refs, i);
        if (is_dead(ref)) continue;
        PyList_SET_ITEM(refs, i, PyList_GET_ITEM(refs, living));
        PyList_SET_ITEM(refs, living++, ref);
    }
    if (PyList_SetSlice(refs, living, count, nullptr) < 0) throw nb::python_error();
}

// `aliases.link`, for views that are taken of one tensor: what it has for all of them is asked for once.
class Links {
    nb::object counter, base, links, source, views;

public:
    explicit Links(PyObject* x) : counter(counter_of(x)), source(more_of(x)) {
        base = nb::borrow(part_of(source.ptr(), at_base)), links = nb::none();
        if (base.is_none()) base = nb::borrow(x);
        else links = nb::borrow(part_of(source.ptr(), at_links)), source = more_of(base.ptr());
        views = nb::borrow(part_of(source.ptr(), at_views));
        if (views.is_none()) {
            views = taken(PyList_New(0));
            put_in(source.ptr(), at_views, views.ptr());
        } else if (!PyList_CheckExact(views.ptr())) {
            throw nb::type_error("the views of a tensor must be a list of references");
        }
    }
    void add(PyObject* view, PyObject* op, const Settings& settings) {
        add(view, taken(PyTuple_Pack(4, links.ptr(), op, settings.word, settings.value.ptr())), settings.only_numbers);
    }
    // A range of a dimension: its key is made where it is asked for.
    void add(PyObject* view, PyObject* op, const nb::object& dim, const nb::object& start, const nb::object& stop) {
        add(view, taken(PyTuple_Pack(5, links.ptr(), op, dim.ptr(), start.ptr(), stop.ptr())), true);
    }

private:
    void add(PyObject* view, nb::object chain, bool only_numbers) {
        if (only_numbers && (links.is_none() || left_to_counts(links.ptr()))) leave_to_counts(chain);
        nb::object more = new_more();
        put_in(more.ptr(), at_base, base.ptr());
        put_in(more.ptr(), at_links, chain.ptr());
        slot(view, at_counter) = Py_NewRef(counter.ptr());
        slot(view, at_more) = more.release().ptr();
        if (slot(view, at_node) != Py_None) put_in(source.ptr(), at_followed, Py_True);
        nb::object ref = taken(PyWeakref_NewRef(view, nullptr));
        leave_to_counts(ref);  // it holds nothing
        if (PyList_Append(views.ptr(), ref.ptr()) < 0) throw nb::python_error();
        const Py_ssize_t count = PyList_GET_SIZE(views.ptr());
        if (count >= PRUNE_FROM && !(count & (count - 1))) leave_out_dead(views.ptr());
    }
};

bool only_numbers(PyObject* o) {
    if (PySlice_Check(o)) {
        auto* slice = reinterpret_cast<PySliceObject*>(o);
        return only_numbers(slice->start) && only_numbers(slice->stop) && only_numbers(slice->step);
    }
    if (!PyTuple_CheckExact(o)) return o == Py_None || o == Py_Ellipsis || PyLong_CheckExact(o);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
        if (!only_numbers(PyTuple_GET_ITEM(o, i))) return false;
    return true;
}

Settings settings_of(PyObject* word, nb::object setting) {
    const bool numbers = only_numbers(setting.ptr());
    if (numbers && PyTuple_CheckExact(setting.ptr())) leave_to_counts(setting);
    return {word, std::move(setting), numbers};
}

Settings settings_of(std::initializer_list<std::pair<PyObject*, nb::object>> given) {
    Settings made{Py_None, taken(PyDict_New()), true};
    for (const auto& [word, setting] : given) {
        const Settings one = settings_of(word, setting);
        if (PyDict_SetItem(made.value.ptr(), word, setting.ptr()) < 0) throw nb::python_error();
        made.only_numbers = made.only_numbers && one.only_numbers;
    }
    if (made.only_numbers) leave_to_counts(made.value);
    return made;
}

// An array of these elements of the memory of `s`; `type`: of what they are, if not of what s is.
nb::object array_over(const Source& s, const Seen& seen, int type = -1) {
    return seen_as(s.a, seen.ndim, seen.shape, seen.strides, seen.offset, type, seen.writeable);
}

// The tensor over these elements of the memory of `s`, as a call of `op`.
nb::object view(const Source& s, const Seen& seen, PyObject* op, const Settings& settings, int type = -1) {
    nb::object array = array_over(s, seen, type), node = nb::none();
    if (s.recorded) {
        nb::object kept = nb::none(), edges = taken(PyTuple_Pack(1, slot(s.x, at_node)));
        if (asked(op, word_keeps_nothing).ptr() != Py_True)
            kept = settings_of({{word_x_shape, numbers_of(PyArray_DIMS(s.a), s.ndim())}}).value;
        const nb::object all = settings.word == Py_None ? settings.value : settings_of({{settings.word, settings.value}}).value;
        node = make_node(op, edges.ptr(), kept.ptr(), Py_None, all.ptr(), Py_None);
    }
    nb::object result = bare_tensor(std::move(array), std::move(node));
    Links(s.x).add(result.ptr(), op, settings);
    return result;
}

npy_intp number(PyObject* given) {
    if (!PyLong_CheckExact(given)) decline();
    const Py_ssize_t n = PyLong_AsSsize_t(given);
    if (n == -1 && PyErr_Occurred()) PyErr_Clear(), decline();
    return n;
}

// The strides of the elements of `s` in another shape of as many; false where they do not lie so.
bool in_steps(const Source& s, Seen& seen) {
    npy_intp sizes[NPY_MAXDIMS], steps[NPY_MAXDIMS];
    int n = 0, from = 0, to = 0;
    for (int d = 0; d < s.ndim(); ++d)
        if (s.size(d) != 1) sizes[n] = s.size(d), steps[n++] = s.stride(d);
    while (from < n && to < seen.ndim) {  // the least dimensions of both that have as many elements
        int from_end = from + 1, to_end = to + 1;
        npy_intp there = sizes[from], here = seen.shape[to];
        while (here != there) {
            if (here < there) here *= seen.shape[to_end++];
            else there *= sizes[from_end++];
        }
        for (int d = from; d + 1 < from_end; ++d)
            if (steps[d] != sizes[d + 1] * steps[d + 1]) return false;
        npy_intp step = steps[from_end - 1];
        for (int d = to_end; d-- > to; step *= seen.shape[d]) seen.strides[d] = step;
        from = from_end, to = to_end;
    }
    for (; to < seen.ndim; ++to) seen.strides[to] = PyArray_ITEMSIZE(s.a);  // of size 1
    return true;
}

// Another shape, where that takes no copy. One size may be -1.
nb::object reshaped(const Source& s, nb::object sizes, Seen& seen, PyObject* op) {
    npy_intp known = 1;
    int open = -1;
    const npy_intp count = PyArray_SIZE(s.a);
    for (int d = 0; d < seen.ndim; ++d) {
        if (seen.shape[d] == -1 && open < 0) open = d;
        else if (seen.shape[d] < 1 || __builtin_mul_overflow(known, seen.shape[d], &known)) decline();
    }
    if (open >= 0) {
        if (count % known) decline();
        seen.shape[open] = count / known;
    } else if (known != count) {
        decline();
    }
    if (!PyArray_IS_C_CONTIGUOUS(s.a)) {
        if (!in_steps(s, seen)) return declined();
    } else if (!seen.in_rows(count, PyArray_ITEMSIZE(s.a))) {
        decline();
    }
    return view(s, seen, op, settings_of(word_shape, std::move(sizes)));
}

nb::object take_shape(const Source& s, PyObject* const* args) {
    Seen seen;
    nb::object sizes = sizes_of(args[1], seen.shape, seen.ndim);
    return reshaped(s, std::move(sizes), seen, args[2]);
}

// Without dimensions of size 1, or with one more: the others lie as before, with gaps or not.
nb::object resized(const Source& s, const Seen& seen, PyObject* op) {
    return view(s, seen, op, settings_of(word_shape, numbers_of(seen.shape, seen.ndim)));
}

nb::object unsqueeze(const Source& s, PyObject* const* args) {
    const int at = s.dim(args[1], s.ndim() + 1);
    Seen seen;
    for (int d = 0; d <= s.ndim(); ++d) {
        if (d == at) seen.add(1, d < s.ndim() ? s.stride(d) * s.size(d) : PyArray_ITEMSIZE(s.a));
        if (d < s.ndim()) seen.add(s.size(d), s.stride(d));
    }
    return resized(s, seen, args[2]);
}

nb::object squeeze(const Source& s, PyObject* const* args) {
    const bool all = args[1] == Py_None;
    const int at = all ? -1 : s.dim(args[1]);
    Seen seen;
    for (int d = 0; d < s.ndim(); ++d)
        if (s.size(d) != 1 || !(all || d == at)) seen.add(s.size(d), s.stride(d));
    return resized(s, seen, args[2]);
}

nb::object flatten(const Source& s, PyObject* const* args) {
    const int start = s.dim(args[1]), end = s.dim(args[2]);
    if (start >= end) return declined();
    Seen seen;
    for (int d = 0; d < start; ++d) seen.add(s.size(d), 0);
    npy_intp length = 1;
    for (int d = start; d <= end; ++d) length *= s.size(d);
    seen.add(length, 0);
    for (int d = end + 1; d < s.ndim(); ++d) seen.add(s.size(d), 0);
    nb::object sizes = numbers_of(seen.shape, seen.ndim);
    return reshaped(s, std::move(sizes), seen, args[3]);
}

nb::object ordered(const Source& s, const npy_intp* order, nb::object dims, PyObject* op) {
    Seen seen;
    for (int d = 0; d < s.ndim(); ++d) seen.add(s.size(int(order[d])), s.stride(int(order[d])));
    return view(s, seen, op, settings_of(word_dims, std::move(dims)));
}

nb::object permute(const Source& s, PyObject* const* args) {
    npy_intp order[NPY_MAXDIMS];
    int n;
    nb::object dims = sizes_of(args[1], order, n);
    if (n != s.ndim()) decline();
    bool used[NPY_MAXDIMS] = {}, negative = false;
    for (int d = 0; d < n; ++d) {
        if (order[d] < 0) order[d] += n, negative = true;
        if (order[d] < 0 || order[d] >= n || used[order[d]]) decline();
        used[order[d]] = true;
    }
    if (negative) dims = numbers_of(order, n);
    return ordered(s, order, std::move(dims), args[2]);
}

nb::object transpose(const Source& s, PyObject* const* args) {
    const int a = s.dim(args[1]), b = s.dim(args[2]);
    npy_intp order[NPY_MAXDIMS];
    for (int d = 0; d < s.ndim(); ++d) order[d] = d == a ? b : d == b ? a : d;
    return ordered(s, order, numbers_of(order, s.ndim()), args[3]);
}

// One dimension moved to another place, the others in order.
nb::object move_dim(const Source& s, PyObject* const* args) {
    const int from = s.dim(args[1]), to = s.dim(args[2]);
    npy_intp order[NPY_MAXDIMS];
    for (int d = 0, next = 0; d < s.ndim(); ++d) {
        if (next == from) ++next;
        order[d] = d == to ? from : next++;
    }
    return ordered(s, order, numbers_of(order, s.ndim()), args[3]);
}

// All dimensions in reverse order, of so many at most.
nb::object reverse(const Source& s, PyObject* const* args) {
    if (s.ndim() > number(args[1])) decline();
    npy_intp order[NPY_MAXDIMS];
    for (int d = 0; d < s.ndim(); ++d) order[d] = s.ndim() - 1 - d;
    return ordered(s, order, numbers_of(order, s.ndim()), args[2]);
}

nb::object expand(const Source& s, PyObject* const* args) {
    Seen seen;
    nb::object sizes = sizes_of(args[1], seen.shape, seen.ndim);
    const int extra = seen.ndim - s.ndim();
    if (extra < 0) decline();
    bool kept = false;
    npy_intp step = PyArray_ITEMSIZE(s.a);
    for (int d = seen.ndim; d-- > 0;) {
        const npy_intp had = d < extra ? 1 : s.size(d - extra);
        if (seen.shape[d] == -1 && d >= extra) seen.shape[d] = had, kept = true;
        if (seen.shape[d] < 1 || (had != 1 && had != seen.shape[d])) decline();
        const bool same = had == seen.shape[d];
        seen.strides[d] = !same ? 0 : d < extra ? step : s.stride(d - extra);
        if (same) step = seen.strides[d] * had;
        else seen.writeable = false;  // to write into one element would be to write into others
    }
    if (kept) sizes = numbers_of(seen.shape, seen.ndim);
    return view(s, seen, args[2], settings_of(word_size, std::move(sizes)));
}

bool is_bound(PyObject* o) { return o == Py_None || PyLong_CheckExact(o); }

// One position or range along the next dimension of `s`, which is `d`.
void cut(const Source& s, int d, PyObject* k, Seen& seen) {
    if (d >= s.ndim()) decline();
    const npy_intp size = s.size(d), stride = s.stride(d);
    if (PyLong_CheckExact(k)) {
        Py_ssize_t at = PyLong_AsSsize_t(k);
        if (at == -1 && PyErr_Occurred()) PyErr_Clear(), decline();
        if (at < -size || at >= size) decline();
        seen.offset += (at < 0 ? at + size : at) * stride;
        return;
    }
    auto* range = reinterpret_cast<PySliceObject*>(k);
    if (!is_bound(range->start) || !is_bound(range->stop) || !is_bound(range->step)) decline();
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(k, &start, &stop, &step) < 0) PyErr_Clear(), decline();
    if (step < 1) decline();
    const Py_ssize_t length = PySlice_AdjustIndices(size, &start, &stop, step);
    if (length < 1) decline();  // NumPy knows where nothing lies
    npy_intp stride_of;
    if (__builtin_mul_overflow(step, stride, &stride_of)) decline();
    seen.offset += start * stride;
    seen.add(length, stride_of);
}

// The key, or the whole number that a tensor without dimensions means.
nb::object as_number(PyObject* key) {
    PyArrayObject* a = array_of(key);
    const bool whole = a && !PyArray_NDIM(a) && std::strchr("iu", PyArray_DESCR(a)->kind) && PyArray_ISBEHAVED_RO(a);
    if (!whole || !here_of(quiet, word_settle).is_none()) return nb::borrow(key);
    return taken(PyArray_GETITEM(a, PyArray_BYTES(a)));
}

// `x[key]` of positions, ranges, None and `...`, which may come as a tuple or alone.
nb::object take_slice(const Source& s, PyObject* const* args) {
    const nb::object given = as_number(args[1]);
    PyObject* const key = given.ptr();
    PyObject* const alone[] = {key};
    const bool many = PyTuple_CheckExact(key);
    PyObject* const* items = many ? &PyTuple_GET_ITEM(key, 0) : alone;
    const int n = many ? int(std::min<Py_ssize_t>(PyTuple_GET_SIZE(key), 2 * NPY_MAXDIMS)) : 1;
    if (many && n < PyTuple_GET_SIZE(key)) decline();
    int used = 0, dots = 0;
    for (int i = 0; i < n; ++i) {
        PyObject* k = items[i];
        if (PyLong_CheckExact(k) || PySlice_Check(k)) ++used;
        else if (k == Py_Ellipsis) ++dots;
        else if (k != Py_None) return declined();
    }
    if (dots > 1) decline();
    Seen seen;
    int d = 0;
    auto rest = [&](int until) {
        for (; d < until; ++d) seen.add(s.size(d), s.stride(d));
    };
    for (int i = 0; i < n; ++i) {
        PyObject* k = items[i];
        if (k == Py_Ellipsis) rest(s.ndim() - used);
        else if (k == Py_None) seen.add(1, d < s.ndim() ? s.stride(d) * s.size(d) : PyArray_ITEMSIZE(s.a));
        else cut(s, d++, k, seen), --used;
    }
    rest(s.ndim());
    return view(s, seen, args[2], settings_of(word_key, many ? nb::borrow(key) : taken(PyTuple_Pack(1, key))));
}

nb::object cut_along(const Source& s, int dim, nb::object k, PyObject* op) {
    Seen seen;
    for (int d = 0; d < s.ndim(); ++d) {
        if (d == dim) cut(s, d, k.ptr(), seen);
        else seen.add(s.size(d), s.stride(d));
    }
    nb::object key = taken(PyTuple_New(dim + 1));
    for (int d = 0; d < dim; ++d) PyTuple_SET_ITEM(key.ptr(), d, nb::borrow(whole).release().ptr());
    PyTuple_SET_ITEM(key.ptr(), dim, k.release().ptr());
    return view(s, seen, op, settings_of(word_key, std::move(key)));
}

nb::object range_of(npy_intp start, npy_intp stop) {
    nb::object from = taken(PyLong_FromSsize_t(start)), to = taken(PyLong_FromSsize_t(stop));
    return taken(PySlice_New(from.ptr(), to.ptr(), nullptr));
}

// Pieces of a tensor along a dimension, one behind the other; they are in no graph.
class Pieces {
    const Source& s;
    const int at;
    PyObject* op;
    Links links;
    npy_intp from = 0;
    const nb::object dim;  // Python's numbers
    nb::object start = nb::int_(0);

public:
    Pieces(const Source& of, int along, PyObject* record) : s(of), at(along), op(record), links(of.x), dim(nb::int_(along)) {}
    nb::object next(npy_intp length) {
        Seen seen;
        for (int d = 0; d < s.ndim(); ++d) seen.add(d == at ? length : s.size(d), s.stride(d));
        seen.offset = from * s.stride(at), from += length;
        nb::object made = bare_tensor(array_over(s, seen), nb::none()), stop = taken(PyLong_FromSsize_t(from));
        links.add(made.ptr(), op, dim, start, stop);
        start = std::move(stop);
        return made;
    }
};

nb::object select(const Source& s, PyObject* const* args) {
    if (!PyLong_CheckExact(args[2])) decline();
    return cut_along(s, s.dim(args[1]), nb::borrow(args[2]), args[3]);
}

nb::object narrow(const Source& s, PyObject* const* args) {
    const int at = s.dim(args[1]);
    npy_intp start = number(args[2]), length = number(args[3]);
    const npy_intp size = s.size(at);
    if (start < -size || start >= size) decline();
    if (start < 0) start += size;
    if (length < 1 || length > size - start) decline();
    return cut_along(s, at, range_of(start, start + length), args[4]);
}

// A diagonal of two dimensions, as a last one.
nb::object diagonal(const Source& s, PyObject* const* args) {
    const npy_intp offset = number(args[1]);
    const int row = s.dim(args[2]), column = s.dim(args[3]);
    const npy_intp rows = s.size(row), columns = s.size(column);
    if (row == column || offset <= -rows || offset >= columns) decline();
    Seen seen;
    for (int d = 0; d < s.ndim(); ++d)
        if (d != row && d != column) seen.add(s.size(d), s.stride(d));
    seen.offset = offset < 0 ? -offset * s.stride(row) : offset * s.stride(column);
    const npy_intp length = offset < 0 ? std::min(rows + offset, columns) : std::min(rows, columns - offset);
    seen.add(length, s.stride(row) + s.stride(column));
    const npy_intp dims[] = {row, column};
    return view(s, seen, args[4], settings_of({{word_offset, nb::borrow(args[1])}, {word_dims, numbers_of(dims, 2)}}));
}

// Windows of a dimension, as a last one.
nb::object unfold(const Source& s, PyObject* const* args) {
    const int at = s.dim(args[1]);
    const npy_intp size = number(args[2]), step = number(args[3]);
    if (size < 1 || size > s.size(at) || step < 1 || step > s.size(at)) decline();
    Seen seen;
    for (int d = 0; d < s.ndim(); ++d) {
        if (d == at) seen.add((s.size(d) - size) / step + 1, s.stride(d) * step);
        else seen.add(s.size(d), s.stride(d));
    }
    seen.add(size, s.stride(at));
    seen.writeable = step >= size;  // else to write into one window would be to write into others
    return view(s, seen, args[4], settings_of({{word_dim, taken(PyLong_FromLong(at))},
                                               {word_size, nb::borrow(args[2])}, {word_step, nb::borrow(args[3])}}));
}

// Any steps through the memory behind the tensor, counted in elements from where that begins; None: from the tensor's.
nb::object strided(const Source& s, PyObject* const* args) {
    const npy_intp item = PyArray_ITEMSIZE(s.a);
    const Array owner = moving::owner_of(Array{s.a});
    if (!item || (!PyArray_IS_C_CONTIGUOUS(owner.p) && !PyArray_IS_F_CONTIGUOUS(owner.p))) decline();
    const npy_intp here = PyArray_BYTES(s.a) - PyArray_BYTES(owner.p), total = PyArray_NBYTES(owner.p) / item;
    Seen seen;
    npy_intp steps[NPY_MAXDIMS], layout[NPY_MAXDIMS];
    int n;
    nb::object size = sizes_of(args[1], seen.shape, seen.ndim), stride = sizes_of(args[2], steps, n);
    const npy_intp start = args[3] == Py_None ? here / item : number(args[3]);
    npy_intp last = start, reach;
    if (n != seen.ndim || start < 0 || here % item) decline();
    for (int d = 0; d < n; ++d) {
        if (seen.shape[d] < 1 || steps[d] < 0 || __builtin_mul_overflow(seen.shape[d] - 1, steps[d], &reach) ||
            __builtin_add_overflow(last, reach, &last) || __builtin_mul_overflow(steps[d], item, &seen.strides[d]))
            decline();
    }
    if (last >= total) decline();
    for (int d = 0; d < s.ndim(); ++d) {
        layout[d] = s.stride(d) / item;
        if (s.recorded && s.size(d) > 1 && layout[d] <= 0) decline();
    }
    seen.offset = start * item - here;
    seen.writeable = moving::elements_apart(n, seen.shape, seen.strides, item);
    return view(s, seen, args[4], settings_of({{word_size, std::move(size)}, {word_stride, std::move(stride)},
                                               {word_offset, taken(PyLong_FromSsize_t(start - here / item))},
                                               {word_layout, numbers_of(layout, s.ndim())}}));
}

// Python's collector looks at nothing while this lives: it would go over thousands of new views again and again, none of which
// is garbage.
struct CollectorRests {
    const bool had;
    explicit CollectorRests(npy_intp views) : had(views > 64 && PyGC_Disable()) {}
    ~CollectorRests() {
        if (had) PyGC_Enable();
    }
};

PyObject* node_of_pieces = nullptr;  // that of `ops/shape/split.py`

// Pieces of a tensor along a dimension, which are views without a place in the graph: with one each, if it has one.
nb::object placed(const Source& s, int at, bool positions, nb::object made) {
    if (!s.recorded) return made;
    const nb::object dim = taken(PyLong_FromLong(at)), base = nb::borrow(part_of(more_of(s.x).ptr(), at_base));
    PyObject* args[] = {s.x, dim.ptr(), positions ? Py_True : Py_False, made.ptr()};
    const nb::object node = taken(PyObject_Vectorcall(node_of_pieces, args, 4, nullptr)), edges = taken(PyTuple_Pack(1, node.ptr()));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(made.ptr()); ++i)
        Py_SETREF(slot(PyTuple_GET_ITEM(made.ptr(), i), at_node), make_pick(edges.ptr(), i).release().ptr());
    put_in(more_of(base.is_none() ? s.x : base.ptr()).ptr(), at_followed, Py_True);
    return made;
}

// The tensor as one whose views are in no graph; none where pieces are to be made otherwise.
bool as_bare(const Source& s, npy_intp pieces, Source& bare) {
    bare.recorded = false;
    return !s.recorded || (pieces > 1 && node_of_pieces);
}

// A tuple of pieces of that length along a dimension, of single positions where it is 0.
nb::object cut_up(const Source& s, int at, npy_intp length, PyObject* op) {
    if (length < 0) return declined();
    const npy_intp size = s.size(at), step = length ? length : 1, count = size / step + (size % step != 0);
    Source bare = s;
    if (!as_bare(s, count, bare)) return declined();
    const CollectorRests rests(count);
    nb::object made = taken(PyTuple_New(count));
    Pieces pieces(bare, at, op);
    for (npy_intp i = 0; i < count; ++i) {
        nb::object piece = length ? pieces.next(std::min(size - i * step, step)) : cut_along(bare, at, taken(PyLong_FromSsize_t(i)), op);
        PyTuple_SET_ITEM(made.ptr(), i, piece.release().ptr());
    }
    return placed(s, at, !length, std::move(made));
}

// A tuple of pieces of these lengths, all of them above 0, which together are the dimension.
nb::object cut_at(const Source& s, int at, PyObject* lengths, PyObject* op) {
    npy_intp length[NPY_MAXDIMS], sum = 0;
    int n;
    if (PySequence_Fast_GET_SIZE(lengths) == 1) number(PySequence_Fast_GET_ITEM(lengths, 0));
    const nb::object sizes = sizes_of(lengths, length, n);
    Source bare = s;
    if (!n || !as_bare(s, n, bare)) return declined();
    for (int i = 0; i < n; ++i)
        if (length[i] < 1 || __builtin_add_overflow(sum, length[i], &sum)) decline();
    if (sum != s.size(at)) decline();
    nb::object made = taken(PyTuple_New(n));
    Pieces pieces(bare, at, op);
    for (npy_intp i = 0; i < n; ++i) PyTuple_SET_ITEM(made.ptr(), i, pieces.next(length[i]).release().ptr());
    return placed(s, at, false, std::move(made));
}

nb::object pieces(const Source& s, PyObject* const* args) {
    const int at = s.dim(args[1]);
    if (PyList_CheckExact(args[2]) || PyTuple_CheckExact(args[2])) return cut_at(s, at, args[2], args[3]);
    return cut_up(s, at, number(args[2]), args[3]);
}

// The pieces of that length along a dimension, or the single positions where it is 0, each in memory of its own.
nb::object copied_pieces(const Source& s, PyObject* const* args) {
    const int at = s.dim(args[1]), bytes = moving::item_bytes(Array{s.a});
    const npy_intp length = number(args[2]), size = s.size(at), step = length ? length : 1;
    if (s.recorded || length < 0 || !bytes || !PyArray_SIZE(s.a) || !PyArray_ISBEHAVED_RO(s.a)) decline();
    const npy_intp count = size / step + (size % step != 0);
    npy_intp shape[NPY_MAXDIMS];
    const CollectorRests rests(count);
    nb::object made = taken(PyTuple_New(count));
    for (npy_intp i = 0; i < count; ++i) {
        const npy_intp own = std::min(step, size - i * step);
        int ndim = 0;
        moving::Block block;
        npy_intp stride = PyArray_SIZE(s.a) / size * own * bytes;
        for (int d = 0; d < s.ndim(); ++d) {
            const npy_intp n = d == at ? own : s.size(d);
            if (d != at || length) shape[ndim++] = n;
            block.add(n, s.stride(d), stride /= n);
        }
        NewArray out = new_array(ndim, shape, PyArray_TYPE(s.a));
        moving::copy_block(block, bytes, PyArray_BYTES(s.a) + i * step * s.stride(at), out.data<char>());
        PyTuple_SET_ITEM(made.ptr(), i, tensor_over(give(out)).release().ptr());
    }
    return made;
}

// NumPy's array_split: so many pieces of nearly equal length, or cut at these places, each above the one before.
nb::object sections(const Source& s, PyObject* const* args) {
    const int at = s.dim(args[1]);
    npy_intp to[NPY_MAXDIMS + 1];
    int n;
    if (PyLong_CheckExact(args[2])) {
        const npy_intp size = s.size(at), count = number(args[2]);
        if (s.recorded || count < 1 || count > std::min<npy_intp>(size, NPY_MAXDIMS)) return declined();
        n = int(count);
        for (npy_intp i = 0; i < n; ++i) to[i] = (i + 1) * (size / n) + std::min(i + 1, size % n);
    } else {
        if (!PyTuple_Check(args[2]) && !PyList_CheckExact(args[2])) decline();  // the places that a tensor holds
        if (PySequence_Size(args[2]) == 1) number(taken(PySequence_GetItem(args[2], 0)).ptr());
        const nb::object places = sizes_of(args[2], to, n);
        if (s.recorded || n == NPY_MAXDIMS) return declined();
        to[n++] = s.size(at);
    }
    for (int i = 0; i < n; ++i)
        if (to[i] <= (i ? to[i - 1] : 0)) decline();
    nb::object made = taken(PyTuple_New(n));
    Pieces pieces(s, at, args[3]);
    for (int i = 0; i < n; ++i) PyTuple_SET_ITEM(made.ptr(), i, pieces.next(to[i] - (i ? to[i - 1] : 0)).release().ptr());
    return made;
}

// At most so many pieces of equal length.
nb::object chunks(const Source& s, PyObject* const* args) {
    const int at = s.dim(args[1]);
    const npy_intp count = number(args[2]);
    if (count < 1) return declined();
    return cut_up(s, at, (s.size(at) - 1) / count + 1, args[3]);
}

// -- complex numbers and their parts --------------------------------------------------------------

int type_of_parts(const Source& s) {
    const int type = PyArray_TYPE(s.a);
    if (type != NPY_CFLOAT && type != NPY_CDOUBLE) decline();
    return type == NPY_CFLOAT ? NPY_FLOAT : NPY_DOUBLE;
}

// Both parts of each number as a last dimension.
nb::object parts(const Source& s, PyObject* const* args) {
    const int type = type_of_parts(s);
    Seen seen;
    for (int d = 0; d < s.ndim(); ++d) seen.add(s.size(d), s.stride(d));
    seen.add(2, PyArray_ITEMSIZE(s.a) / 2);
    return view(s, seen, args[1], settings_of({}), type);
}

// Pairs of the last dimension as numbers.
nb::object pairs(const Source& s, PyObject* const* args) {
    const int type = PyArray_TYPE(s.a), last = s.ndim() - 1;
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || last < 0 || s.size(last) != 2 || s.stride(last) != PyArray_ITEMSIZE(s.a))
        decline();
    Seen seen;
    for (int d = 0; d < last; ++d) seen.add(s.size(d), s.stride(d));
    return view(s, seen, args[1], settings_of({}), type == NPY_FLOAT ? NPY_CFLOAT : NPY_CDOUBLE);
}

template <nb::object (*F)(const Source&, PyObject* const*), int ARGS>
PyObject* called(PyObject*, PyObject* const* args, Py_ssize_t n) {
    if (n != ARGS) return PyErr_Format(PyExc_TypeError, "wanted %d arguments, got %zd", ARGS, n);
    return guarded([&]() -> PyObject* {
        try {
            const Source source(args[0]);
            nb::object made = source.usable() ? F(source, args) : declined();
            if (made.is_valid()) return made.release().ptr();
        } catch (const Declines&) {
        }
        Py_RETURN_NOTIMPLEMENTED;
    });
}

#define FW_VIEW(name, function, args) \
    {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&called<function, args>)), METH_FASTCALL, nullptr}
PyMethodDef methods[] = {FW_VIEW("view_shaped", take_shape, 3), FW_VIEW("view_unsqueezed", unsqueeze, 3),
                         FW_VIEW("view_squeezed", squeeze, 3), FW_VIEW("view_flattened", flatten, 4),
                         FW_VIEW("view_permuted", permute, 3), FW_VIEW("view_transposed", transpose, 4),
                         FW_VIEW("view_moved", move_dim, 4),
                         FW_VIEW("view_reversed", reverse, 3), FW_VIEW("view_expanded", expand, 3),
                         FW_VIEW("view_sliced", take_slice, 3), FW_VIEW("view_selected", select, 4),
                         FW_VIEW("view_narrowed", narrow, 5), FW_VIEW("view_pieces", pieces, 4),
                         FW_VIEW("view_chunks", chunks, 4), FW_VIEW("view_sections", sections, 4),
                         FW_VIEW("view_copied_pieces", copied_pieces, 3), FW_VIEW("view_diagonal", diagonal, 5),
                         FW_VIEW("view_windows", unfold, 5), FW_VIEW("view_strided", strided, 5),
                         FW_VIEW("view_parts", parts, 2), FW_VIEW("view_pairs", pairs, 2),
                         {nullptr, nullptr, 0, nullptr}};

// What views are made of besides; until then every function declines, since there is no class of tensors.
void set_up(nb::object more, nb::object node) {
    const std::pair<PyObject**, const char*> words[] = {
        {&word_keeps_nothing, "keeps_nothing"}, {&word_x_shape, "x_shape"}, {&word_shape, "shape"}, {&word_dims, "dims"},
        {&word_size, "size"}, {&word_key, "key"}, {&word_offset, "offset"}, {&word_dim, "dim"}, {&word_step, "step"},
        {&word_stride, "stride"}, {&word_layout, "layout"}};
    for (auto [place, text] : words) *place = word(text);
    whole = taken(PySlice_New(nullptr, nullptr, nullptr)).release().ptr();
    node_type = reinterpret_cast<PyTypeObject*>(node.release().ptr());
    const std::pair<Py_ssize_t*, const char*> places[] = {{&at_grad, "grad"}, {&at_leaf, "leaf"}, {&at_base, "base"},
                                                          {&at_links, "links"}, {&at_views, "views"}, {&at_followed, "followed"}};
    for (auto [place, text] : places) *place = place_of(reinterpret_cast<PyTypeObject*>(more.ptr()), text);
    more_type = reinterpret_cast<PyTypeObject*>(more.release().ptr());
}

}  // namespace

FW_BIND(m) {
    if (PyModule_AddFunctions(m.ptr(), methods) < 0) throw nb::python_error();
    m.def("set_up_views", &set_up);
    m.def("set_up_pieces", [](nb::object maker) { node_of_pieces = maker.release().ptr(); });
}

}  // namespace fw::tensors
