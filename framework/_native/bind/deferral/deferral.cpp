// What Python finds in the module of calls that are put off.
#include <structmember.h>

#include "bind/deferral/leaves.h"

namespace fw::deferral {

PyTypeObject *tensor_type = nullptr, *parameter_type = nullptr, *leaf_type = nullptr;
PyTypeObject *promise_type = nullptr, *call_type = nullptr, *tape_type = nullptr, *door_type = nullptr,
             *runner_type = nullptr;
Py_ssize_t offsets[SLOTS], at_promise = 0;
PyObject *slot_names[SLOTS], *word_enabled = nullptr, *word_inplace = nullptr;
getattrofunc plain_getattr = nullptr;
std::vector<PyTypeObject*> single_types;
PyTypeObject* drawn_type = nullptr;
PyObject* word_array = nullptr;
int64_t deferred_calls = 0;
thread_local Tape* current = nullptr;

namespace {

// What the tensors' class is, and where its slots lie.
void set_up(nb::object tensor, nb::object parameter, nb::object leaf) {
    if (tensor_type) return;
    auto* type = reinterpret_cast<PyTypeObject*>(tensor.ptr());
    auto offset_in = [](PyTypeObject* type, const char* name) {
        PyObject* descriptor = PyDict_GetItemString(type->tp_dict, name);
        if (!descriptor || Py_TYPE(descriptor) != &PyMemberDescr_Type) throw nb::type_error("no such slot");
        return reinterpret_cast<PyMemberDescrObject*>(descriptor)->d_member->offset;
    };
    auto offset = [&](const char* name) { return offset_in(type, name); };
    const char* names[SLOTS] = {"_array", "_node", "_counter", "_more"};
    for (int i = 0; i < SLOTS; ++i) {
        offsets[i] = offset(names[i]);
        slot_names[i] = PyUnicode_InternFromString(names[i]);
    }
    at_promise = offset("_promise");
    auto* of_leaf = reinterpret_cast<PyTypeObject*>(leaf.ptr());
    at_grad = offset_in(of_leaf, "grad"), at_hooks = offset_in(of_leaf, "hooks"), at_after = offset_in(of_leaf, "after");
    word_enabled = PyUnicode_InternFromString("enabled");
    word_inplace = PyUnicode_InternFromString("inplace");
    tensor_type = type;
    parameter_type = reinterpret_cast<PyTypeObject*>(parameter.ptr());
    leaf_type = reinterpret_cast<PyTypeObject*>(leaf.ptr());
    plain_getattr = type->tp_getattro;
    tensor.inc_ref(), parameter.inc_ref(), leaf.inc_ref();
}

// The types of constants that are there once, and of keys that are drawn.
void set_up_constants(nb::tuple single, nb::object drawn) {
    if (drawn_type) return;
    word_array = PyUnicode_InternFromString("array");
    for (nb::handle type : single) single_types.push_back(reinterpret_cast<PyTypeObject*>(type.inc_ref().ptr()));
    drawn_type = reinterpret_cast<PyTypeObject*>(drawn.release().ptr());
}

nb::object make_door(nb::object original, nb::object name, const std::string& kind, nb::object functional) {
    auto* d = PyObject_New(Door, door_type);
    if (!d) throw nb::python_error();
    d->call = door_call;
    d->original = original.release().ptr();
    d->name = name.release().ptr();
    d->functional = functional.release().ptr();  // None but of kind 'i'
    d->twin = nullptr;
    d->twin_at = 0;
    d->kind = kind[0];
    d->used = false;
    return nb::steal(reinterpret_cast<PyObject*>(d));
}

nb::object make_runner(nb::object plain) {
    auto* r = PyObject_New(Runner, runner_type);
    if (!r) throw nb::python_error();
    r->call = runner_call;
    r->plain = plain.release().ptr();
    return nb::steal(reinterpret_cast<PyObject*>(r));
}

}  // namespace

FW_BIND(m) {
    PyTypeObject** types[] = {&promise_type, &call_type, &tape_type, &door_type, &runner_type};
    PyType_Spec* specs[] = {&promise_spec, &call_spec, &tape_spec, &door_spec, &runner_spec};
    for (int i = 0; i < 5; ++i) {
        *types[i] = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(specs[i]));
        if (!*types[i]) throw nb::python_error();
    }
    m.attr("Tape") = nb::borrow(reinterpret_cast<PyObject*>(tape_type));
    m.def("set_up_tapes", &set_up);
    m.def("make_door", &make_door, nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
    m.def("set_up_constants", &set_up_constants);
    m.def("make_runner", &make_runner);
    m.def("puts_off", [] { return current && !current->busy && usual(current); });
    m.def("new_tree", [] { return nb::steal(new_call(nullptr)); });
    m.def("deferred_calls", [] { return deferred_calls; });
}

}  // namespace fw::deferral
