// Arrays of a segment that nobody has any more, for the next ones of their shape and type: small kernels take about as
// long as it takes to make their results and to take those apart again.
#pragma once

#include "bind/array.h"

namespace fw::deferral {

class Recycled {
  public:
    static constexpr int NONE = -1;

    Recycled() = default;
    Recycled(const Recycled&) = delete;
    ~Recycled();

    int kind_of(PyObject* array);   // of a new one; NONE if such are not kept
    PyObject* take(int kind);       // one of this kind, for the caller; nullptr if none is left
    // Lets go of what may be an array of this kind, or a view of one, which is kept if nobody else has it.
    void give(nb::object& array, int kind);
    void give_back(PyObject* array, int kind);  // what was taken, and not used

  private:
    struct Kind {
        int type;
        npy_intp bytes;
        std::vector<npy_intp> sizes;
        std::vector<PyObject*> free;

        bool suits(PyArrayObject* a) const;
    };
    void put(nb::object& array, Kind& kind);

    std::vector<Kind> kinds;
    npy_intp bytes = 0;
};

}  // namespace fw::deferral
