// Elementwise programs made ready: names of instructions become functions.
#include "program/program.h"

#include <cmath>
#include <limits>

#include "program/instructions.h"

namespace fw {

namespace {

template <class T> void compile_as(const Program& program, Compiled<T>& made) {
    for (double c : program.constants) {
        if constexpr (std::numeric_limits<T>::is_integer) {  // what a type cannot hold must not be converted to it
            constexpr double least = double(std::numeric_limits<T>::min());
            if (!(c >= least && c < -least && std::trunc(c) == c)) return;
        }
        made.constants.push_back(T(c));
    }
    for (const Step& s : program.steps) {
        const Entry<T>* found = instruction<T>(s.name);
        if (!found) return;
        made.steps.push_back({found->run, s});
        made.costs.push_back(found->cost);
        made.fixed.push_back(found->fixed);
        made.cost += found->cost;
    }
    made.both = both_of<T>(program.steps, program.result());
    made.fits = true;
}

}  // namespace

void Program::compile() {
    compile_as(*this, f32);
    compile_as(*this, f64);
    compile_as(*this, i32);
    compile_as(*this, i64);
    narrow = narrow_form_of(*this);
}

const char* Program::wrong() const {
    const int64_t slots = int64_t(arguments) + int64_t(constants.size()) + registers + 1;
    if (arguments < 0 || registers < 0 || slots > MOST_SLOTS || truth.size() != size_t(arguments))
        return "a program has at most 63 slots";
    if (steps.empty()) return "a program has some steps";
    if (once < 0 || once > int(steps.size())) return "no so many steps";
    for (const Step& s : steps) {
        for (int slot : {s.d, s.a, s.b, s.c})
            if (slot < 0 || slot > result()) return "no such slot";
        if (s.d < first_register()) return "arguments and constants are read only";
    }
    for (int i = 0; i < once; ++i) {  // they fill whole buffers, for which the result may have no room
        const Step& s = steps[size_t(i)];
        for (int slot : {s.d, s.a, s.b, s.c})
            if (slot == result()) return "steps that are done once leave the result alone";
    }
    return nullptr;
}

std::vector<const char*> instruction_names_of_all() {
    std::vector<const char*> names;
    for (const auto& entry : instructions<float>()) names.push_back(entry.name);
    for (const auto& entry : instructions<int64_t>()) names.push_back(entry.name);
    return names;
}

}  // namespace fw
