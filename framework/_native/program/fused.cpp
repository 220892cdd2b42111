#include "program/fused.h"

#include <cstring>

#include "base/scratch.h"

namespace fw {
namespace {

constexpr int64_t NEAR_BYTES = 4 << 20;  // operands and results that do not come from memory: asking costs a twentieth
constexpr int LONG_COST = 8;               // a step that computes for so long that memory can come meanwhile

template <class T> void ask_for(const char* from, int64_t n) {
    for (int64_t i = 0; i < n * int64_t(sizeof(T)); i += 64) __builtin_prefetch(from + i);
}

}  // namespace

template <class T> std::vector<typename FusedRun<T>::Ahead> FusedRun<T>::ahead() const {
    std::vector<size_t> steps;
    std::vector<Ahead> all;
    if (layout.size * int64_t(sizeof(T)) * int64_t(operands.size() + size_t(count)) <= NEAR_BYTES) return all;
    for (size_t i = 0; i < compiled.costs.size(); ++i)
        if (compiled.costs[i] >= LONG_COST) steps.push_back(i);
    if (steps.empty()) return all;
    for (const Operand& o : operands)
        if (o.flat) all.push_back({0, o.data});
    for (size_t i = 0; i < all.size(); ++i) all[i].step = steps[i * steps.size() / all.size()];
    return all;
}

template <class T> int64_t FusedRun<T>::block() const {
    int64_t buffers = program.registers + int64_t(program.constants.size()) + 1;
    for (const Operand& o : operands) buffers += !o.flat;
    const int64_t fit = L1_BYTES / int64_t(sizeof(T)) / buffers / 64 * 64;
    return layout.block(operands, std::min(std::max(fit, LEAST_BLOCK), STEPS_BLOCK));
}

template <class T> void FusedRun<T>::operator()(int64_t begin, int64_t end) const {
    alignas(64) static thread_local unsigned char memory[SCRATCH_BYTES];
    const int64_t whole = block(), size = (std::min(whole, end - begin) + 63) / 64 * 64;
    T* free = reinterpret_cast<T*>(asked_once(memory));
    T* slots[MOST_SLOTS];
    Gathered<T> held[MOST_SLOTS];
    int slot = 0;
    for (const Operand& o : operands) {
        held[slot].repeats = layout.repeats(o, whole);
        slots[slot] = o.flat ? nullptr : free;
        free += slots[slot] ? size : 0;
        if (o.constant) {
            T value;
            std::memcpy(&value, o.data, sizeof value);
            std::fill(slots[slot], slots[slot] + size, value);
        }
        ++slot;
    }
    for (T c : compiled.constants) {
        std::fill(free, free + size, c);
        slots[slot++] = free;
        free += size;
    }
    for (int i = 0; i < program.registers; ++i, free += size) slots[slot++] = free;
    const Chosen<T> instructions(compiled, program.first_register(), [&](int s) {
        return s >= program.arguments || operands[size_t(s)].constant;
    });
    const std::vector<Ahead> later = ahead();
    for (int64_t at = begin, n; at < end; at += n) {
        n = std::min(whole - at % whole, end - at);
        const T* inputs[MOST_SLOTS];
        for (int i = 0; i < program.arguments; ++i) {
            const Operand& o = operands[i];
            inputs[i] = o.flat ? reinterpret_cast<const T*>(o.data) + at : o.constant ? slots[i]
                : held[i].of(at % whole == 0, n, [&] { return layout.template gather<T>(o, slots[i], at, n); });
        }
        for (int i = 0; i < count; ++i) slots[slot + i] = results[i] + at;
        auto in = [&](int s) { return s < program.arguments ? inputs[s] : slots[s]; };
        if (!later.empty())  // the results' lines come while the first steps compute
            for (int i = 0; i < count; ++i)
                for (int64_t k = 0; k < n; k += 64 / int64_t(sizeof(T))) __builtin_prefetch(results[i] + at + k, 1);
        size_t asked = 0;
        for (size_t i = 0; i < compiled.steps.size(); ++i) {
            for (; asked < later.size() && later[asked].step == i; ++asked)
                ask_for<T>(later[asked].data + (at + n) * int64_t(sizeof(T)), std::min(whole, end - at - n));
            const Step& step = compiled.steps[i].second;
            instructions[i](slots[step.d], in(step.a), in(step.b), in(step.c), n);
        }
    }
}

template struct FusedRun<float>;
template struct FusedRun<double>;

}  // namespace fw
