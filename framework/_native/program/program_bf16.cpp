#include "program/program_bf16.h"

#include <algorithm>
#include <cstring>

#include "base/half.h"
#include "base/scratch.h"

namespace fw {
namespace {

constexpr int64_t PIECE = 1024;  // elements that are computed at a time, in the first cache
constexpr int MOST = MOST_HALF_ARGUMENTS;

// The elements of a result, piece by piece through float32.
template <class H> struct HalfPieces {
    const Program& program;
    const Layout& layout;                  // of the result and the array arguments
    const std::vector<Operand>& operands;  // arrays of H or of truth values, and numbers
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

    // Whether the program only changes the sign: the bits that are kept, and those that are turned.
    bool changes_sign(uint16_t& kept, uint16_t& turned) const {
        if (program.steps.size() != 1 || operands[0].constant) return false;
        const std::string& name = program.steps[0].name;
        turned = name == "neg" ? 0x8000 : 0, kept = name == "abs" ? 0x7fff : 0xffff;
        return name == "neg" || name == "abs";
    }

    void change_sign(int64_t begin, int64_t end, uint16_t kept, uint16_t turned, Own& own) const {
        const Vec<uint16_t> keep = Vec<uint16_t>{} + kept, turn = Vec<uint16_t>{} + turned;
        constexpr int64_t L = lanes<uint16_t>;
        for (int64_t at = begin, n; at < end; at += n) {
            n = std::min(PIECE, end - at);
            const H* from = in_row<H>(operands[0], own.some, at, n);
            H* to = target ? own.some : reinterpret_cast<H*>(result) + at;
            int64_t i = 0;
            for (; i + L <= n; i += L)
                store<uint16_t>(&to[i].bits, (load(&from[i].bits) & keep) ^ turn);
            for (; i < n; ++i) to[i].bits = uint16_t((from[i].bits & kept) ^ turned);
            if (target) layout.scatter(*target, own.some, at, n);
        }
    }

    void operator()(int64_t begin, int64_t end) const {
        alignas(64) static thread_local Own mine;
        Own& own = *asked_once(&mine);
        uint16_t kept, turned;
        if (changes_sign(kept, turned)) return change_sign(begin, end, kept, turned, own);
        const Layout row{};
        std::vector<Operand> wide(operands.size());
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

template <class H>
void run_narrow(const Program& program, const Layout& layout, const std::vector<Operand>& operands, HalfNumbers& numbers,
                char* result, const Operand* target) {
    for (int i = 0; i < program.arguments; ++i) settle_number<H>(operands[size_t(i)], program.truth[i], i, numbers);
    const HalfPieces<H> run{program, layout, operands, numbers, result, target};
    parallel(layout.size, std::max<int64_t>(grain(program.f32.cost) / PIECE, 1) * PIECE, run);
}

#define FW_OF(H)                                                                                                        \
    template void run_narrow<H>(const Program&, const Layout&, const std::vector<Operand>&, HalfNumbers&, char*, const Operand*);
FW_OF(Half)
FW_OF(Bf16)
#undef FW_OF

}  // namespace fw
