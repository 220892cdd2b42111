// Tensors as C++ sees them: where their slots lie, and what is asked of a thread before a kernel may run.
#pragma once

#include "bind/array.h"
#include "bind/guarded.h"
#include "bind/local.h"
#include "move/block.h"

namespace fw::tensors {

extern PyTypeObject *tensor_type, *parameter_type;  // none until `set_up_tensors`
extern PyTypeObject *node_type, *plain_type;        // `Node` and `PlainNode`
extern PyObject *quiet, *modes, *word_run, *word_settle, *word_enabled, *word_site;
extern Py_ssize_t at_array, at_node, at_counter, at_more;

inline PyObject*& slot(PyObject* o, Py_ssize_t at) {
    return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(o) + at);
}
// The NumPy array of a plain tensor or parameter; null for other kinds, and where it has none yet.
inline PyArrayObject* array_of(PyObject* x) {
    if (Py_TYPE(x) != tensor_type && Py_TYPE(x) != parameter_type) return nullptr;
    PyObject* array = slot(x, at_array);
    if (!array || !PyArray_CheckExact(array) || !slot(x, at_node)) return nullptr;
    return reinterpret_cast<PyArrayObject*>(array);
}
inline bool has_node(PyObject* x) { return slot(x, at_node) != Py_None; }
inline nb::object taken(PyObject* made) {
    if (!made) throw nb::python_error();
    return nb::steal(made);
}
inline nb::object asked(PyObject* o, PyObject* name) { return taken(PyObject_GetAttr(o, name)); }
// A tensor over this array, in no graph; its counter and its further things are left unset.
inline nb::object bare_tensor(nb::object array, nb::object node) {
    nb::object made = taken(tensor_type->tp_alloc(tensor_type, 0));
    slot(made.ptr(), at_array) = array.release().ptr();
    slot(made.ptr(), at_node) = node.release().ptr();
    return made;
}
inline PyObject* none() {
    Py_INCREF(Py_None);
    return Py_None;
}
// A tensor over this array at a place in a graph, or in none.
inline nb::object tensor_over(nb::object array, nb::object node = nb::none()) {
    nb::object made = bare_tensor(std::move(array), std::move(node));
    slot(made.ptr(), at_counter) = none();
    slot(made.ptr(), at_more) = none();
    return made;
}
// The array of a tensor that no interceptor is to see; null for other kinds, and where one looks.
inline PyArrayObject* unwatched(PyObject* x) {
    PyArrayObject* a = array_of(x);
    return a && !here_of(quiet, word_run).is_none() ? a : nullptr;
}
// The memory of an array in another shape, with other strides, from an offset on; as numbers of another type, if one is given.
nb::object seen_as(PyArrayObject* a, int ndim, const npy_intp* shape, const npy_intp* strides, npy_intp offset = 0, int type = -1,
                   bool writeable = true);
// The version counter of a tensor, shared with its views.
nb::object counter_of(PyObject* x);
// Nodes of the classes in `node.py`.
nb::object make_node(PyObject* op, PyObject* edges, PyObject* kept, PyObject* versions, PyObject* settings,
                     PyObject* shapes, PyTypeObject* type = nullptr);  // of a type that adds nothing to `Node`, or of that one
nb::object make_plain_node(PyObject* op, PyObject* edges);
// The node of a record's call with these results; null where Python is to make it.
nb::object node_of(PyObject* op, PyObject* const* inputs, PyObject* const* arrays, Py_ssize_t n, PyObject* const* results,
                   Py_ssize_t count, PyObject* settings);
