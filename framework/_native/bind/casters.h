// Lists and strings as parameters. nanobind's own casters are `noexcept` and make vectors: without memory for one the
// process would end. These remember that there was none, and say so (MemoryError) when the function asks for its value.
#pragma once

#include <nanobind/nanobind.h>

#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/few.h"

namespace nanobind::detail {

template <class Value_> struct remembering_caster {
    using Value = Value_;
    template <class T> using Cast = movable_cast_t<T>;
    template <class T> static constexpr bool can_cast() { return true; }

    explicit operator Value*() { return &there(); }
    explicit operator Value&() { return there(); }
    explicit operator Value&&() { return std::move(there()); }

  protected:
    // Does `make`, which gives whether the object fits; without memory it may well fit.
    template <class F> bool remembers(F&& make) noexcept {
        try {
            return make();
        } catch (const std::bad_alloc&) {
            no_memory = true;
            return true;
        }
    }
    Value value;

  private:
    Value& there() {
        if (no_memory) throw std::bad_alloc();
        return value;
    }
    bool no_memory = false;
};

inline void make_room(fw::Sizes&, size_t) {}
template <class Entry> void make_room(std::vector<Entry>& values, size_t count) { values.reserve(count); }

// What has `push_back`, of a sequence.
template <class List> struct list_caster_of : remembering_caster<List> {
    using Entry = typename List::value_type;
    static constexpr auto Name =
        const_name("collections.abc.Sequence[") + make_caster<Entry>::Name + const_name("]");

    bool from_python(handle src, uint32_t flags, cleanup_list* cleanup) noexcept {
        if (!PySequence_Check(src.ptr()) || PyUnicode_Check(src.ptr()) || PyBytes_Check(src.ptr())) return false;
        const object owner = steal(PySequence_Fast(src.ptr(), ""));
        if (!owner) {
            const bool no_memory = PyErr_ExceptionMatches(PyExc_MemoryError);
            PyErr_Clear();
            return no_memory && this->remembers([]() -> bool { throw std::bad_alloc(); });
        }
        return this->remembers([&] {
            make_caster<Entry> caster;
            const Py_ssize_t size = PySequence_Fast_GET_SIZE(owner.ptr());
            PyObject** items = PySequence_Fast_ITEMS(owner.ptr());
            make_room(this->value, size_t(size));
            for (Py_ssize_t i = 0; i < size; ++i) {
                if (!caster.from_python(items[i], flags_for_local_caster<Entry>(flags), cleanup) ||
                    !caster.template can_cast<Entry>())
                    return false;
                this->value.push_back(caster.operator cast_t<Entry>());
            }
            return true;
        });
    }
};

template <> struct type_caster<fw::Sizes> : list_caster_of<fw::Sizes> {};

template <class Entry> struct type_caster<std::vector<Entry>> : list_caster_of<std::vector<Entry>> {
    static handle from_cpp(const std::vector<Entry>& values, rv_policy policy, cleanup_list* cleanup) noexcept {
        object list = steal(PyList_New(Py_ssize_t(values.size())));
        for (size_t i = 0; list && i < values.size(); ++i) {
            handle each = make_caster<Entry>::from_cpp(values[i], policy, cleanup);
            if (!each) return {};
            PyList_SET_ITEM(list.ptr(), Py_ssize_t(i), each.ptr());
        }
        return list.release();
    }
};

template <> struct type_caster<std::string> : remembering_caster<std::string> {
    static constexpr auto Name = const_name("str");

    bool from_python(handle src, uint32_t, cleanup_list*) noexcept {
        if (!PyUnicode_CheckExact(src.ptr())) return false;
        Py_ssize_t size;
        const char* text = PyUnicode_AsUTF8AndSize(src.ptr(), &size);
        if (!text) {
            PyErr_Clear();
            return false;
        }
        return remembers([&] {
            value.assign(text, size_t(size));
            return true;
        });
    }

    static handle from_cpp(const std::string& text, rv_policy, cleanup_list*) noexcept {
        return PyUnicode_FromStringAndSize(text.data(), Py_ssize_t(text.size()));
    }
};

}  // namespace nanobind::detail
