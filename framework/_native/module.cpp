// The extension module: one source, compiled once for each instruction set.
#define FW_IMPORTS_NUMPY
#include "array.h"
#include "pool.h"
#include "pool_internal.h"

static bool import_numpy() {
    import_array1(false);
    return true;
}

NB_MODULE(FW_MODULE, m) {
    if (!import_numpy()) throw nb::python_error();
    m.def("threads", &fw::threads);
    m.def("set_threads", &fw::set_threads);
    m.def("simulate_threads", &fw::simulate_threads);
    m.def("flush_denormals", &fw::flush_denormals);
    m.def("set_flush_denormals", &fw::set_flush_denormals);
    for (fw::Binder* b = fw::Binder::first(); b; b = b->next) b->bind(m);
}