// The tensor of an elementwise record's result: (record, operands, their arrays, whether it is recorded). The operands are tensors of
// one dtype, or the second one is a number; `plain` is Python's function of the same arguments, for what is unusual.
PyObject* elementwise(PyObject* plain, PyObject* const* args, Py_ssize_t n);
PyObject* elementwise_run(PyObject* op, PyObject* const* args, Py_ssize_t n, PyObject* names);  // `Elementwise.run`
nb::object tuple_of(PyObject* const* items, Py_ssize_t n);
// A method that Python has for what is unusual.
PyObject* by_python(PyObject* f, PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names);
// The CPU's function of a record; `narrow`: for bfloat16.
nb::object kernel_of(PyObject* op, bool narrow);
// What a kernel makes of arrays of float16, or of bfloat16, as of float32, rounded to what they were; not_implemented() where none
// is, and where anything is unusual.
nb::object narrowed(PyObject* kernel, PyObject* const* args, Py_ssize_t n, PyObject* names);
// An array in this dtype, in new memory.
nb::object in_dtype(PyObject* array, PyArray_Descr* wanted);
bool is_narrow(PyArray_Descr* type);  // float16 or bfloat16
// What a rule is given, in this dtype where it is of 16 bits; false for what only Python looks through.
bool widen_for_rule(nb::object& value, PyArray_Descr* wide);
// A result, one or several, with its arrays of the type that was computed in (a number of NumPy) in this one.
nb::object given_back(nb::object result, int computed, PyArray_Descr* type);
// What a kernel makes of whole numbers of 64 bits as of doubles: it only chooses among those of its one operand, or adds up
// products of its first two (of one: itself) and the third; no product uses an element twice for one result. not_implemented()
// where a double might not hold them, for other arguments, and where the kernel does not take doubles.
enum class Whole : char { no, kept, summed };
nb::object in_doubles(PyObject* kernel, PyObject* const* args, Py_ssize_t n, PyObject* names, Whole whole);
// The bits of an element of this type that is this number of Python; false where NumPy may have a word to say about it.
bool element_of(PyArray_Descr* type, PyObject* number, moving::Pair& bits);
constexpr npy_intp LARGE = 1 << 18;  // elements that are worth more than one thread
// Of truth, whole, floating and complex numbers: a result of a higher one does not fit into memory of a lower one. -1: of none.
int category_of(PyArrayObject* a);
// What two tensors of different dtypes are computed in, where that is one of theirs that holds all of the other's numbers, or a
// floating one of 32 or 64 bits beside whole numbers: as `Elementwise.result_dtype` has it. Null for others.
PyArray_Descr* joint(PyArrayObject* a, PyArrayObject* b);
// The elements in another dtype, in new memory.
nb::object converted(PyArrayObject* a, PyArray_Descr* into);
// What only few tensors have (`More` of `tensor.py`): places in it, and what is there, borrowed.
extern PyTypeObject* more_type;
extern Py_ssize_t at_base, at_links, at_views, at_followed;
inline PyObject*& place_in(PyObject* more, Py_ssize_t at) {
    if (Py_TYPE(more) != more_type) throw nb::type_error("_more must be a More or None");
    return slot(more, at);
}
inline PyObject* part_of(PyObject* more, Py_ssize_t at) {
    PyObject* part = place_in(more, at);
    return part ? part : Py_None;
}
inline void put_in(PyObject* more, Py_ssize_t at, PyObject* value) { Py_XSETREF(place_in(more, at), Py_NewRef(value)); }

// An array that stays while a kernel runs, whatever another thread gives its tensor meanwhile.
struct Held {
    nb::object owner;
    PyArrayObject* a;
    Held(PyArrayObject* array) : owner(nb::borrow(reinterpret_cast<PyObject*>(array))), a(array) {}
    operator PyArrayObject*() const { return a; }
};

// The array of `x` if it may be written to by nobody's leave: `x` is in no graph, or none is made, and what it is a view of is in none.
Held memory_of(PyObject* x);
void keep_result_of(PyObject* x);  // `tensor.keep_result`, before x is written
bool is_watched();  // whether an interceptor looks, or something is put off
int dim_of(PyObject* given, PyArrayObject* x);  // the dimension that is meant, counted from 0; -1 where it is none of x
bool nobody_looks();  // at what is about to be written, which nothing that was put off reads from here on
// op(*inputs, **settings) into x, where nothing is unusual, else null: (op, x, inputs, settings, kinds of dtype that it writes, name)
nb::object write_call(PyObject* const* args);
nb::object write_form(PyObject* const* args);  // likewise for an in-place form, which may be recorded
constexpr Py_ssize_t MOST_WRITTEN = 12;  // inputs and settings of such a call
// The kernel of `op` writes into `a`, the array of `x`, what it makes of given[1:n + 1], and the change is counted; false where it
// declined. given: with room for itself, the settings and `a`.
bool kernel_into(PyObject* op, PyObject** given, Py_ssize_t n, PyObject* settings, const Held& a, PyObject* x, PyObject* name);
bool convert_over(PyArrayObject* a, PyArrayObject* b);  // likewise of another dtype; false, and nothing done, where that needs a word
void take_over(PyArrayObject* a, PyArrayObject* b);  // into `a` the elements of an array of its dtype and shape
// Whether backward wants an input ("in"), or a result ("out"), at this place of a call.
bool wants(PyObject* op, bool out, Py_ssize_t place, PyObject* inputs);
// Whether nothing hangs on a place in the graph that a tensor would take along to another one: a node without hooks, or none.
nb::object make_pick(PyObject* edges, Py_ssize_t index);  // `Pick`
PyObject* kept_of(PyObject* node);  // the dict of what it keeps, if it does
bool is_left_alone(PyObject* node);
// Whether an operand of this shape was broadcast to that of its gradient; None is the shape of a number.
bool is_broadcast(PyArrayObject* g, PyObject* shape);
// The sum, to a shape, of what `f` makes of these arguments, the first of which is the gradient, in one pass; not_implemented()
// where it has none.
nb::object folded(const nb::object& f, PyObject* shape, PyObject* const* arguments, size_t n);
nb::object summed(nb::object grad, PyObject* shape);  // a gradient in the shape of its operand
bool is_followed(PyObject* x);  // whether a tensor is in a graph that what happens to it belongs to: not in a block of no_grad
// Count a change of the memory of `x`, by `name`.
void bump(PyObject* x, PyObject* name);
// Where a slot of a class lies.
Py_ssize_t place_of(PyTypeObject* type, const char* name);
PyObject* word(const char* text);  // interned, for good

}  // namespace fw::tensors
