// Calls whose arguments were checked before (`ops/record/planned.py`): what Python made of arguments like these is kept
// and done again. Arguments are alike where tensors have one shape and dtype, and all others one type and value.
#include <algorithm>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <vector>

#include "bind/tensors/tensors.h"

namespace fw::tensors {
namespace {

constexpr size_t MOST_KEPT = 512;    // kinds of calls of a function; then it begins anew
constexpr size_t LONGEST_KEY = 128;  // words of one
constexpr size_t MOST_VALUES = 24;   // inputs and settings of a step

using Key = std::vector<int64_t>;

struct KeyHash {
    size_t operator()(const Key& key) const {
        uint64_t h = 0x9e3779b97f4a7c15u;
        for (int64_t word : key) h = (h ^ uint64_t(word)) * 0xff51afd7ed558ccdu, h ^= h >> 32;
        return size_t(h);
    }
};

// A function of the result so far and of the next `inputs - 1` arguments of the call, with these settings.
struct Step {
    nb::object function, names;
    Py_ssize_t inputs;
    std::vector<nb::object> settings;

    explicit Step(PyObject* step) {
        if (!PyTuple_Check(step) || PyTuple_GET_SIZE(step) != 3 || !PyDict_Check(PyTuple_GET_ITEM(step, 2)))
            throw nb::type_error("a step is a function, the number of its inputs, and a dict of settings");
        function = nb::borrow(PyTuple_GET_ITEM(step, 0));
        inputs = PyLong_AsSsize_t(PyTuple_GET_ITEM(step, 1));
        PyObject *given = PyTuple_GET_ITEM(step, 2), *name, *value;
        if (PyDict_GET_SIZE(given)) names = taken(PySequence_Tuple(given));
        for (Py_ssize_t at = 0; PyDict_Next(given, &at, &name, &value);) settings.push_back(nb::borrow(value));
        if (inputs < 1 || size_t(inputs) + settings.size() > MOST_VALUES) throw nb::value_error("a step of too many values");
    }

    nb::object operator()(const nb::object& first, PyObject* const* args) const {
        PyObject* values[MOST_VALUES + 1];
        PyObject** next = values + 1;
        *next++ = first.ptr();
        for (Py_ssize_t i = 1; i < inputs; ++i) *next++ = args[i];
        for (const nb::object& value : settings) *next++ = value.ptr();
        return taken(PyObject_Vectorcall(function.ptr(), values + 1, size_t(inputs) | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                         names.ptr()));
    }
};

struct Plan {
    std::vector<Step> steps;
    Py_ssize_t most = 1;  // arguments of the call that are handed on

    explicit Plan(PyObject* given) {
        nb::object rows = taken(PySequence_Fast(given, "steps must be a sequence"));
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(rows.ptr()); ++i) {
            steps.emplace_back(PySequence_Fast_GET_ITEM(rows.ptr(), i));
            most = std::max(most, steps.back().inputs);
        }
    }

    PyObject* run(PyObject* const* args, Py_ssize_t n) const {
        if (n < most) throw nb::type_error("too few arguments for the steps of this call");
        nb::object result = nb::borrow(args[0]);
        for (const Step& step : steps) result = step(result, args);
        return result.release().ptr();
    }
};

struct Planned {
    nb::object prepare;
    Key key;                 // of the call at hand: its memory is kept
    Py_ssize_t tensors = 0;  // up to which argument there are some
    std::unordered_map<Key, std::shared_ptr<const Plan>, KeyHash> plans;

    // Appends what tells the arguments from others; false for what is not told apart here, as a tensor elsewhere.
    bool tell(PyObject* const* args, Py_ssize_t n) {
        key.clear();
        tensors = 0;
        for (Py_ssize_t i = 0; i < n; ++i) {
            if (tell(args[i])) continue;
            if (!tell_tensor(args[i])) return false;
            tensors = i + 1;
        }
        return n > 0;
    }

