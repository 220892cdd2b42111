// Elementwise programs, run block by block: here once for the module and for libframework.
#include <cstring>

#include "base/scratch.h"
#include "base/simd.h"
#include "program/program.h"

namespace fw {
namespace {

alignas(64) thread_local unsigned char memory[SCRATCH_BYTES];  // of a block

// Truth values between lanes of ones or zeros and NumPy's bytes, which are 1 or 0.
template <class T> void narrow(const T* lane_values, char* to, int64_t n) {
    typedef Int<T> __attribute__((may_alias)) Lane;
    const Lane* from = reinterpret_cast<const Lane*>(lane_values);
    for (int64_t i = 0; i < n; ++i) to[i] = char(from[i] & 1);
}

template <class T> void widen(const char* from, T* lane_values, int64_t n) {
    typedef Int<T> __attribute__((may_alias)) Lane;
    Lane* to = reinterpret_cast<Lane*>(lane_values);
    for (int64_t i = 0; i < n; ++i) to[i] = Lane(-Lane(from[i]));
}

}  // namespace

// Whether the arguments of the first steps are numbers: their buffers are filled once, as a whole.
template <class T> bool Run<T>::settings_are_numbers() const {
    for (int i = 0; i < program.once; ++i)
        for (int s : {compiled.steps[i].second.a, compiled.steps[i].second.b, compiled.steps[i].second.c})
            if (s < program.arguments && !operands[s].constant) return false;
    return true;
}

// Numbers in a block. Where operands are broadcast, blocks end where their lines do: no line is copied then.
template <class T> int64_t Run<T>::block() const {
    int64_t buffers = program.registers + int64_t(program.constants.size()) + 2;
    bool flat = true;
    for (const Operand& o : operands) {
        buffers += !o.flat;
        flat = flat && (o.flat || o.constant);
    }
    const int64_t fit = L1_BYTES / int64_t(sizeof(T)) / buffers / 64 * 64;
    const int64_t limit = compiled.steps.size() > 1 ? STEPS_BLOCK : MOST_BLOCK;
    const int64_t most = std::min(std::max(fit, LEAST_BLOCK), limit), line = flat ? 0 : layout.line();
    if (line < LEAST_BLOCK) return most;
    if (line <= most) return most / line * line;
    const int64_t parts = (line + most - 1) / most;
    return line % parts == 0 ? line / parts : most;
}

template <class T>
const T* Run<T>::argument(const Operand& o, bool truth, T* buffer, bool& filled, int64_t at, int64_t n,
                          int64_t size) const {
    if (!buffer) return reinterpret_cast<const T*>(o.data) + at;
    if (o.constant) {
        if (!filled) {
            T value;
            if (truth) value = bits<T>(Int<T>(-(*o.data != 0)));
            else std::memcpy(&value, o.data, sizeof value);
            std::fill(buffer, buffer + size, value);
            filled = true;
        }
        return buffer;
    }
    if (truth) {
        char room[MOST_BLOCK];
        widen(o.flat ? o.data + at : layout.template gather<char>(o, room, at, n), buffer, n);
        return buffer;
    }
    return layout.template gather<T>(o, buffer, at, n);
}

// Computes the elements [begin, end) block by block: into `to`, or where `use` then finds them.
template <class T> void Run<T>::blocks(int64_t begin, int64_t end, T* to, Use use) const {
    const int64_t whole = block(), size = (std::min(whole, end - begin) + 63) / 64 * 64;
    T* free = reinterpret_cast<T*>(asked_once(memory));
    T* slots[MOST_SLOTS];
    bool filled[MOST_SLOTS] = {};
    int slot = 0, first_step = 0;
    for (const Operand& o : operands) {
        slots[slot] = o.flat && !program.truth[slot] ? nullptr : free;
        free += slots[slot++] ? size : 0;
    }
    for (T c : compiled.constants) {
        std::fill(free, free + size, c);
        slots[slot++] = free;
        free += size;
    }
    for (int i = 0; i < program.registers; ++i, free += size) slots[slot++] = free;
    const bool settled = program.once && settings_are_numbers();
    bool made_once[MOST_SLOTS] = {};  // registers that hold one number from the first block on
    for (int i = 0; settled && i < program.once; ++i) made_once[compiled.steps[i].second.d] = true;
    auto one_number = [&](int s) { return is_number(s) || made_once[s]; };
    for (int64_t at = begin, n; at < end; at += n) {
        n = std::min(whole - at % whole, end - at);
        const T* inputs[MOST_SLOTS];
        for (int i = 0; i < program.arguments; ++i)
            inputs[i] = argument(operands[i], program.truth[i], slots[i], filled[i], at, n, size);
        slots[slot] = to ? to + (at - begin) : free;
        if (to && compiled.steps.size() > 1)  // the result's lines come while the first steps compute
            for (int64_t i = 0; i < n; i += 64 / int64_t(sizeof(T))) __builtin_prefetch(slots[slot] + i, 1);
        auto in = [&](int s) { return s < program.arguments ? inputs[s] : slots[s]; };
        for (int i = first_step; i < int(compiled.steps.size()); ++i) {
            const auto& [ordinary, step] = compiled.steps[i];
            const Fixed<T> fixed = compiled.fixed[i];
            const bool quick = fixed.run && one_number(step.b) && (!fixed.third || one_number(step.c));
            const auto instruction = quick ? fixed.run : ordinary;
            instruction(slots[step.d], in(step.a), in(step.b), in(step.c), settled && i < program.once ? size : n);
        }
        if (settled) first_step = program.once;
        use(*this, slots[slot], at, n);
    }
}

template <class T> void Run<T>::operator()(int64_t begin, int64_t end) const {
    if (program.truth_result) {
        blocks(begin, end, nullptr, [](const Run& run, const T* values, int64_t at, int64_t n) {
            narrow(values, run.result + at, n);
        });
    } else if (target) {
        blocks(begin, end, nullptr, [](const Run& run, const T* values, int64_t at, int64_t n) {
            run.layout.each_run(*run.target, at, n, [&](const char* p, int64_t stride, int64_t count, int64_t offset) {
                char* to = const_cast<char*>(p);
                for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * stride, values + offset + i, sizeof(T));
            });
        });
    } else {
        compute(begin, end, reinterpret_cast<T*>(result) + begin);
    }
}

