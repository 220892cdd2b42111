#include "program/program_bf16.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "base/scratch.h"
#include "base/vecmath.h"
#include "program/pieces.h"

namespace fw {
namespace {

constexpr int64_t PIECE = 1024;  // elements that are computed at a time, in the first cache
constexpr int MOST = MOST_HALF_ARGUMENTS;

constexpr int64_t SOME = 64;  // numbers

// Up to three operands: numbers in rows, or one that stands for all of them where there are no rows.
template <class H> struct Operands {
    const H* rows[3] = {};
    Vec<float> one[3] = {};

    bool any() const { return rows[0] || rows[1] || rows[2]; }
    Operands from(int64_t at) const {
        Operands there = *this;
        for (const H*& p : there.rows) p = p ? p + at : p;
        return there;
    }
    // The n < SOME numbers from there on, with zeros behind them.
    Operands rest(int64_t at, int64_t n, H (*to)[SOME]) const {
        Operands there = *this;
        for (int k = 0; k < 3; ++k) {
            if (!rows[k]) continue;
            std::fill(std::copy_n(rows[k] + at, n, to[k]), to[k] + SOME, H{});
            there.rows[k] = to[k];
        }
        return there;
    }
};

template <class H> using Direct = void (*)(const Operands<H>& of, H* to, int64_t n);

// f(first, second, third, the number of the first), of which the first `Count` are looked at, of a multiple of SOME numbers.
template <int Count, class H, class F> FW_INLINE void in_one_loop(const Operands<H>& of, H* to, int64_t n, F f) {
    alignas(64) float wide[SOME];
    const H *a = of.rows[0], *b = of.rows[1], *c = of.rows[2];
    const Vec<float> x = of.one[0], y = of.one[1], z = of.one[2];
    for (int64_t i = 0; i < n; i += SOME) {
#pragma GCC unroll 4
        for (int64_t k = i; k < i + SOME; k += lanes<float>) {
            const Vec<float> v = a ? load_wide(a + k) : x;
            store<float>(wide + k - i, f(v, Count < 2 ? v : b ? load_wide(b + k) : y, Count < 3 ? v : c ? load_wide(c + k) : z, x));
        }
        narrow(to + i, wide, SOME);
    }
}

template <class H> struct DirectStep {
    const char* name;
    Direct<H> run;
};

template <class H> constexpr auto direct_steps() {
    using V = Vec<float>;
#define FW_STEP(word, count, expression)                                                                      \
    DirectStep<H>{word, [](const Operands<H>& of, H* to, int64_t n) {                                         \
        in_one_loop<count>(of, to, n, []([[maybe_unused]] V x, [[maybe_unused]] V y, [[maybe_unused]] V z,    \
                                         [[maybe_unused]] V one) -> V { return expression; });                \
    }}
    return std::array{
        FW_STEP("add", 2, x + y),
        FW_STEP("sub", 2, x - y),
        FW_STEP("mul", 2, x * y),
        FW_STEP("div", 2, x / y),
        FW_STEP("maximum", 2, maximum<float>(x, y)),
        FW_STEP("minimum", 2, minimum<float>(x, y)),
        FW_STEP("sqrt", 1, fw::sqrt(x)),
        FW_STEP("reciprocal", 1, splat(1.0f) / x),
        FW_STEP("rsqrt", 1, math::rsqrt(x)),
        FW_STEP("floor", 1, math::floor<V>(x)),
        FW_STEP("ceil", 1, math::ceil<V>(x)),
        FW_STEP("trunc", 1, math::trunc<V>(x)),
        FW_STEP("rint", 1, math::rint<V>(x)),
        FW_STEP("limit", 3, minimum<float>(maximum<float>(x, y), z)),
        FW_STEP("lerp", 3, y * (z - x) + x),
        FW_STEP("lerp_near", 3, lerp_near<float>(x, y, z)),
        FW_STEP("hard_gate", 1, hard_gate<float>(x)),
        FW_STEP("hardswish", 1, x * hard_gate<float>(x)),
        FW_STEP("smooth", 3, smooth<float>(x - y, z)),
        FW_STEP("huber", 3, huber<float>(x - y, z)),
        FW_STEP("sub, square", 2, (x - y) * (x - y)),
        FW_STEP("sub, abs", 2, abs<float>(x - y)),
        FW_STEP("finite_or, where_nan", 3, x != x ? one : x == splat(INFINITY) ? y : x == splat(-INFINITY) ? z : x),
        FW_STEP("limit, where_nan", 3, x != x ? one : minimum<float>(maximum<float>(x, y), z)),
    };
#undef FW_STEP
}

// The elements of a result, piece by piece through float32.
template <class H> struct HalfPieces {
    const Program& program;
    const Layout& layout;                  // of the result and the array arguments
    const OperandList& operands;  // arrays of H or of truth values, and numbers
    const HalfNumbers& numbers;
    char* result;
    const Operand* target;  // where results go that do not lie in the order of their numbers

    // A thread's own memory for a piece.
    struct Own {
        alignas(64) float wide[MOST][PIECE], values[PIECE];
        alignas(64) H some[PIECE];
        alignas(64) char truths[MOST][PIECE];
    };

    const char* number(int i) const {
        return program.truth[i] ? &numbers.truths[i] : reinterpret_cast<const char*>(&numbers.numbers[i]);
    }

    // Where the elements [at, at + n) of an argument lie in a row.
    template <class T> const T* in_row(const Operand& o, T* buffer, int64_t at, int64_t n) const {
        return o.flat ? reinterpret_cast<const T*>(o.data) + at : layout.template gather<T>(o, buffer, at, n);
    }

    void put(const float* values, int64_t at, int64_t n, H* some) const {
        if (!target) return narrow(reinterpret_cast<H*>(result) + at, values, n);
        narrow(some, values, n);
        layout.scatter(*target, some, at, n);
    }

    // What of the sign a program changes that does nothing else: the bits that are kept, those that are turned, and the
    // array whose sign comes in place of it, if there is one.
    struct Signs {
        uint16_t kept = 0xffff, turned = 0;
        const Operand* other = nullptr;
    };
    bool changes_sign(Signs& signs) const {
        const NarrowForm::Sign sign = program.narrow.sign;
        if (sign == NarrowForm::OTHER || operands[0].constant) return false;
        const Step& step = program.steps[0];
        if (sign == NarrowForm::NEG) return signs.turned = 0x8000, true;
        signs.kept = 0x7fff;
        if (sign == NarrowForm::ABS) return true;
        if (step.a != 0 || step.b != 1 || program.arguments != 2) return false;
        if (operands[1].constant) signs.turned = std::signbit(numbers.numbers[1]) ? 0x8000 : 0;
        else signs.other = &operands[1];
        return true;
    }

    void change_sign(int64_t begin, int64_t end, const Signs& signs, Own& own) const {
        const Vec<uint16_t> keep = Vec<uint16_t>{} + signs.kept, turn = Vec<uint16_t>{} + signs.turned;
        constexpr int64_t L = lanes<uint16_t>;
        for (int64_t at = begin, n; at < end; at += n) {
            n = std::min(PIECE, end - at);
            const H* from = in_row<H>(operands[0], own.some, at, n);
            const H* sign = signs.other ? in_row<H>(*signs.other, reinterpret_cast<H*>(own.values), at, n) : nullptr;
            H* to = target ? own.some : reinterpret_cast<H*>(result) + at;
            int64_t i = 0;
            for (; i + L <= n; i += L) {
                const Vec<uint16_t> turned = sign ? load(&sign[i].bits) & 0x8000 : turn;
                store<uint16_t>(&to[i].bits, (load(&from[i].bits) & keep) ^ turned);
            }
            for (; i < n; ++i)
                to[i].bits = uint16_t((from[i].bits & signs.kept) ^ (sign ? sign[i].bits & 0x8000 : signs.turned));
            if (target) layout.scatter(*target, own.some, at, n);
        }
    }

    // What stands in a slot, as the operand number i; false where it is computed, or does not lie in a row.
    bool takes(Operands<H>& of, int i, int slot) const {
        if (slot >= program.first_register()) return false;
        if (slot >= program.arguments) return of.one[i] = splat(float(program.constants[size_t(slot - program.arguments)])), true;
        const Operand& o = operands[size_t(slot)];
        if (program.truth[size_t(slot)]) return false;
        if (o.constant) return of.one[i] = splat(numbers.numbers[size_t(slot)]), true;
        of.rows[i] = reinterpret_cast<const H*>(o.data);
        return o.flat;
    }

    // Whether the program is so short that it takes no longer than to widen its operands and to round: then all is one loop.
    bool direct(int64_t begin, int64_t end) const {
        if (program.narrow.loop < 0 || target) return false;
        const Step &first = program.steps[0], &last = program.steps.back();
        Operands<H> of;
        const bool two = program.narrow.nan_number;
        if (two && (!takes(of, 0, last.b) || of.any())) return false;
        static constexpr auto loops = direct_steps<H>();
        const Direct<H> run = loops[size_t(program.narrow.loop)].run;
        if (!takes(of, 0, first.a) || !takes(of, 1, first.b) || !takes(of, 2, first.c) || !of.any()) return false;
        if (two && !of.rows[0]) return false;  // it would stand where the number in place of nan does
        H* to = reinterpret_cast<H*>(result);
        const int64_t whole = begin + (end - begin) / SOME * SOME, left = end - whole;
        if (begin < whole) run(of.from(begin), to + begin, whole - begin);
        if (left) {
            H some[3][SOME], made[SOME];
            run(of.rest(whole, left, some), made, SOME);
            std::copy_n(made, left, to + whole);
        }
        return true;
    }

    void operator()(int64_t begin, int64_t end) const {
        alignas(64) static thread_local Own mine;
        Own& own = *asked_once(&mine);
        Signs signs;
        if (changes_sign(signs)) return change_sign(begin, end, signs, own);
        if (direct(begin, end)) return;
        const Layout row{};
        OperandList wide(operands.size());
        for (int i = 0; i < program.arguments; ++i) {
            wide[size_t(i)].constant = operands[size_t(i)].constant;
            wide[size_t(i)].flat = !operands[size_t(i)].constant;
            wide[size_t(i)].data = number(i);
        }
        for (int64_t at = begin; at < end; at += PIECE) {
            const int64_t n = std::min(PIECE, end - at);
            for (int i = 0; i < program.arguments; ++i) {
                const Operand& o = operands[size_t(i)];
                if (o.constant) continue;
                if (program.truth[i]) {
                    wide[size_t(i)].data = in_row<char>(o, own.truths[i], at, n);
                } else {
                    widen(own.wide[i], in_row<H>(o, own.some, at, n), n);
                    wide[size_t(i)].data = reinterpret_cast<const char*>(own.wide[i]);
                }
            }
            Run<float> run{program, program.f32, row, wide, result + at};
            if (program.truth_result) {
                run(0, n);
            } else {
                run.compute(0, n, own.values);
                put(own.values, at, n, own.some);
            }
        }
    }
};

// An argument of a single element as a number.
template <class H> void settle_number(const Operand& o, bool truth, int i, HalfNumbers& numbers) {
    if (!o.array || !o.constant) return;
    if (truth) numbers.truths[i] = *o.data;
    else numbers.numbers[i] = widen(*reinterpret_cast<const H*>(o.data));
}

}  // namespace

NarrowForm narrow_form_of(const Program& program) {
    NarrowForm form;
    const Step &first = program.steps[0], &last = program.steps.back();
    if (program.steps.size() > 2) return form;
    const bool two = program.steps.size() == 2;
    form.nan_number = two && last.name == "where_nan" && last.a == first.a && last.c == first.d;
    const bool difference = two && first.name == "sub" && last.a == first.d;
    const bool square = difference && last.name == "mul" && last.b == first.d, size = difference && last.name == "abs";
    if (!two)
        form.sign = first.name == "neg" ? NarrowForm::NEG : first.name == "abs" ? NarrowForm::ABS
                  : first.name == "copysign" ? NarrowForm::COPYSIGN : NarrowForm::OTHER;
    if (program.truth_result || (two && !form.nan_number && !square && !size)) return form;
    const std::string name = first.name + (!two ? "" : square ? ", square" : size ? ", abs" : ", where_nan");
    const auto loops = direct_steps<Half>();
    const auto found = std::find_if(loops.begin(), loops.end(), [&](const auto& step) { return name == step.name; });
    if (found != loops.end()) form.loop = int(found - loops.begin());
    return form;
}

template <class H>
void run_narrow(const Program& program, const Layout& layout, const OperandList& operands, HalfNumbers& numbers,
                char* result, const Operand* target) {
    for (int i = 0; i < program.arguments; ++i) settle_number<H>(operands[size_t(i)], program.truth[i], i, numbers);
    const HalfPieces<H> run{program, layout, operands, numbers, result, target};
    parallel(layout.size, std::max<int64_t>(grain(program.f32.cost) / PIECE, 1) * PIECE, run);
}

#define FW_OF(H)                                                                                                        \
    template void run_narrow<H>(const Program&, const Layout&, const OperandList&, HalfNumbers&, char*, const Operand*);
FW_OF(Half)
FW_OF(Bf16)
#undef FW_OF

}  // namespace fw