  private:
    bool tell(PyObject* x) {
        if (key.size() >= LONGEST_KEY) return false;
        if (x == Py_None) {
            key.push_back('n');
        } else if (PyLong_CheckExact(x)) {
            int beyond;
            const long long value = PyLong_AsLongLongAndOverflow(x, &beyond);
            if (beyond) return false;
            key.push_back('i'), key.push_back(value);
        } else if (PyBool_Check(x)) {
            key.push_back(x == Py_True ? 't' : 'f');
        } else if (PyFloat_CheckExact(x)) {
            const double value = PyFloat_AS_DOUBLE(x);
            int64_t bits;
            std::memcpy(&bits, &value, sizeof bits);
            key.push_back('d'), key.push_back(bits);
        } else if (PyUnicode_CheckExact(x)) {
            return tell_text(x);
        } else if (PyTuple_CheckExact(x) || PyList_CheckExact(x)) {
            const Py_ssize_t n = PySequence_Fast_GET_SIZE(x);
            key.push_back(PyTuple_CheckExact(x) ? '(' : '['), key.push_back(n);
            for (Py_ssize_t i = 0; i < n; ++i)
                if (!tell(PySequence_Fast_GET_ITEM(x, i))) return false;
        } else {
            return false;
        }
        return true;
    }

    bool tell_text(PyObject* x) {
        Py_ssize_t n;
        const char* text = PyUnicode_AsUTF8AndSize(x, &n);
        if (!text || n > 64) {
            PyErr_Clear();
            return false;
        }
        key.push_back('s'), key.push_back(n);
        for (Py_ssize_t i = 0; i < n; i += 8) {
            int64_t word = 0;
            std::memcpy(&word, text + i, size_t(std::min<Py_ssize_t>(8, n - i)));
            key.push_back(word);
        }
        return true;
    }

    bool tell_tensor(PyObject* x) {
        PyArrayObject* a = array_of(x);
        if (!a || !PyArray_ISNOTSWAPPED(a)) return false;
        const int n = PyArray_NDIM(a);
        key.push_back('T'), key.push_back(PyArray_TYPE(a)), key.push_back(n);
        key.insert(key.end(), PyArray_DIMS(a), PyArray_DIMS(a) + n);
        return true;
    }
};

Planned* planned_of(PyObject* capsule) { return static_cast<Planned*>(PyCapsule_GetPointer(capsule, nullptr)); }

PyObject* call_planned(PyObject* capsule, PyObject* const* args, Py_ssize_t n) {
    return guarded([&]() -> PyObject* {
        Planned* p = planned_of(capsule);
        const nb::object looked = here_of(quiet, word_run), mode = here_of(modes, word_enabled);
        // who looks on, and forward mode, see the call as it is written
        const bool told = !looked.is_none() && PyBool_Check(mode.ptr()) && p->tell(args, n);
        if (told) {
            const auto at = p->plans.find(p->key);
            if (at != p->plans.end()) {
                const std::shared_ptr<const Plan> plan = at->second;  // another thread may begin anew
                return plan->run(args, n);
            }
        }
        const Key key = p->key;
        const Py_ssize_t tensors = p->tensors;
        nb::object steps = taken(PyObject_Vectorcall(p->prepare.ptr(), args, size_t(n), nullptr));
        const auto plan = std::make_shared<const Plan>(steps.ptr());
        if (told && tensors <= plan->most) {  // others were looked at by what they hold
            std::unordered_map<Key, std::shared_ptr<const Plan>, KeyHash> old;  // goes when all is in place
            if (p->plans.size() >= MOST_KEPT) old.swap(p->plans);
            p->plans.emplace(key, plan);
        }
        return plan->run(args, n);
    });
}

PyMethodDef planned_method = {"planned", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&call_planned)),
                              METH_FASTCALL, nullptr};

nb::object planned(nb::object prepare) {
    auto made = std::make_unique<Planned>();
    made->prepare = std::move(prepare);
    nb::object capsule = taken(PyCapsule_New(made.get(), nullptr, [](PyObject* it) { delete planned_of(it); }));
    made.release();
    return taken(PyCFunction_NewEx(&planned_method, capsule.ptr(), nullptr));
}

}  // namespace

FW_BIND(m) { m.def("planned", &planned, nb::arg("prepare")); }

}  // namespace fw::tensors
