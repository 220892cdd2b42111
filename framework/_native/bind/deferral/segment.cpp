// A segment: kernels that are called one after the other, over numbered places for arrays.
#include <structmember.h>

#include <optional>

#include "bind/compute.h"
#include "bind/deferral/recycled.h"
#include "bind/deferral/tape.h"
#include "bind/guarded.h"
#include "bind/move/copy.h"

namespace fw::deferral {
namespace {

struct SegmentOperand {
    enum OperandKind : char { PLACE, CONSTANT, TUPLE, LIST };
    OperandKind kind;
    Py_ssize_t place = 0;
    nb::object constant;
    std::vector<SegmentOperand> items;
};

// What a step does: calls its kernel, or one of the things that kernels of Python's did.
enum class Does : char {
    CALL,
    TURN,   // (array, dims): the dimensions in this order
    SHAPE,  // (array, shape): the elements in this shape
    PART,   // (array, shape, dtype, offset, strides): this part of the array's memory
    OWN,    // (gradient, what it was made of): for a leaf, which shares it with nobody
};

struct SegmentStep {
    Does does = Does::CALL;
    nb::object kernel, other;  // `other` where the kernel answers None or NotImplemented: it does not apply
    std::vector<npy_intp> sizes, strides;  // of a view
    nb::object dtype;
    npy_intp offset = 0;
    std::vector<SegmentOperand> operands;
    nb::object names;  // of the last operands, or nothing
    std::vector<Py_ssize_t> results, last;  // places; -1: not wanted. `last`: those not read again
    std::vector<int> kinds;  // of the results that are made anew each time, as the first run finds out
    bool known = false;      // whether one has
    bool several, expects, scalar;
    bool late;  // nobody reads the results but who hands them out: they may be computed beside what follows
};

struct Segment {
    PyObject_HEAD
    vectorcallfunc call;
    std::vector<SegmentStep>* steps;
    std::vector<std::pair<Py_ssize_t, Py_ssize_t>>* externals;  // (number, place)
    std::vector<Py_ssize_t>* outputs;
    std::vector<int>* kinds;  // by place: of what is there, or of what that is a view of
    Recycled* recycled;
    Py_ssize_t places;
    PyObject *missing, *asarray;
    bool late;  // whether some step is
};

using Places = std::vector<nb::object>;

// What goes on beside a segment that runs, with all that it reads and writes.
struct Aside {
    std::vector<nb::object> kept;
    Beside beside;

    void wait() {
        if (kept.empty()) return;
        {
            Release release(beside.left() ? RELEASE_BYTES : 0);
            beside.wait();
        }
        kept.clear();
    }
};

// The kernel is asked whether it can go on beside while this lives.
struct Asking {
    explicit Asking(Aside* aside) { beside_caller = aside && aside->beside.open() ? &aside->beside : nullptr; }
    ~Asking() { beside_caller = nullptr; }
};

// What a step makes may be what others have left while this lives.
class Offering {
  public:
    Offering(Recycled& from, const std::vector<int>& kinds) : from_(from), kinds_(kinds) {
        if (kinds.empty()) return;
        offer_.count = std::min(int(kinds.size()), Offer::MOST);
        for (int i = 0; i < offer_.count; ++i) offer_.arrays[i] = from.take(kinds[size_t(i)]);
        before_ = offered_now(&offer_);
    }
    ~Offering() {
        if (!offer_.count) return;
        offered_now(before_);
        for (int i = 0; i < offer_.count; ++i)
            if (offer_.arrays[i]) from_.give_back(offer_.arrays[i], kinds_[size_t(i)]);
    }
    Offering(const Offering&) = delete;