// Whether the program is one instruction of arrays that lie as its result does, and of numbers that it takes as such.
template <class T> bool Run<T>::is_bare() const {
    if (compiled.steps.size() != 1) return false;
    for (int i = 0; i < program.arguments; ++i)
        if (program.truth[i] || !(operands[i].flat || operands[i].constant)) return false;
    const Step& step = compiled.steps[0].second;
    const Fixed<T> fixed = compiled.fixed[0];
    if (is_number(step.a)) return false;
    if (!is_number(step.b)) return !is_number(step.c);
    T second{}, third{};
    number_at(step.b, second), number_at(step.c, third);  // nan is left to instructions of arrays
    return fixed.run && fixed.third == is_number(step.c) && second == second && third == third;
}

// Where the operand in a slot begins: an array, or a number, which `value` then holds.
template <class T> const T* Run<T>::number_at(int slot, T& value) const {
    if (!is_number(slot)) return reinterpret_cast<const T*>(operands[slot].data);
    if (slot < program.arguments) std::memcpy(&value, operands[slot].data, sizeof value);
    else value = compiled.constants[slot - program.arguments];
    return &value;
}

template <class T> void Run<T>::bare(int64_t begin, int64_t end, T* to) const {
    const auto& [ordinary, step] = compiled.steps[0];
    const bool second = is_number(step.b), third = is_number(step.c);
    T values[2];
    const T* a = number_at(step.a, values[0]) + begin;
    const T* b = number_at(step.b, values[0]) + (second ? 0 : begin);
    const T* c = number_at(step.c, values[1]) + (third ? 0 : begin);
    const auto instruction = second ? compiled.fixed[0].run : ordinary;
    const bool waits = compiled.cost == 1 && to != a && (second || step.b == step.a);  // for memory, and reads one array
    if (!waits) return instruction(to, a, b, c, end - begin);
    for (int64_t n; begin < end; begin += n) {  // the result's lines come before they are written
        n = std::min(MOST_BLOCK, end - begin);
        for (int64_t i = 0; i < n; i += 64 / int64_t(sizeof(T))) __builtin_prefetch(to + i, 1);
        instruction(to, a, b, c, n);
        to += n, a += n, b += second ? 0 : n, c += third ? 0 : n;
    }
}

template <class T> void Run<T>::compute(int64_t begin, int64_t end, T* to) const {
    if (is_bare()) return bare(begin, end, to);
    blocks(begin, end, to, [](const Run&, const T*, int64_t, int64_t) {});
}

template struct Run<float>;
template struct Run<double>;
template struct Run<int32_t>;
template struct Run<int64_t>;

}  // namespace fw
