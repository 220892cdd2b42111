// Elementwise programs, run block by block: here once for the module and for libframework.
#include <cstdlib>
#include <cstring>

#include "base/scratch.h"
#include "base/simd.h"
#include "program/program.h"

namespace fw {
namespace {

constexpr int64_t FAR = 64;  // bytes between elements of which few lines of the cache hold a block

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

// Numbers in a block.
template <class T> int64_t Run<T>::block() const {
    int64_t buffers = program.registers + int64_t(program.constants.size()) + 2;
    for (const Operand& o : operands) buffers += !o.flat;
    const int64_t fit = L1_BYTES / int64_t(sizeof(T)) / buffers / 64 * 64;
    const int64_t limit = compiled.steps.size() > 1 ? STEPS_BLOCK : MOST_BLOCK;
    int64_t most = std::min(std::max(fit, LEAST_BLOCK), limit);
    if (target && std::abs(target->strides[layout.merged - 1]) >= FAR) most = LEAST_BLOCK;
    return layout.block(operands, most);
}

template <class T>
const T* Run<T>::argument(const Operand& o, bool truth, T* buffer, Gathered<T>& held, int64_t at, int64_t n,
                          int64_t whole) const {
    if (!buffer) return reinterpret_cast<const T*>(o.data) + at;
    if (o.constant) return held.values;
    return held.of(at % whole == 0, n, [&]() -> const T* {
        if (!truth) return layout.template gather<T>(o, buffer, at, n);
        char room[MOST_BLOCK];
        widen(o.flat ? o.data + at : layout.template gather<char>(o, room, at, n), buffer, n);
        return buffer;
    });
}

// Computes the elements [begin, end) block by block: into `to`, or where `use` then finds them.
template <class T> void Run<T>::blocks(int64_t begin, int64_t end, T* to, Use use) const {
    const int64_t whole = block(), size = (std::min(whole, end - begin) + 63) / 64 * 64;
    T* free = reinterpret_cast<T*>(asked_once(memory));
    T* slots[MOST_SLOTS];
    Gathered<T> held[MOST_SLOTS];
    int slot = 0, first_step = 0;
    for (const Operand& o : operands) {
        slots[slot] = o.flat && !program.truth[slot] ? nullptr : free;
        free += slots[slot] ? size : 0;
        held[slot].repeats = layout.repeats(o, whole);
        if (o.constant) {
            T value;
            if (program.truth[slot]) value = bits<T>(Int<T>(-(*o.data != 0)));
            else std::memcpy(&value, o.data, sizeof value);
            std::fill(slots[slot], slots[slot] + size, value);
            held[slot].values = slots[slot];
        }
        ++slot;
    }
    for (T c : compiled.constants) {
        std::fill(free, free + size, c);
        slots[slot++] = free;
        free += size;
    }
    for (int i = 0; i < program.registers; ++i, free += size) slots[slot++] = free;
    const bool settled = program.once && settings_are_numbers();
    const bool straight = !to && target;  // values are needed where they belong only
    const int steps = int(compiled.steps.size());
    const Chosen<T> instructions(compiled, program.first_register(), [&](int s) { return is_number(s); });
    for (int64_t at = begin, n; at < end; at += n) {
        n = std::min(whole - at % whole, end - at);
        const T* inputs[MOST_SLOTS];
        for (int i = 0; i < program.arguments; ++i)
            inputs[i] = argument(operands[i], program.truth[i], slots[i], held[i], at, n, whole);
        T* place = to ? to + (at - begin) : straight ? layout.template in_a_row<T>(*target, at, n) : nullptr;
        slots[slot] = place ? place : free;
        if (place && steps > 1)  // the result's lines come while the first steps compute
            for (int64_t i = 0; i < n; i += 64 / int64_t(sizeof(T))) __builtin_prefetch(slots[slot] + i, 1);
        auto in = [&](int s) { return s < program.arguments ? inputs[s] : slots[s]; };
        for (int i = first_step; i < steps; ++i) {
            const Step& step = compiled.steps[size_t(i)].second;
            instructions[size_t(i)](slots[step.d], in(step.a), in(step.b), in(step.c), settled && i < program.once ? size : n);
        }
        if (settled) first_step = program.once;
        if (!straight || !place) use(*this, slots[slot], at, n);
    }
}

template <class T> void Run<T>::operator()(int64_t begin, int64_t end) const {
    if (program.truth_result) {
        blocks(begin, end, nullptr, [](const Run& run, const T* values, int64_t at, int64_t n) {
            narrow(values, run.result + at, n);
        });
    } else if (!target) {
        compute(begin, end, reinterpret_cast<T*>(result) + begin);
    } else if (const Lines kind = bare_kind(); kind != Lines::NONE) {
        bare_lines(begin, end, nullptr, kind);
    } else {
        blocks(begin, end, nullptr, [](const Run& run, const T* values, int64_t at, int64_t n) {
            run.layout.scatter(*run.target, values, at, n);
        });
    }
}

template <class T> bool Run<T>::is_one_of_numbers() const {
    return compiled.steps.size() == 1 && std::none_of(program.truth.begin(), program.truth.end(), [](bool t) { return t; });
}

// Whether the program is one instruction of arrays, and of numbers that it takes as such.
template <class T> bool Run<T>::takes_numbers() const {
    if (!is_one_of_numbers()) return false;
    const Step& step = compiled.steps[0].second;
    const Fixed<T> fixed = compiled.fixed[0];
    if (is_number(step.a)) {
        T first{};
        number_at(step.a, first);
        return fixed.turned && !is_number(step.b) && first == first;
    }
    if (!is_number(step.b)) return !is_number(step.c);
    T second{}, third{};
    number_at(step.b, second), number_at(step.c, third);  // nan is left to instructions of arrays
    return fixed.run && fixed.third == is_number(step.c) && second == second && third == third;
}

// Such a program whose arrays lie as its result does.
template <class T> bool Run<T>::is_bare() const {
    for (const Operand& o : operands)
        if (!(o.flat || o.constant)) return false;
    return takes_numbers();
}

// Whether the program is two steps that are one loop, of arrays that lie as its result does and numbers that are not nan.
template <class T> bool Run<T>::are_both() const {
    const Both<T>* both = compiled.both;
    if (!both || std::any_of(program.truth.begin(), program.truth.end(), [](bool t) { return t; })) return false;
    const Step &one = compiled.steps[0].second, &two = compiled.steps[1].second;
    const int slots[] = {one.a, one.b, one.c, two.a, two.b, two.c};
    for (int k = 0; k < 6; ++k) {
        const int slot = slots[k];
        T number{};
        if (both->arrays >> k & 1 && (slot >= program.arguments || !operands[size_t(slot)].flat)) return false;
        if (!(both->numbers >> k & 1)) continue;
        if (slot >= program.first_register() || !is_number(slot)) return false;
        if (number_at(slot, number), number != number) return false;
    }
    return true;
}

template <class T> void Run<T>::both(int64_t begin, int64_t end, T* to) const {
    const Step &one = compiled.steps[0].second, &two = compiled.steps[1].second;
    const int slots[] = {one.a, one.b, one.c, two.a, two.b, two.c};
    const T* p[6];
    T numbers[6];
    for (int k = 0; k < 6; ++k) {
        p[k] = nullptr;
        if (compiled.both->arrays >> k & 1) p[k] = reinterpret_cast<const T*>(operands[size_t(slots[k])].data) + begin;
        if (compiled.both->numbers >> k & 1) p[k] = number_at(slots[k], numbers[k]);
    }
    compiled.both->run(to, p, end - begin);
}

template <class T> bool Run<T>::in_lines(const Operand& o) const {
    return o.flat || o.constant || o.strides[layout.merged - 1] == int64_t(sizeof(T));
}

// Whether an operand is one element for each line.
template <class T> bool Run<T>::once_a_line(int slot) const {
    return !is_number(slot) && !operands[size_t(slot)].flat && operands[size_t(slot)].strides[layout.merged - 1] == 0;
}

// Such a program whose arrays, and where its results go, lie without gaps within lines of some length, or one of whose two
// operands is one element for each.
template <class T> typename Run<T>::Lines Run<T>::bare_kind() const {
    if (layout.merged < 2 || layout.has_short_lines() || (target && !in_lines(*target))) return Lines::NONE;
    const bool whole = std::all_of(operands.begin(), operands.end(), [&](const Operand& o) { return in_lines(o); });
    if (whole && takes_numbers() && !is_number(compiled.steps[0].second.a)) return Lines::ARRAYS;
    const Fixed<T>& fixed = compiled.fixed[0];
    if (whole || !is_one_of_numbers() || !fixed.run || fixed.third || fixed.not_by_lines) return Lines::NONE;
    const Step& step = compiled.steps[0].second;
    if (program.arguments != 2 || step.a == step.b || is_number(step.a) || is_number(step.b)) return Lines::NONE;
    if (once_a_line(step.b) && in_lines(operands[size_t(step.a)])) return Lines::SECOND_ONCE;
    const bool turns = fixed.turned && once_a_line(step.a) && in_lines(operands[size_t(step.b)]);
    return turns ? Lines::FIRST_ONCE : Lines::NONE;
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
    const bool turned = is_number(step.a), second = turned || is_number(step.b), third = is_number(step.c);
    T values[2];
    const T* a = number_at(turned ? step.b : step.a, values[0]) + begin;
    const T* b = number_at(turned ? step.a : step.b, values[0]) + (second ? 0 : begin);
    const T* c = number_at(step.c, values[1]) + (third ? 0 : begin);
    const auto instruction = turned ? compiled.fixed[0].turned : second ? compiled.fixed[0].run : ordinary;
    const bool waits = compiled.cost == 1 && to != a && (second || step.b == step.a);  // for memory, and reads one array
    if (!waits) return instruction(to, a, b, c, end - begin);
    for (int64_t n; begin < end; begin += n) {  // the result's lines come before they are written
        n = std::min(MOST_BLOCK, end - begin);
        for (int64_t i = 0; i < n; i += 64 / int64_t(sizeof(T))) __builtin_prefetch(to + i, 1);
        instruction(to, a, b, c, n);
        to += n, a += n, b += second ? 0 : n, c += third ? 0 : n;
    }
}

// An instruction of an array and a number, `turned` if that is the first, which may be nan: that is left to instructions of arrays.
template <class T>
void with_number(Instruction<T> ordinary, Instruction<T> fixed, bool turned, T* d, const T* a, const T* b, int64_t n) {
    if (*b == *b) return fixed(d, a, b, b, n);
    T number[LEAST_BLOCK];
    std::fill(number, number + LEAST_BLOCK, *b);
    for (int64_t i = 0; i < n; i += LEAST_BLOCK)
        ordinary(d + i, turned ? number : a + i, turned ? a + i : number, number, std::min(LEAST_BLOCK, n - i));
}

// Line by line, as many at a time as lie at even distances.
template <class T> void Run<T>::bare_lines(int64_t begin, int64_t end, T* to, Lines kind) const {
    const auto& [ordinary, step] = compiled.steps[0];
    const bool turned = kind == Lines::FIRST_ONCE, once = turned || kind == Lines::SECOND_ONCE;
    const auto fixed = turned ? compiled.fixed[0].turned : compiled.fixed[0].run, instruction = is_number(step.b) ? fixed : ordinary;
    const int last = layout.merged - 1, slots[] = {turned ? step.b : step.a, turned ? step.a : step.b, once ? step.b : step.c};
    const int64_t line = layout.sizes[last];
    T values[3];
    const char* p[4];
    int64_t dense[MOST_DIMS], none[MOST_DIMS] = {}, index[MOST_DIMS];
    const int64_t* strides[4];
    dense[last] = sizeof(T);
    for (int d = last; d > 0; --d) dense[d - 1] = dense[d] * layout.sizes[d];
    for (int i = 0; i < 3; ++i) {
        const bool number = is_number(slots[i]), flat = !number && operands[size_t(slots[i])].flat;
        p[i] = reinterpret_cast<const char*>(number_at(slots[i], values[i])) + (flat ? begin * int64_t(sizeof(T)) : 0);
        strides[i] = number ? none : flat ? dense : operands[size_t(slots[i])].strides;
        if (!number && !flat) p[i] = layout.address_of(operands[size_t(slots[i])], begin, index);
    }
    strides[3] = to ? dense : target->strides;
    p[3] = to ? reinterpret_cast<const char*>(to) : layout.address_of(*target, begin, index);
    for (int64_t at = begin, d = last + 1; d-- > 0;) index[d] = at % layout.sizes[d], at /= layout.sizes[d];
    for (int64_t n, lines; begin < end; begin += n * lines) {
        n = std::min(line - index[last], end - begin);
        lines = n < line ? 1 : std::min(layout.sizes[last - 1] - index[last - 1], (end - begin) / line);
        const char *a = p[0], *b = p[1], *c = p[2];
        char* d = const_cast<char*>(p[3]);
        const int64_t apart[] = {strides[0][last - 1], strides[1][last - 1], strides[2][last - 1], strides[3][last - 1]};
        for (int64_t k = 0; k < lines; ++k, a += apart[0], b += apart[1], c += apart[2], d += apart[3]) {
            auto *result = reinterpret_cast<T*>(d);
            auto *first = reinterpret_cast<const T*>(a), *second = reinterpret_cast<const T*>(b);
            if (once) with_number(ordinary, fixed, turned, result, first, second, n);
            else instruction(result, first, second, reinterpret_cast<const T*>(c), n);
        }
        const int moved = n < line ? last : last - 1;
        index[moved] += n < line ? n : lines;
        for (int i = 0; i < 4; ++i) p[i] += (n < line ? n : lines) * strides[i][moved];
        for (int e = moved; e > 0 && index[e] == layout.sizes[e]; --e) {
            for (int i = 0; i < 4; ++i) p[i] += strides[i][e - 1] - layout.sizes[e] * strides[i][e];
            index[e] = 0;
            ++index[e - 1];
        }
    }
}

template <class T> void Run<T>::compute(int64_t begin, int64_t end, T* to) const {
    if (are_both()) return both(begin, end, to);
    if (is_bare()) return bare(begin, end, to);
    if (const Lines kind = bare_kind(); kind != Lines::NONE) return bare_lines(begin, end, to, kind);
    blocks(begin, end, to, [](const Run&, const T*, int64_t, int64_t) {});
}

template struct Run<float>;
template struct Run<double>;
template struct Run<int32_t>;
template struct Run<int64_t>;

}  // namespace fw