  private:
    Recycled& from_;
    const std::vector<int>& kinds_;
    Offer offer_;
    Offer* before_ = nullptr;
};

nb::object value_of(const SegmentOperand& o, const Places& places) {
    switch (o.kind) {
    case SegmentOperand::PLACE: return places[size_t(o.place)];
    case SegmentOperand::CONSTANT: return o.constant;
    default: {
        const Py_ssize_t n = Py_ssize_t(o.items.size());
        nb::object made = nb::steal(o.kind == SegmentOperand::TUPLE ? PyTuple_New(n) : PyList_New(n));
        if (!made.is_valid()) throw nb::python_error();
        for (Py_ssize_t i = 0; i < n; ++i) {
            PyObject* item = value_of(o.items[size_t(i)], places).release().ptr();
            if (o.kind == SegmentOperand::TUPLE) PyTuple_SET_ITEM(made.ptr(), i, item);
            else PyList_SET_ITEM(made.ptr(), i, item);
        }
        return made;
    }
    }
}

// The array of a step that is done here; not valid where its operand is not what it is done with.
nb::object done_here(const SegmentStep& step, const Places& places, Aside* aside) {
    const nb::object& given = places[size_t(step.operands[0].place)];
    if (!PyArray_CheckExact(given.ptr())) return {};
    auto* a = reinterpret_cast<PyArrayObject*>(given.ptr());
    PyArray_Dims sizes{const_cast<npy_intp*>(step.sizes.data()), int(step.sizes.size())};
    PyObject* out = nullptr;
    if (step.does == Does::TURN) out = PyArray_Transpose(a, &sizes);
    else if (step.does == Does::SHAPE) {
        Array x;
        x.p = a;
        return PyArray_ISBEHAVED_RO(a) ? moving::in_shape(x, sizes.len, sizes.ptr) : nb::object();
    } else if (step.does == Does::PART) {
        PyArrayObject* owner = a;
        while (PyArray_BASE(owner) && PyArray_CheckExact(PyArray_BASE(owner)))
            owner = reinterpret_cast<PyArrayObject*>(PyArray_BASE(owner));
        npy_intp reach = step.offset;
        for (size_t d = 0; d < step.sizes.size(); ++d) reach += (step.sizes[d] - 1) * step.strides[d];
        if (reinterpret_cast<PyObject*>(PyArray_DESCR(owner)) != step.dtype.ptr() || !PyArray_IS_C_CONTIGUOUS(owner) ||
            reach + PyArray_ITEMSIZE(owner) > PyArray_NBYTES(owner))
            return {};
        Py_INCREF(step.dtype.ptr());
        out = PyArray_NewFromDescr(&PyArray_Type, reinterpret_cast<PyArray_Descr*>(step.dtype.ptr()), sizes.len,
                                   sizes.ptr, const_cast<npy_intp*>(step.strides.data()),
                                   PyArray_BYTES(owner) + step.offset, PyArray_FLAGS(owner) & NPY_ARRAY_WRITEABLE, nullptr);
        Py_INCREF(owner);
        if (out && PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(out), reinterpret_cast<PyObject*>(owner)) < 0)
            Py_CLEAR(out);
    } else {  // OWN
        const SegmentOperand& of = step.operands[1];
        const bool same = of.kind == SegmentOperand::PLACE && places[size_t(of.place)].is(given);
        if (!same && !PyArray_BASE(a)) return given;
        if (!PyArray_IS_C_CONTIGUOUS(a) || PyTypeNum_ISUSERDEF(PyArray_TYPE(a))) return {};
        if (aside) aside->wait();
        out = PyArray_NewCopy(a, NPY_CORDER);
    }
    if (!out) throw nb::python_error();
    return nb::steal(out);
}

// What the step has made for the first time is looked at: the next run may use what is left of such.
void learn(const Segment* s, SegmentStep& step, const Places& places) {
    step.known = true;
    const bool view = step.does != Does::CALL;
    for (Py_ssize_t i : step.results) {
        if (i < 0 || std::count(s->outputs->begin(), s->outputs->end(), i)) continue;
        const int kind = s->recycled->kind_of(places[size_t(i)].ptr());
        if (kind != Recycled::NONE) step.kinds.push_back(kind);
        (*s->kinds)[size_t(i)] = kind == Recycled::NONE && view ? (*s->kinds)[size_t(step.operands[0].place)] : kind;
    }
}

void run_step(const Segment* s, const SegmentStep& step, Places& places, std::vector<nb::object>& made,
              std::vector<PyObject*>& given, Aside* aside) {
    const Offering offering(*s->recycled, step.kinds);
    auto let_go = [&] {
        for (Py_ssize_t i : step.last) s->recycled->give(places[size_t(i)], (*s->kinds)[size_t(i)]);
    };
    if (step.does != Does::CALL) {
        nb::object out = done_here(step, places, aside);
        if (out.is_valid()) {
            let_go();
            if (step.results[0] >= 0) places[size_t(step.results[0])] = std::move(out);
            return;
        }
    }
    made.clear(), given.clear();
    given.push_back(nullptr);  // room for a method's own
    for (const SegmentOperand& o : step.operands) {
        if (o.kind == SegmentOperand::PLACE) given.push_back(places[size_t(o.place)].ptr());
        else if (o.kind == SegmentOperand::CONSTANT) given.push_back(o.constant.ptr());
        else {
            made.push_back(value_of(o, places));
            given.push_back(made.back().ptr());
        }
    }
    const size_t named = step.names.is_valid() ? size_t(PyTuple_GET_SIZE(step.names.ptr())) : 0;
    const size_t count = (step.operands.size() - named) | PY_VECTORCALL_ARGUMENTS_OFFSET;
    auto call = [&](const nb::object& kernel) {
        PyObject* out = PyObject_Vectorcall(kernel.ptr(), given.data() + 1, count, named ? step.names.ptr() : nullptr);
        if (!out) throw nb::python_error();
        return nb::steal(out);
    };
    nb::object out;
    if (step.late && aside) {
        if (!aside->beside.left()) aside->wait();
        const Asking asking(aside);
        const size_t before = aside->beside.size();
        out = call(step.kernel);
        if (aside->beside.size() != before) {
            for (PyObject* x : given)
                if (x) aside->kept.push_back(nb::borrow(x));
            aside->kept.push_back(out);
        }
    } else {
        if (!step.late && aside && step.does == Does::OWN) aside->wait();
        out = call(step.kernel);
    }
    if (step.other.is_valid() && (out.is_none() || out.ptr() == Py_NotImplemented)) out = call(step.other);
    made.clear();
    let_go();
    auto expect = [&](nb::handle x) {
        if (!x.is_none()) return;
        PyErr_SetNone(s->missing);
        throw nb::python_error();
    };
    if (!step.several) {
        if (step.expects) expect(out);
        if (step.scalar && !PyArray_CheckExact(out.ptr())) {
            out = nb::steal(PyObject_CallOneArg(s->asarray, out.ptr()));
            if (!out.is_valid()) throw nb::python_error();
        }
        if (step.results[0] >= 0) places[size_t(step.results[0])] = std::move(out);
        return;
    }
    const bool tuple = PyTuple_Check(out.ptr());
    if ((!tuple && !PyList_Check(out.ptr())) || Py_SIZE(out.ptr()) < Py_ssize_t(step.results.size()))
        throw nb::value_error("a kernel gave fewer results than when it was recorded");
    for (size_t i = 0; i < step.results.size(); ++i) {
        if (step.results[i] < 0) continue;
        PyObject* one = tuple ? PyTuple_GET_ITEM(out.ptr(), Py_ssize_t(i)) : PyList_GET_ITEM(out.ptr(), Py_ssize_t(i));
        if (step.expects) expect(one);
        places[size_t(step.results[i])] = nb::borrow(one);
    }
}

// segment(arrays) -> the outputs; segment(arrays, notes): the same, and the list has what is in every place.
PyObject* segment_call(PyObject* self, PyObject* const* args, size_t flags, PyObject*) {
    const auto* s = reinterpret_cast<Segment*>(self);
    const Py_ssize_t n = PyVectorcall_NARGS(flags);
    if (n < 1 || n > 2 || !PyList_CheckExact(args[0]) || (n == 2 && !PyList_CheckExact(args[1]))) {
        PyErr_SetString(PyExc_TypeError, "wanted a list of arrays, and perhaps a list for notes");
        return nullptr;
    }
    return guarded([&]() -> PyObject* {
        Places places(size_t(s->places));
        for (auto [number, place] : *s->externals) {
            PyObject* x = PyList_GetItem(args[0], number);
            if (!x) throw nb::python_error();
            places[size_t(place)] = nb::borrow(x);
        }
        std::vector<nb::object> made;
        std::vector<PyObject*> given;
        std::optional<Aside> aside;  // what is left of it is waited for before the places go
        if (s->late && n == 1) aside.emplace();
        for (SegmentStep& step : *s->steps) {
            run_step(s, step, places, made, given, aside ? &*aside : nullptr);
            if (!step.known) learn(s, step, places);
            if (n == 2)
                for (Py_ssize_t i : step.results)
                    if (i >= 0 && PyArray_CheckExact(places[size_t(i)].ptr()) &&
                        PyList_Append(args[1], nb::make_tuple(i, places[size_t(i)].attr("shape"),
                                                              places[size_t(i)].attr("dtype")).ptr()) < 0)
                        throw nb::python_error();
        }
        if (aside) aside->wait();
        PyObject* found = PyTuple_New(Py_ssize_t(s->outputs->size()));
        if (!found) return nullptr;
        for (size_t i = 0; i < s->outputs->size(); ++i)
            PyTuple_SET_ITEM(found, Py_ssize_t(i), places[size_t((*s->outputs)[i])].inc_ref().ptr());
        return found;
    });
}

void segment_free(PyObject* self) {
    auto* s = reinterpret_cast<Segment*>(self);
    delete s->steps;
    delete s->externals;
    delete s->outputs;
    delete s->kinds;
    delete s->recycled;
    Py_XDECREF(s->missing), Py_XDECREF(s->asarray);
    PyTypeObject* type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

// An operand as Python says it: a place as an int, else ("c", constant), ("t", [operands]) or ("l", [operands]).
SegmentOperand operand(nb::handle given, Py_ssize_t places) {
    SegmentOperand o{SegmentOperand::PLACE};
    if (PyLong_CheckExact(given.ptr())) {
        o.place = nb::cast<Py_ssize_t>(given);
        if (o.place < 0 || o.place >= places) throw nb::value_error("no such place");
        return o;
    }
    auto t = nb::cast<nb::tuple>(given);
    const auto kind = nb::cast<std::string>(t[0]);
    o.kind = kind == "c" ? SegmentOperand::CONSTANT : kind == "t" ? SegmentOperand::TUPLE : SegmentOperand::LIST;
    if (kind == "c") o.constant = nb::object(t[1]);
    else
        for (nb::handle x : nb::cast<nb::list>(t[1])) o.items.push_back(operand(x, places));
    return o;
}

PyTypeObject* segment_type = nullptr;

std::vector<npy_intp> sizes_in(nb::handle tuple) {
    std::vector<npy_intp> all;
    for (nb::handle x : nb::cast<nb::tuple>(tuple)) all.push_back(nb::cast<npy_intp>(x));
    return all;
}

// What the word says: a view is noted, since its operands are numbers.
void note_view(SegmentStep& step, const std::string& word) {
    if (word == "own") {
        if (step.operands.size() != 2) throw nb::value_error("a gradient, and what it was made of");
        step.does = Does::OWN;
    } else if (word == "turn" || word == "shape") {
        step.does = word == "turn" ? Does::TURN : Does::SHAPE;
        step.sizes = sizes_in(step.operands.at(1).constant);
    } else if (word == "part") {
        step.does = Does::PART;
        step.sizes = sizes_in(step.operands.at(1).constant);
        step.dtype = step.operands.at(2).constant;
        step.offset = nb::cast<npy_intp>(step.operands.at(3).constant);
        step.strides = sizes_in(step.operands.at(4).constant);
        if (step.sizes.size() != step.strides.size() || !PyArray_DescrCheck(step.dtype.ptr()) || step.offset < 0)
            throw nb::value_error("a part of an array");
        for (npy_intp n : step.sizes)
            if (n < 1) step.does = Does::CALL;
        for (npy_intp n : step.strides)
            if (n < 0) step.does = Does::CALL;
    } else {
        throw nb::value_error("no such thing to do");
    }
    if (step.operands[0].kind != SegmentOperand::PLACE) throw nb::value_error("of an array");
}

// steps: (kernel, other or None, operands, names, results, places not read again, expects, scalar, word or "", late)
nb::object make_segment(Py_ssize_t places, nb::list externals, nb::list steps, nb::list outputs, nb::object missing,
                        nb::object asarray) {
    auto* s = PyObject_New(Segment, segment_type);
    if (!s) throw nb::python_error();
    s->call = segment_call;
    s->places = places;
    s->late = false;
    s->steps = new std::vector<SegmentStep>;
    s->externals = new std::vector<std::pair<Py_ssize_t, Py_ssize_t>>;
    s->outputs = new std::vector<Py_ssize_t>;
    s->kinds = new std::vector<int>(size_t(places), Recycled::NONE);
    s->recycled = new Recycled;
    s->missing = missing.release().ptr(), s->asarray = asarray.release().ptr();
    nb::object made = nb::steal(reinterpret_cast<PyObject*>(s));
    auto place = [&](nb::handle h, bool may_miss) {
        const auto i = nb::cast<Py_ssize_t>(h);
        if (i < (may_miss ? -1 : 0) || i >= places) throw nb::value_error("no such place");
        return i;
    };
    for (nb::handle e : externals) {
        auto t = nb::cast<nb::tuple>(e);
        s->externals->emplace_back(nb::cast<Py_ssize_t>(t[0]), place(t[1], false));
    }
    for (nb::handle given : steps) {
        auto t = nb::cast<nb::tuple>(given);
        SegmentStep step;
        step.kernel = nb::object(t[0]);
        if (!t[1].is_none()) step.other = nb::object(t[1]);
        for (nb::handle o : nb::cast<nb::list>(t[2])) step.operands.push_back(operand(o, places));
        if (nb::len(nb::object(t[3]))) step.names = nb::object(t[3]);
        step.several = !PyLong_CheckExact(nb::object(t[4]).ptr());
        if (step.several)
            for (nb::handle r : nb::cast<nb::list>(t[4])) step.results.push_back(place(r, true));
        else step.results.push_back(place(nb::object(t[4]), true));
        for (nb::handle r : nb::cast<nb::list>(t[5])) step.last.push_back(place(r, false));
        step.expects = nb::cast<bool>(t[6]);
        step.scalar = nb::cast<bool>(t[7]);
        if (auto word = nb::cast<std::string>(t[8]); !word.empty()) note_view(step, word);
        step.late = nb::cast<bool>(t[9]) && step.does == Does::CALL;
        s->late = s->late || step.late;
        s->steps->push_back(std::move(step));
    }
    for (nb::handle o : outputs) s->outputs->push_back(place(o, false));
    return made;
}

PyMemberDef segment_members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Segment, call), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};
PyType_Slot segment_slots[] = {{Py_tp_dealloc, any(segment_free)}, {Py_tp_members, segment_members},
                       {Py_tp_call, any(PyVectorcall_Call)}, {0, nullptr}};
PyType_Spec segment_spec = {"framework._native.Segment", sizeof(Segment), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, segment_slots};

}  // namespace
}  // namespace fw::deferral

namespace fw {

FW_BIND(m) {
    using namespace deferral;
    segment_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&segment_spec));
    if (!segment_type) throw nb::python_error();
    m.def("make_segment", &make_segment);
}

}  // namespace fw
