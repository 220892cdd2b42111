// Python's and NumPy's Mersenne Twisters, started anew where their states lie, and with them the default generator.
#include <algorithm>
#include <cstring>

#include "bind/array.h"
#include "bind/random/default.h"
#include "data/seeding.h"

namespace fw::seeding {
namespace {

struct PythonState {  // of _random.Random, behind the object's head
    int index;
    uint32_t words[Twister::N];
};
struct NumpyState {
    uint32_t words[Twister::N];
    int position;
};
struct BitGenerator {  // how numpy/random/bitgen.h begins
    void* state;
};

class Starter {
public:
    // `python`: a random.Random itself, whose state lies `head` bytes from its beginning. `numpy_bits()`: NumPy's generator.
    Starter(nb::object python, size_t head, nb::object seed_numpy, nb::object numpy_bits)
        : python_(python), seed_numpy_(seed_numpy), numpy_bits_(numpy_bits) {
        const PyTypeObject* type = Py_TYPE(python.ptr());
        const size_t size = size_t(type->tp_basicsize);
        if (std::strcmp(type->tp_name, "Random") || head > size || size - head < sizeof(PythonState) ||
            head < sizeof(PyObject))
            throw nb::type_error("Starter: wanted a random.Random and where its state lies");
        state_ = reinterpret_cast<PythonState*>(reinterpret_cast<char*>(python.ptr()) + head);
    }

    // Looks at NumPy's generator again, whose saved normal number is unknown then.
    void look() {
        numpy_ = nullptr;
        clean_ = false;
        nb::object bits = numpy_owner_ = numpy_bits_();
        if (std::strcmp(Py_TYPE(bits.ptr())->tp_name, "numpy.random._mt19937.MT19937")) return;  // another kind
        nb::object capsule = bits.attr("capsule");
        auto* generator = static_cast<BitGenerator*>(PyCapsule_GetPointer(capsule.ptr(), "BitGenerator"));
        if (!generator) throw nb::python_error();
        numpy_ = static_cast<NumpyState*>(generator->state);
    }

    // Starts all for this place of a row; false if it must be done without this.
    bool start(uint64_t row, uint64_t place) {
        if (!numpy_bits_().is(numpy_owner_)) look();
        if (!numpy_) return false;
        const uint64_t key = mix(row + place);
        seeding::start(key, 0, state_->words);
        state_->index = Twister::N;
        nb::setattr(python_, "gauss_next", nb::none());
        if (!untouched()) seed_numpy_(nb::int_(uint32_t(key)));  // a second normal number may be kept, which only NumPy can drop
        seeding::start(key, 1, numpy_->words);
        numpy_->position = Twister::N;
        has_no_normal();
        return start_default(key);
    }

    // NumPy keeps no normal number now.
    void has_no_normal() {
        if (!numpy_) return;
        clean_ = true;
        position_ = numpy_->position;
        std::copy_n(numpy_->words, FIRST, first_);
    }

    nb::bytes numpy_state() const {
        if (!numpy_) throw nb::value_error("Starter: there is no generator of NumPy's");
        return nb::bytes(reinterpret_cast<const char*>(numpy_), sizeof(NumpyState));
    }

    // Puts a state back if no number was drawn since the last start, so that no normal number can be kept.
    bool set_numpy_state(nb::bytes state) {
        if (!untouched()) return false;
        if (state.size() != sizeof(NumpyState)) throw nb::value_error("Starter: that is no state of MT19937");
        memcpy(numpy_, state.c_str(), sizeof(NumpyState));
        return true;
    }

    nb::bytes python_state() const { return nb::bytes(reinterpret_cast<const char*>(state_), sizeof(PythonState)); }
    void set_python_state(nb::bytes state) {
        if (state.size() != sizeof(PythonState)) throw nb::value_error("Starter: that is no state of random.Random");
        memcpy(state_, state.c_str(), sizeof(PythonState));
    }

private:
    bool untouched() const {
        return clean_ && numpy_ && numpy_->position == position_ && std::equal(first_, first_ + FIRST, numpy_->words);
    }

    static constexpr int FIRST = 16;  // words by which a state is known: all are made anew after the last has been given
    nb::object python_, seed_numpy_, numpy_bits_, numpy_owner_;
    PythonState* state_;
    NumpyState* numpy_ = nullptr;
    bool clean_ = false;  // whether NumPy keeps no normal number, unless it drew since: its state was this then
    int position_ = 0;
    uint32_t first_[FIRST];
};

}  // namespace

FW_BIND(m) {
    nb::class_<Starter>(m, "Starter")
        .def(nb::init<nb::object, size_t, nb::object, nb::object>())
        .def("look", &Starter::look)
        .def("has_no_normal", &Starter::has_no_normal)
        .def("start", &Starter::start)
        .def("numpy_state", &Starter::numpy_state)
        .def("set_numpy_state", &Starter::set_numpy_state)
        .def("python_state", &Starter::python_state)
        .def("set_python_state", &Starter::set_python_state);
}

}  // namespace fw::seeding
