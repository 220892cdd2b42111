// The extension module: one source, compiled once for each instruction set.
#define FW_IMPORTS_NUMPY
#include <algorithm>

#include "bind/array.h"
#include "bind/tensors/placed.h"
#include "base/pool.h"
#include "base/pool_internal.h"

namespace fw {
namespace {

// Whether Ctrl-C means Python's KeyboardInterrupt. A program's own handler must not run in the middle of a kernel,
// and need not raise: the kernel goes on, and Python calls it afterwards.
bool interrupt_raises() {
    nb::object signal = nb::module_::import_("signal");
    return nb::object(signal.attr("getsignal")(signal.attr("SIGINT"))).is(signal.attr("default_int_handler"));
}

bool goes_on(void* release) {
    PyThreadState*& state = static_cast<Release*>(release)->state;
    PyEval_RestoreThread(state);
    bool on = true;
    if (PyOS_InterruptOccurred()) {
        try {
            on = !interrupt_raises();
        } catch (nb::python_error&) {
        }
        if (on) PyErr_SetInterrupt();
        else PyErr_SetNone(PyExc_KeyboardInterrupt);
    }
    state = PyEval_SaveThread();
    return on;
}

}  // namespace

void Release::let_go(Writes into) {
    state = PyEval_SaveThread();
    if (into == Writes::results && !tensors::is_awaited()) listener() = {goes_on, this, std::chrono::steady_clock::now()};
}

void Release::take_back() {
    listener() = {};
    PyEval_RestoreThread(state);
}

}  // namespace fw

static bool import_numpy() {
    import_array1(false);
    return true;
}

NB_MODULE(FW_MODULE, m) {
    if (!import_numpy()) throw nb::python_error();
    nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
        try {
            std::rethrow_exception(thrown);
        } catch (const fw::Interrupted&) {  // the error is set
        }
    });
    m.def("threads", &fw::threads);
    static constexpr int MOST_THREADS = 1024;
    m.def("set_threads", [](int n) { fw::set_threads(std::min(n, MOST_THREADS)); });
    m.def("set_near", &fw::set_near);
    m.def("simulate_threads", [](int n) { return fw::simulate_threads(std::clamp(n, 0, MOST_THREADS)); });
    m.def("flush_denormals", &fw::flush_denormals);
    m.def("set_flush_denormals", &fw::set_flush_denormals);
    m.attr("FLUSH_BOTH") = fw::FLUSH_BOTH;
    m.def("flush_denormals_here", [](unsigned which) { return fw::flush_denormals_here(which); });
    for (fw::Binder* b = fw::Binder::first(); b; b = b->next) b->bind(m);
}
