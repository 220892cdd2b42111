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
    // `numpy_anew(key)`: gives NumPy one of the kind known here, started.
    Starter(nb::object python, size_t head, nb::object seed_numpy, nb::object numpy_bits, nb::object numpy_anew)
        : python_(python), seed_numpy_(seed_numpy), numpy_bits_(numpy_bits), numpy_anew_(numpy_anew) {
        const PyTypeObject* type = Py_TYPE(python.ptr());
        const size_t size = size_t(type->tp_basicsize);
        if (std::strcmp(type->tp_name, "Random") || head > size || size - head < sizeof(PythonState) ||
            head < sizeof(PyObject))
            throw nb::type_error("Starter: wanted a random.Random and where its state lies");
        state_ = reinterpret_cast<PythonState*>(reinterpret_cast<char*>(python.ptr()) + head);
    }

    // What follows belongs to the row `mix(number)`.
    void row(uint64_t number) { row_ = mix(number); }

    // Starts all for this place of the row.
    void start(uint64_t place) {
        const uint64_t key = mix(row_ + place);
        start_default(key);
        start_python(key);
        look_again();
        start_numpy(key);
    }

    // Adds the samples at `indices` to `samples`, and starts the generators for each: the default one always, as its seed can
    // be asked for; Python's and NumPy's for the first, and where the sample before drew from them.
    void load(nb::object dataset, nb::list indices, nb::list samples) {
        for (size_t i = 0; i < indices.size(); ++i) {
            if (i) start_used(i);
            else start(0);
            const nb::object index = indices[i];
            const nb::object sample = nb::steal(PyObject_GetItem(dataset.ptr(), index.ptr()));
            if (!sample.is_valid()) throw nb::python_error();
            samples.append(sample);
        }
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

    // NumPy keeps no normal number now.
    void has_no_normal() {
        if (!numpy_) return;
        clean_ = true;
        numpy_seen_.see(numpy_->position, numpy_->words);
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
    // How a twister stood: some words tell, as all are made anew after the last has been given.
    struct Seen {
        static constexpr int FIRST = 16;
        int position = -1;
        uint32_t first[FIRST];
        void see(int at, const uint32_t* words) { position = at, std::copy_n(words, FIRST, first); }
        bool still(int at, const uint32_t* words) const { return at == position && std::equal(first, first + FIRST, words); }
    };

    bool untouched() const { return clean_ && numpy_ && numpy_seen_.still(numpy_->position, numpy_->words); }

    void look_again() {
        if (!numpy_bits_().is(numpy_owner_)) look();
    }

    void start_python(uint64_t key) {
        seeding::start(key, 0, state_->words);
        state_->index = Twister::N;
        nb::setattr(python_, "gauss_next", nb::none());
        python_seen_.see(state_->index, state_->words);
    }

    void start_numpy(uint64_t key) {
        if (!numpy_) {
            numpy_anew_(key);
            look();
            return has_no_normal();
        }
        if (!untouched()) seed_numpy_(nb::int_(uint32_t(key)));  // a second normal number may be kept, which only NumPy can drop
        seeding::start(key, 1, numpy_->words);
        numpy_->position = Twister::N;
        has_no_normal();
    }

    void start_used(uint64_t place) {
        const uint64_t key = mix(row_ + place);
        start_default(key);
        if (!python_seen_.still(state_->index, state_->words)) start_python(key);
        look_again();
        if (!untouched()) start_numpy(key);
    }

    nb::object python_, seed_numpy_, numpy_bits_, numpy_anew_, numpy_owner_;
    PythonState* state_;
    NumpyState* numpy_ = nullptr;
    uint64_t row_ = 0;
    bool clean_ = false;  // whether NumPy keeps no normal number, unless it drew since: its state was `numpy_seen_` then
    Seen numpy_seen_, python_seen_;
};

}  // namespace

FW_BIND(m) {
    nb::class_<Starter>(m, "Starter")
        .def(nb::init<nb::object, size_t, nb::object, nb::object, nb::object>())
        .def("row", &Starter::row)
        .def("load", &Starter::load)
        .def("look", &Starter::look)
        .def("has_no_normal", &Starter::has_no_normal)
        .def("start", &Starter::start)
        .def("numpy_state", &Starter::numpy_state)
        .def("set_numpy_state", &Starter::set_numpy_state)
        .def("python_state", &Starter::python_state)
        .def("set_python_state", &Starter::set_python_state);
}

}  // namespace fw::seeding
