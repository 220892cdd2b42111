// CRC-32 of what Python has as bytes.
#include "bind/array.h"
#include "data/checksum.h"

namespace fw {
namespace {

uint32_t crc32_of(nb::handle data, uint32_t value) {
    Py_buffer view;
    if (PyObject_GetBuffer(data.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
    uint32_t crc;
    {
        Release release(view.len);
        crc = crc32(static_cast<const unsigned char*>(view.buf), size_t(view.len), value);
    }
    PyBuffer_Release(&view);
    return crc;
}

}  // namespace

FW_BIND(m) {
    if (has_crc32()) m.def("crc32", &crc32_of, nb::arg("data"), nb::arg("value") = 0);
}

}  // namespace fw
