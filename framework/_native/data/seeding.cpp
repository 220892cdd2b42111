// Starting Python's and NumPy's Mersenne Twisters anew for sample after sample, many seeds at once.
//
// M. Matsumoto, T. Nishimura: Mersenne Twister, ACM TOMACS 8, 1998; the seedings are those of mt19937ar.c (2002).
// A seeding is one long chain of multiplications, so it takes several microseconds; the seeds of a row are known
// beforehand, and their chains run side by side in the lanes of a vector.
#include <cstring>

#include "bind/move/copy.h"

namespace fw::moving {
namespace {

constexpr int N = 624;
constexpr int L = lanes<uint32_t>;
using Words = Vec<uint32_t>;

uint64_t mix(uint64_t x) {  // splitmix64, as data/randomness.py has it
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

// x[i] from x[i - 1], before the two differ
template <class V> FW_INLINE V turned(V x) { return x ^ (x >> 30); }

struct Twister {
    uint32_t words[N];
};

// mt19937ar's init_genrand for the lanes' seeds
void seed_by_number(Words seed, Words* mt) {
    mt[0] = seed;
    for (uint32_t i = 1; i < N; ++i) mt[i] = turned(mt[i - 1]) * 1812433253u + i;
}

// mt19937ar's init_by_array for the lanes' seeds of two words
void seed_by_words(Words low, Words high, Words* mt) {
    static const Twister first = [] {
        Twister t;
        t.words[0] = 19650218u;
        for (uint32_t i = 1; i < N; ++i) t.words[i] = turned(t.words[i - 1]) * 1812433253u + i;
        return t;
    }();
    Words last = splat(first.words[0]);
    for (int k = 0; k < N; ++k) {  // places 1 to 623, and 1 once more
        int i = k < N - 1 ? k + 1 : 1;
        Words old = k < N - 1 ? splat(first.words[i]) : mt[1];
        last = (old ^ (turned(last) * 1664525u)) + (k % 2 ? high + 1u : low);
        mt[i] = last;
        if (i == N - 1) mt[0] = last;
    }
    for (uint32_t k = 0; k < N - 1; ++k) {
        uint32_t i = k < N - 2 ? k + 2 : 1;
        last = (mt[i] ^ (turned(last) * 1566083941u)) - i;
        mt[i] = last;
    }
    mt[0] = splat(0x80000000u);
}

struct PythonState {  // of _random.Random, behind the object's head
    int index;
    uint32_t words[N];
};
struct NumpyState {
    uint32_t words[N];
    int position;
};
struct BitGenerator {  // how numpy/random/bitgen.h begins
    void* state;
};

class Starter {
public:
    // `python`: a random.Random itself, whose state lies `head` bytes from its beginning.
    Starter(nb::object python, size_t head, nb::object seed_numpy) : python_(python), seed_numpy_(seed_numpy) {
        const PyTypeObject* type = Py_TYPE(python.ptr());
        const size_t size = size_t(type->tp_basicsize);
        if (std::strcmp(type->tp_name, "Random") || head > size || size - head < sizeof(PythonState) ||
            head < sizeof(PyObject))
            throw nb::type_error("Starter: wanted a random.Random and where its state lies");
        state_ = reinterpret_cast<PythonState*>(reinterpret_cast<char*>(python.ptr()) + head);
    }

    // NumPy's generator from now on, an MT19937; its saved normal number is unknown. None: there is no such one.
    void numpy_is(nb::object bits) {
        numpy_ = nullptr;
        clean_ = false;
        if (bits.is_none()) return;
        if (std::strcmp(Py_TYPE(bits.ptr())->tp_name, "numpy.random._mt19937.MT19937"))
            throw nb::type_error("Starter: wanted NumPy's MT19937, or None");
        nb::object capsule = bits.attr("capsule");
        auto* generator = static_cast<BitGenerator*>(PyCapsule_GetPointer(capsule.ptr(), "BitGenerator"));
        if (!generator) throw nb::python_error();
        numpy_ = static_cast<NumpyState*>(generator->state);
        numpy_owner_ = bits;
    }

    // Starts both for this place of a row; returns its key, or None if it must be done without this.
    nb::object start(uint64_t row, uint64_t place) {
        if (!known_ || row != row_ || place / L != block_) prepare(row, place / L);
        int lane = int(place % L);
        uint64_t key = keys_[lane];
        if (!(key >> 32) || !numpy_) return nb::none();
        memcpy(state_->words, python_states_[lane].words, sizeof(Twister));
        state_->index = N;
        nb::setattr(python_, "gauss_next", nb::none());
        const Twister& wanted = numpy_states_[lane];
        if (untouched()) {
            memcpy(numpy_->words, wanted.words, sizeof(Twister));
        } else {  // numbers were drawn: a second normal number may be kept, which only NumPy can drop
            seed_numpy_(nb::int_(uint32_t(key)));
            clean_ = true;
        }
        memcpy(installed_.words, numpy_->words, sizeof(Twister));
        return nb::int_(key);
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
        return clean_ && numpy_ && numpy_->position == N && !memcmp(numpy_->words, installed_.words, sizeof(Twister));
    }

    void prepare(uint64_t row, uint64_t block) {
        alignas(64) Words mt[N];
        Words low, high;
        for (int i = 0; i < L; ++i) {
            keys_[i] = mix(row + block * L + uint64_t(i));
            low[i] = uint32_t(keys_[i]), high[i] = uint32_t(keys_[i] >> 32);
        }
        seed_by_words(low, high, mt);
        spread(mt, python_states_);
        seed_by_number(low, mt);
        spread(mt, numpy_states_);
        row_ = row, block_ = block, known_ = true;
    }

    static void spread(const Words* mt, Twister* states) {
        Block b;
        b.add(L, 4, sizeof(Twister));
        b.add(N, sizeof(Words), 4);
        copy_block(b, 4, reinterpret_cast<const char*>(mt), reinterpret_cast<char*>(states));
    }

    nb::object python_, seed_numpy_, numpy_owner_;
    PythonState* state_;
    NumpyState* numpy_ = nullptr;
    bool known_ = false, clean_ = false;
    uint64_t row_ = 0, block_ = 0, keys_[L];
    Twister python_states_[L], numpy_states_[L], installed_;
};

}  // namespace

FW_BIND(m) {
    nb::class_<Starter>(m, "Starter")
        .def(nb::init<nb::object, size_t, nb::object>())
        .def("numpy_is", &Starter::numpy_is, nb::arg("bits").none())
        .def("start", &Starter::start)
        .def("numpy_state", &Starter::numpy_state)
        .def("set_numpy_state", &Starter::set_numpy_state)
        .def("python_state", &Starter::python_state)
        .def("set_python_state", &Starter::set_python_state);
}

}  // namespace fw::moving
