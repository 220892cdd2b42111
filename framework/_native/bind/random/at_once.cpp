// Draws of a thread's default generator on the CPU: what `random.drawn_at_once` does, without the dozen steps that it takes
// Python.
#include "bind/guarded.h"
#include "bind/random/default.h"
#include "bind/random/state.h"
#include "bind/tensors/tensors.h"

namespace fw {
namespace {

using tensors::asked, tensors::taken, tensors::word;

constexpr Py_ssize_t MOST = 8;  // arguments of a function that draws
PyObject* last = nullptr;  // the seed with which `start_default` started, as it stands in the generator
PyObject *own = nullptr, *usual, *functions, *one;  // `random._own`, the generator of threads without one, the module's names, the number 1
PyObject *word_generator, *word_batches, *word_lock, *word_acquire, *word_release, *word_words, *word_source, *word_state, *word_seed,
    *word_stream, *word_numbers;

struct Locked {
    nb::object lock;
    explicit Locked(PyObject* generator) : lock(asked(generator, word_lock)) {
        taken(PyObject_CallMethodNoArgs(lock.ptr(), word_acquire));
    }
    ~Locked() {
        PyObject *type, *value, *trace;  // a call wants no error to be set
        PyErr_Fetch(&type, &value, &trace);
        if (PyObject* done = PyObject_CallMethodNoArgs(lock.ptr(), word_release)) Py_DECREF(done);
        else PyErr_WriteUnraisable(lock.ptr());
        PyErr_Restore(type, value, trace);
    }
};

void put(nb::object& of, PyObject* name, PyObject* value) {
    if (PyObject_SetAttr(of.ptr(), name, value) < 0) throw nb::python_error();
}

// (function, shape, *settings) -> function(words, shape, *settings); None where Python is to look closer.
nb::object drawn_at_once(PyObject* const* args, Py_ssize_t n) {
    PyObject* draw = own && tensors::modes ? PyDict_GetItemWithError(functions, args[0]) : nullptr;
    if (!draw) {
        if (PyErr_Occurred()) throw nb::python_error();
        return nb::none();
    }
    const nb::object function = nb::borrow(draw), batches = asked(tensors::modes, word_batches);
    const int many = PyObject_IsTrue(batches.ptr());
    if (many) {
        if (many < 0) throw nb::python_error();
        return nb::none();
    }
    nb::object generator = asked(own, word_generator);
    if (generator.is_none()) generator = nb::borrow(usual);
    const Locked locked(generator.ptr());
    nb::object words = asked(generator.ptr(), word_words);
    if (words.is_none()) {  // NumPy has the state, or it has not been made yet
        if (!asked(generator.ptr(), word_source).is_none()) return nb::none();
        words = taken(PyObject_CallMethodNoArgs(generator.ptr(), word_state));
    }
    PyObject* given[MOST + 1] = {nullptr, words.ptr()};
    std::copy(args + 1, args + n, given + 2);
    nb::object made = taken(PyObject_Vectorcall(function.ptr(), given + 1, size_t(n) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
    if (made.ptr() == Py_NotImplemented) return nb::none();
    put(generator, word_words, words.ptr());
    return made;
}

PyObject* called(PyObject*, PyObject* const* args, Py_ssize_t n) {
    if (n < 2 || n >= MOST) return PyErr_Format(PyExc_TypeError, "wanted a function's name and up to %zd arguments", MOST - 2);
    return guarded([&]() -> PyObject* { return drawn_at_once(args, n).release().ptr(); });
}

// What a method that draws into its tensor does with numbers alone. bound: (name of the native function, names of the numbers, the
// numbers of a call without, `...` where there must be one, name of the method, that method of Python, which answers where this does not do)
PyObject* drawn_into(PyObject* bound, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
    enum { FUNCTION, NAMES, NUMBERS, NAME, PLAIN };
    const auto part = [bound](int which) { return PyTuple_GET_ITEM(bound, which); };
    PyObject *given[MOST] = {part(FUNCTION), n ? args[0] : nullptr}, *names = part(NAMES);
    const Py_ssize_t most = PyTuple_GET_SIZE(names), more = keywords ? PyTuple_GET_SIZE(keywords) : 0;
    const auto is_number = [](PyObject* x) {
        int over = 0;
        return PyFloat_CheckExact(x) || (PyLong_CheckExact(x) && (PyLong_AsLongLongAndOverflow(x, &over), !over));
    };
    bool usual = n && n <= 1 + most && tensors::array_of(args[0]) && std::all_of(args + 1, args + n + more, is_number);
    for (Py_ssize_t i = 0; usual && i < most; ++i) given[2 + i] = i + 1 < n ? args[i + 1] : PyTuple_GET_ITEM(part(NUMBERS), i);
    for (Py_ssize_t i = 0; usual && i < more; ++i) {
        Py_ssize_t at = n - 1;  // of those that were not given by their places
        while (at < most && PyUnicode_Compare(PyTuple_GET_ITEM(names, at), PyTuple_GET_ITEM(keywords, i))) ++at;
        usual = at < most;
        if (usual) given[2 + at] = args[n + i];
    }
    if (usual && std::find(given + 2, given + 2 + most, Py_Ellipsis) == given + 2 + most) {
        given[2 + most] = part(NAME);
        PyObject* made = guarded([&]() -> PyObject* { return drawn_at_once(given, 3 + most).release().ptr(); });
        if (!made || made == args[0]) return made;
        Py_DECREF(made);
    }
    return PyObject_Vectorcall(part(PLAIN), args, size_t(n), keywords);
}

PyMethodDef drawing = {"drawn_into", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&drawn_into)), METH_FASTCALL | METH_KEYWORDS, nullptr};

PyMethodDef methods[] = {{"drawn_at_once", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&called)), METH_FASTCALL,
                          "What a native function draws of this thread's default generator on the CPU, or None."},
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

void start_default(uint64_t seed) {
    if (!usual) throw std::runtime_error("there is no default generator yet");
    nb::object generator = nb::borrow(usual), key = nb::int_(seed);
    const auto has = [&](PyObject* name, PyObject* value) { return asked(usual, name).ptr() == value; };
    // Nobody drew since the last start, as for most samples of a data set. Without the lock: with another thread that draws
    // now, which of the two is first is anybody's guess.
    if (last && has(word_seed, last) && has(word_words, Py_None) && has(word_source, Py_None)) {
        put(generator, word_seed, key.ptr());
    } else {
        const Locked locked(usual);
        put(generator, word_seed, key.ptr()), put(generator, word_stream, one);
        for (PyObject* made : {word_words, word_source, word_numbers}) put(generator, made, Py_None);
    }
    Py_XSETREF(last, key.release().ptr());
}

FW_BIND(m) {
    if (PyModule_AddFunctions(m.ptr(), methods) < 0) throw nb::python_error();
    functions = PyModule_GetDict(m.ptr());
    m.def("drawn_into", [](nb::str function, nb::tuple names, nb::tuple numbers, nb::str name, nb::object plain) {
        const Py_ssize_t n = PyTuple_GET_SIZE(names.ptr());
        if (n + 3 > MOST || PyTuple_GET_SIZE(numbers.ptr()) != n) throw nb::value_error("drawn_into: wanted a few numbers, and a name for each");
        for (nb::handle one : names)
            if (!PyUnicode_Check(one.ptr())) throw nb::type_error("drawn_into: names must be strings");
        return taken(PyCFunction_NewEx(&drawing, nb::make_tuple(function, names, numbers, name, plain).ptr(), nullptr));
    });
    m.def("set_up_draws", [](nb::object threads, nb::object generator) {
        const std::pair<PyObject**, const char*> words[] = {
            {&word_generator, "generator"}, {&word_batches, "batches"}, {&word_lock, "_lock"}, {&word_acquire, "acquire"},
            {&word_release, "release"}, {&word_words, "_words"}, {&word_source, "_source"}, {&word_state, "_state"},
            {&word_seed, "_seed"}, {&word_stream, "_stream"}, {&word_numbers, "_numbers"}};
        for (auto [place, text] : words) *place = word(text);
        one = PyLong_FromLong(1), usual = generator.release().ptr(), own = threads.release().ptr();
    });
}

}  // namespace fw
